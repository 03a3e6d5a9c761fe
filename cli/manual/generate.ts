/** Part of `npm run docs`: writes the manual pages, docs/cli.md and docs/keys.md, and lists all manual pages in package.json. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { wholeTree } from '../commands.js';
import { markdownPages } from './markdown.js';
import { manualPages } from './pages.js';

// The compiled file is in dist/cli/manual.
const ROOT = join(import.meta.dirname, '../../..');
const FOLDER = join(ROOT, 'man');

for (const [name, text] of manualPages(await wholeTree())) writeFileSync(join(FOLDER, name), text);
for (const [name, text] of await markdownPages()) writeFileSync(join(ROOT, 'docs', name), text);

const path = join(ROOT, 'package.json');
const manifest = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
manifest.man = readdirSync(FOLDER).map((page) => `./man/${page}`);
writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
