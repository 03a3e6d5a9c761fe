/** `npm run docs`: writes docs/api.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiPage } from './api-page.js';
import { openApi } from './openapi.js';

// The compiled file is four folders below the root.
const ROOT = join(import.meta.dirname, '../../../..');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

writeFileSync(join(ROOT, 'docs/api.md'), apiPage(openApi(version)));
