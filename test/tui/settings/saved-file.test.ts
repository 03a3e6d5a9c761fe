import { expect } from 'chai';
import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readContexts } from '../../../cli/connection/contexts.js';
import { changeSaved, readSaved } from '../../../tui/settings/saved-file.js';
import { MAX_VIEWS, NOTHING_SAVED, type SavedView } from '../../../tui/state/saved.js';
import { temporaryFolder } from '../../support/daemon.js';

const PROD = { context: 'prod', server: 'https://prod.example' };
const LEAKS: SavedView = {
  name: 'leaks',
  screen: 'tokens',
  filter: 'project:"My API" !old',
  sort: '-last_used_at',
  columns: null,
};
const FAILED: SavedView = { name: 'failed', screen: 'events', filter: 'status:5xx', sort: null, columns: null };

describe('views.toml', () => {
  let folder: string;
  beforeEach(() => {
    folder = join(temporaryFolder(), 'llmp');
  });
  const path = () => join(folder, 'views.toml');
  const write = (text: string) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(path(), text, { mode: 0o600 });
  };
  const save = (view: SavedView, owner: Parameters<typeof changeSaved>[1] = PROD) =>
    changeSaved(folder, owner, { what: 'view', view });
  const viewsOf = async (owner = PROD) => (await readSaved(folder, owner)).saved.views;

  it('has the views of each context in their order, for their owner only', async () => {
    await save(LEAKS);
    expect(await save(FAILED)).to.deep.equal({ columns: {}, views: [LEAKS, FAILED] });
    await save({ ...LEAKS, filter: 'x' }, { ...PROD, context: 'staging' });
    expect(await viewsOf()).to.deep.equal([LEAKS, FAILED]);
    expect(await viewsOf({ ...PROD, context: 'other' })).to.deep.equal([]);
    expect(statSync(path()).mode & 0o777).to.equal(0o600);
    expect(statSync(folder).mode & 0o777).to.equal(0o700);
    expect(readdirSync(folder), 'nothing else is left').to.deep.equal(['views.toml']);
  });

  it('has those of a daemon without a context by its address', async () => {
    const owner = { context: null, server: 'http://127.0.0.1:8080' };
    await save(LEAKS, owner);
    expect((await readSaved(folder, owner)).saved.views).to.deep.equal([LEAKS]);
    expect(readFileSync(path(), 'utf8')).to.contain('[[servers."http://127.0.0.1:8080".views]]');
  });

  it('replaces a view in its place, and deletes one', async () => {
    await save(LEAKS);
    await save(FAILED);
    expect((await save({ ...LEAKS, filter: '' })).views.map(({ filter }) => filter)).to.deep.equal(['', 'status:5xx']);
    expect(await changeSaved(folder, PROD, { what: 'delete-view', name: 'leaks' })).to.deep.equal({
      columns: {},
      views: [FAILED],
    });
    expect(await viewsOf()).to.deep.equal([FAILED]);
  });

  it('gets the changes of several terminal UIs', async () => {
    await save(LEAKS);
    write(`${readFileSync(path(), 'utf8')}\n[[contexts.prod.views]]\nname = "theirs"\nscreen = "audit"\n`);
    expect((await save(FAILED)).views.map(({ name }) => name)).to.deep.equal(['leaks', 'theirs', 'failed']);
  });

  it('has the columns of the lists of a context, and of views', async () => {
    const change = { what: 'columns', screen: 'tokens', columns: ['name', 'hits'] } as const;
    expect(await changeSaved(folder, PROD, change)).to.deep.equal({ columns: { tokens: ['name', 'hits'] }, views: [] });
    await save({ ...FAILED, columns: ['time', 'code'] });
    await changeSaved(folder, PROD, { ...change, screen: 'audit', columns: ['time'] });
    const { saved } = await readSaved(folder, PROD);
    expect(saved.columns).to.deep.equal({ tokens: ['name', 'hits'], audit: ['time'] });
    expect(saved.views[0]?.columns).to.deep.equal(['time', 'code']);
    const left = await changeSaved(folder, PROD, { ...change, columns: null });
    expect(left.columns).to.deep.equal({ audit: ['time'] });
  });

  it('has no columns that are not a list of names', async () => {
    write('[contexts.prod.columns]\ntokens = "name"\naudit = []\nevents = [1, "time", "time"]\nmap = ["x"]\n');
    expect((await readSaved(folder, PROD)).saved.columns).to.deep.equal({ events: ['time'] });
    await changeSaved(folder, PROD, { what: 'columns', screen: 'tokens', columns: ['id'] });
    expect(readFileSync(path(), 'utf8')).to.match(/map = \[ ?"x" ?\]/);
  });

  it('keeps what it does not know', async () => {
    write(
      'later = 1\n[contexts.prod]\nother = true\n[[contexts.prod.views]]\nname = "new"\nscreen = "map"\nzoom = 3\n',
    );
    expect(await viewsOf()).to.deep.equal([]);
    await save(LEAKS);
    const text = readFileSync(path(), 'utf8');
    for (const line of ['later = 1', 'other = true', 'name = "new"', 'screen = "map"', 'zoom = 3', 'name = "leaks"']) {
      expect(text).to.contain(line);
    }
  });

  it('shows the views that are valid', async () => {
    const valid = '[[contexts.prod.views]]\nname = "ok"\nscreen = "tokens"\n';
    const others = [
      'name = "a b"\nscreen = "tokens"',
      'name = 3\nscreen = "tokens"',
      'name = "x"',
      'name = "y"\nscreen = "z"',
    ];
    const wrong = [
      ...others,
      'name = "ok"\nscreen = "audit"',
      `name = "long"\nscreen = "tokens"\nfilter = "${'x'.repeat(1_001)}"`,
    ];
    write([valid, ...wrong.map((lines) => `[[contexts.prod.views]]\n${lines}\n`)].join('\n'));
    expect(await viewsOf()).to.deep.equal([{ name: 'ok', screen: 'tokens', filter: '', sort: null, columns: null }]);
    write(Array.from({ length: 80 }, (_, at) => valid.replace('ok', `v${at}`)).join('\n'));
    expect(await viewsOf()).to.have.length(MAX_VIEWS);
  });

  for (const text of [
    'contexts = 1',
    '[contexts]\nprod = 1',
    '[contexts.prod]\nviews = "x"',
    'contexts.prod.views = [1]',
    '[contexts.__proto__]\nviews = []',
  ]) {
    it(`has no views if their place has something else: ${JSON.stringify(text)}`, async () => {
      write(text);
      expect(await readSaved(folder, PROD)).to.deep.equal({ saved: NOTHING_SAVED, problems: [] });
    });
  }

  it('is neither used nor overwritten if it is not TOML', async () => {
    write('[[contexts.prod.views]\nname = "x"\n');
    const { saved, problems } = await readSaved(folder, PROD);
    expect(saved).to.deep.equal(NOTHING_SAVED);
    expect(problems[0]).to.contain(`${path()} is not valid (line 1)`);
    const failure = await save(LEAKS).then(
      () => null,
      (error: unknown) => error as Error,
    );
    expect(failure?.message).to.contain('is not valid (line 1)');
    expect(readFileSync(path(), 'utf8')).to.contain('name = "x"');
  });

  it('is neither used nor overwritten if others can write it', async () => {
    await save(LEAKS);
    chmodSync(path(), 0o666);
    expect((await readSaved(folder, PROD)).problems[0]).to.contain('is writable by other users');
    expect(await save(FAILED).catch((error: unknown) => (error as Error).message)).to.contain('is writable');
  });

  it('does not change the contexts file', async () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const contexts = 'current = "prod"\n[contexts.prod]\nserver = "https://prod.example"\n';
    writeFileSync(join(folder, 'config.toml'), contexts, { mode: 0o600 });
    await save(LEAKS);
    expect(readFileSync(join(folder, 'config.toml'), 'utf8')).to.equal(contexts);
    expect((await readContexts({ LLMP_CONFIG: join(folder, 'config.toml') })).current).to.equal('prod');
  });

  it('cannot be written without a folder', async () => {
    expect(await readSaved(undefined, PROD)).to.deep.equal({ saved: NOTHING_SAVED, problems: [] });
    const why = await changeSaved(undefined, PROD, { what: 'view', view: LEAKS }).catch((error: unknown) => error);
    expect((why as Error).message).to.equal('no path for views.toml');
  });
});
