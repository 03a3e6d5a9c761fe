/** Options of the commands that read the daemon's settings. */
import { flag, text } from './option.js';

export const envFile = text(
  '--env-file <FILE>',
  'settings file, one NAME=value per line; environment variables take precedence',
);

/** Options of the commands that run as services. */
export const serviceOptions = {
  envFile,
  check: flag('--check', 'check the settings without connecting to anything, then exit'),
};
