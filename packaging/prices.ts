/** Writes config/prices.json from the installed package: `npm run prices`. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { shippedListPath } from '../daemon/process/price-lists.js';
import { priceList, textOf } from './price-list.js';

const ROOT = resolve(import.meta.dirname, '../..');
const NAME = '@pydantic/genai-prices';

const manifest = readFileSync(join(ROOT, 'node_modules', NAME, 'package.json'), 'utf8');
const { version } = JSON.parse(manifest) as { version: string };
// The package does not say when it was made.
const times = execFileSync('npm', ['view', NAME, 'time', '--json'], { encoding: 'utf8' });
const date = (JSON.parse(times) as Record<string, string>)[version]?.slice(0, 10);
if (date === undefined) throw new Error(`the registry does not know ${NAME} ${version}`);
writeFileSync(shippedListPath(), textOf(priceList(version, date)));
