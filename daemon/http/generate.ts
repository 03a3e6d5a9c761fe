/** Part of `npm run docs`: writes docs/api.md, docs/reference/roles.md and the table in docs/clients/README.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readVersion } from '../../config/version.js';
import { withClientFamilies } from './clients-page.js';
import { apiPage } from './manage/api-page.js';
import { openApi } from './manage/openapi.js';
import { rolesPage } from './manage/roles-page.js';

// The compiled file is three folders below the root.
const ROOT = join(import.meta.dirname, '../../..');
const CLIENTS = join(ROOT, 'docs/clients/README.md');

writeFileSync(join(ROOT, 'docs/api.md'), apiPage(openApi(readVersion())));
writeFileSync(join(ROOT, 'docs/reference/roles.md'), rolesPage());
writeFileSync(CLIENTS, withClientFamilies(readFileSync(CLIENTS, 'utf8')));
