/** Writes the screenshots of the terminal UI for the README. The output is deterministic, and a test fails when it is stale. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pictures } from './pictures.js';

const FOLDER = join(import.meta.dirname, '../../../docs/screenshots');

mkdirSync(FOLDER, { recursive: true });
for (const [name, svg] of pictures()) writeFileSync(join(FOLDER, name), svg);
