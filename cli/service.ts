/** What the commands share that go by the daemon's settings. */
import { flag, text } from './option.js';

export const envFile = text('--env-file <FILE>', 'settings, NAME=value a line; the environment comes first');

/** Of those that run until they are told to stop. */
export const serviceOptions = { envFile, check: flag('--check', 'check the settings, connect to nothing, and stop') };
