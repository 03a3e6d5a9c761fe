/** What the commands share that go by the daemon's settings. */
import { flag, text } from './option.js';

export const envFile = text(
  '--env-file <FILE>',
  'a file of settings, one NAME=value per line; environment variables take precedence',
);

/** Of those that run until they are told to stop. */
export const serviceOptions = {
  envFile,
  check: flag('--check', 'check the settings without connecting to anything, and exit'),
};
