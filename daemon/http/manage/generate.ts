/** `npm run docs`: writes docs/api.md. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readVersion } from '../../../config/version.js';
import { apiPage } from './api-page.js';
import { openApi } from './openapi.js';

// The compiled file is four folders below the root.
const ROOT = join(import.meta.dirname, '../../../..');

writeFileSync(join(ROOT, 'docs/api.md'), apiPage(openApi(readVersion())));
