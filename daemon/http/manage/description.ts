/**
 * The OpenAPI description as a file beside this module. The build writes it: to compose it takes as long as the rest of a daemon's start,
 * and few daemons are asked for it.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Json } from './openapi-schemas.js';

export const DESCRIPTION_FILE = join(import.meta.dirname, 'openapi.json');

export const readDescription = async () => JSON.parse(await readFile(DESCRIPTION_FILE, 'utf8')) as Json;
