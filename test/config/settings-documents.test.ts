import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { exampleFile, manualPage, settingsPage } from '../../config/documents.js';
import { describeSettings } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { file, MANAGEMENT_TOKEN, problemsOf } from '../support/settings.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const textOf = (name: string) => readFileSync(join(ROOT, name), 'utf8');
const { settings } = describeSettings({});

describe('the documentation of settings is what `npm run docs` writes:', () => {
  for (const [page, text] of [
    ['docs/settings.md', settingsPage],
    ['config/llmp.env.example', exampleFile],
    ['man/llmp.env.5', manualPage],
  ] as const) {
    it(page, () => {
      expect(textOf(page)).to.equal(text());
    });
  }
});

describe('the example file', () => {
  const example = exampleFile();

  it('is a valid env file, except for the management token', () => {
    const given = readEnvFile(file('llmp.env', example));
    expect(given.values).to.deep.equal({ MANAGEMENT_TOKEN: '' });
    expect(problemsOf({}, { file: given })).to.deep.equal(['MANAGEMENT_TOKEN is required']);
  });

  it('has a valid default for each setting', () => {
    const lines = example.match(/^#?[A-Z_]+=.*$/gm)?.map((line) => line.replace(/^#/, '')) ?? [];
    expect(lines).to.have.length(settings.length);
    const given = readEnvFile(file('llmp.env', lines.filter((line) => !line.endsWith('=')).join('\n')));
    expect(describeSettings({ MANAGEMENT_TOKEN }, { file: given }).problems).to.deep.equal([]);
  });
});

it('each manual page is in the package', () => {
  const { man } = JSON.parse(textOf('package.json')) as { man: string[] };
  expect(man).to.deep.equal(readdirSync(join(ROOT, 'man')).map((page) => `./man/${page}`));
});
