/** Writes the pictures of the terminal UI that the README shows. They are the same each time, and a test says when they are stale. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pictures } from './pictures.js';

const FOLDER = join(import.meta.dirname, '../../../docs/screenshots');

mkdirSync(FOLDER, { recursive: true });
for (const [name, svg] of pictures()) writeFileSync(join(FOLDER, name), svg);
