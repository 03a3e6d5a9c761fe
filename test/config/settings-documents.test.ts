import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
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
  it('docs/settings.md', () => {
    expect(textOf('docs/settings.md')).to.equal(settingsPage());
  });

  it('config/llmp.env.example', () => {
    expect(textOf('config/llmp.env.example')).to.equal(exampleFile());
  });

  it('man/llmp.env.5', () => {
    expect(textOf('man/llmp.env.5')).to.equal(manualPage());
  });
});

describe('docs/settings.md', () => {
  it('names every setting once', () => {
    const rows = [...textOf('docs/settings.md').matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1]);
    expect(rows).to.deep.equal(settings.map(({ name }) => name));
  });
});

describe('the example file', () => {
  const example = exampleFile();

  it('is a valid env file, except for the management token', () => {
    const given = readEnvFile(file('llmp.env', example));
    expect(given.values).to.deep.equal({ MANAGEMENT_TOKEN: '' });
    expect(problemsOf({}, { file: given })).to.deep.equal(['MANAGEMENT_TOKEN is required']);
  });

  it('has every setting, with a valid default', () => {
    const lines = example.match(/^#?[A-Z_]+=.*$/gm)?.map((line) => line.replace(/^#/, '')) ?? [];
    expect(lines.map((line) => line.split('=')[0])).to.deep.equal(settings.map(({ name }) => name));
    const given = readEnvFile(file('llmp.env', lines.filter((line) => !line.endsWith('=')).join('\n')));
    expect(describeSettings({ MANAGEMENT_TOKEN }, { file: given }).problems).to.deep.equal([]);
  });
});

describe('llmp(7)', () => {
  it('is formatted without warnings', function () {
    const { status, stderr, stdout } = spawnSync('groff', ['-man', '-Tutf8', '-ww'], {
      input: textOf('man/llmp.7'),
      encoding: 'utf8',
    });
    if (status === null) this.skip();
    expect(stderr).to.equal('');
    expect(stdout)
      .to.match(/Back up the database/)
      .and.to.include("provider's")
      .and.not.to.match(/\\\[|\\\(/);
  });

  it('is in the package, like all pages', () => {
    const { man } = JSON.parse(textOf('package.json')) as { man: string[] };
    expect(man).to.deep.equal(readdirSync(join(ROOT, 'man')).map((page) => `./man/${page}`));
  });
});

describe('llmp.env(5)', () => {
  const groff = (...options: string[]) => spawnSync('groff', options, { input: manualPage(), encoding: 'utf8' });

  it('has an entry for every setting', () => {
    const entries = manualPage().match(/(?<=^\.TP\n\.B )[A-Z_]{4,}$/gm) ?? [];
    expect(entries).to.include.members(settings.map(({ name }) => name));
  });

  it('is formatted without warnings', function () {
    if (groff('--version').status !== 0) this.skip();
    const { stderr, stdout } = groff('-man', '-Tutf8', '-ww');
    expect(stderr).to.equal('');
    expect(stdout)
      .to.include('/v1/… is appended')
      .and.to.include("daemon's own errors")
      .and.not.to.match(/\\\[|\\\(/);
  });
});
