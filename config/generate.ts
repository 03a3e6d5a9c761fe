/** Part of `npm run docs`: writes the files that are generated from the declarations of settings and units. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { exampleFile, manualPage, settingsPage } from './documents.js';
import { shippedFiles } from './systemd/shipped.js';

// The compiled file is in dist/config.
const ROOT = join(import.meta.dirname, '../..');

const documents = {
  'docs/settings.md': settingsPage(),
  'config/llmp.env.example': exampleFile(),
  'man/llmp.env.5': manualPage(),
  ...Object.fromEntries([...shippedFiles()].map(([name, text]) => [`config/systemd/${name}`, text])),
};

for (const [name, text] of Object.entries(documents)) {
  const path = join(ROOT, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
