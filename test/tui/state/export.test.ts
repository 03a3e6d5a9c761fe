import { expect } from 'chai';
import { Operator } from '../operator.js';
import { project, SimulatedDaemon, token, topRow } from '../simulated.js';

const NAME = /^tokens-20261123-140311\.csv$/;

const watching = (tab: 'tokens' | 'projects' | 'audit' | 'events' | 'top' | 'overview' = 'tokens') => {
  const daemon = new SimulatedDaemon({
    tokens: [token(0), token(1)],
    projects: [project('web'), project('zebra'), project('other')],
  });
  daemon.topRows = [topRow(0), topRow(1)];
  daemon.files = [
    { name: '.hidden.csv', isFolder: false },
    { name: 'notes.txt', isFolder: false },
    { name: 'reports', isFolder: true },
    { name: 'tokens.csv', isFolder: false },
  ];
  return new Operator({ daemon, tab });
};
const exports = (operator: Operator) => operator.did('export')?.list;
const command = (operator: Operator, line: string) => operator.press(':').types(line).press('enter');
const offered = (operator: Operator) => {
  const { top } = operator;
  return top?.kind === 'command' ? top.line.text : undefined;
};

describe(':export', () => {
  it('writes the list of tokens with its filter, its order and its columns', () => {
    const list = exports(command(command(watching(), 'tokens state:active'), 'export live.jsonl'));
    expect(list).to.deep.include({ screen: 'tokens', path: 'live.jsonl', format: 'jsonl', replaces: false });
    expect(list?.source).to.deep.equal({ query: { state: 'active', sort: 'live' } });
    expect(list?.columns).to.include.members(['id', 'name', 'state']);
  });

  it('writes the chosen columns', () => {
    const operator = watching();
    operator.state = {
      ...operator.state,
      saved: { ...operator.state.saved, columns: { tokens: ['name', 'revoked_by'] } },
    };
    expect(exports(command(operator, 'export a.csv'))?.columns).to.deep.equal(['name', 'revoked_by']);
  });

  it('names a new file in the current folder without an argument', () => {
    const operator = command(watching(), 'export');
    expect(exports(operator)?.path).to.match(NAME);
    expect(operator.says).to.match(/^Exporting to tokens-/);
  });

  for (const [tab, rows] of [
    ['projects', ['other', 'web', 'zebra']],
    ['top', ['name-0', 'name-1']],
  ] as const) {
    it(`writes all rows of ${tab}, in their order`, () => {
      const source = exports(command(watching(tab), 'export a.json'))?.source;
      const all = source && 'rows' in source ? source.rows : [];
      expect(all.map((row) => ('name' in row ? row.name : 'token_name' in row && row.token_name))).to.have.members(
        rows,
      );
    });
  }

  for (const tab of ['audit', 'events'] as const) {
    it(`requests ${tab} again, whatever the screen has loaded`, () => {
      const operator = command(watching(tab), `${tab} project:web`);
      expect(exports(command(operator, 'export a.csv'))?.source).to.deep.equal({
        query: { project_id: 'project-web' },
      });
    });
  }

  for (const [line, says] of [
    ['export tokens.xls', 'the name must end with .csv, .json or .jsonl'],
    ['export tokens', 'the name must end with .csv, .json or .jsonl'],
  ] as const) {
    it(`refuses ${line}`, () => {
      const { top } = command(watching(), line);
      expect(top?.kind === 'command' && top.problem).to.equal(says);
    });
  }

  it('says on a screen without a list where there is one', () => {
    const { top } = command(watching('overview'), 'export a.csv');
    expect(top?.kind === 'command' && top.problem).to.match(/^this screen is no list/);
  });

  it('says how many rows there are, and when a list is cut', () => {
    const operator = command(watching(), 'export a.csv');
    const list = exports(operator)!;
    expect(operator.acts({ on: 'exported', list, count: 5000, isCut: false }).says).to.equal(
      'Exported 5,000 tokens to a.csv',
    );
    expect(operator.acts({ on: 'exported', list, count: 100_000, isCut: true }).says).to.equal(
      'Exported only the first 100,000 tokens to a.csv',
    );
  });

  it('asks before it replaces a file, with the focus on cancel', () => {
    const operator = command(watching(), 'export a.csv');
    const list = exports(operator)!;
    operator.acts({ on: 'notExported', list, why: null });
    expect(operator.dialog.notes.map(({ words }) => words)).to.deep.equal(['a.csv is replaced by this list.']);
    operator.forgets().press('enter');
    expect(exports(operator)).to.equal(undefined);
    operator.acts({ on: 'notExported', list, why: null }).press('tab', 'enter');
    expect(exports(operator)).to.deep.equal({ ...list, replaces: true });
  });

  it('says why a file could not be written', () => {
    const operator = command(watching(), 'export a.csv');
    const list = exports(operator)!;
    expect(operator.acts({ on: 'notExported', list, why: 'ENOSPC' }).says).to.equal('Not exported to a.csv: ENOSPC');
  });

  describe('completes paths', () => {
    it('of the current folder, and of the folder in the line', () => {
      const operator = watching().press(':').types('export tok').press('tab');
      expect(offered(operator)).to.equal('export tokens.csv');
      const inFolder = watching().press(':').types('export rep').press('tab');
      expect(offered(inFolder)).to.equal('export reports/');
      expect(inFolder.did('load')?.request).to.deep.equal({ of: 'files', folder: 'reports/' });
    });

    it('without other files, and hidden ones only after a dot', () => {
      expect(offered(watching().press(':').types('export not').press('tab'))).to.equal('export not');
      expect(offered(watching().press(':').types('export hid').press('tab'))).to.equal('export hid');
      expect(offered(watching().press(':').types('export .h').press('tab'))).to.equal('export .hidden.csv');
    });

    it('without asking for the same folder at each letter', () => {
      const operator = watching().forgets();
      operator.press(':').types('export tokens');
      expect(operator.asked('files')).to.equal(1);
    });

    it('also while the management token is refused: files are no concern of the daemon', () => {
      const operator = watching();
      operator.daemon.failing = ({ of }) =>
        of === 'tokens' ? { kind: 'refused', status: 401, code: 'x', message: 'x', retryAfterMs: null } : null;
      operator.passes(2_000);
      expect(operator.state.connection.is).to.equal('denied');
      expect(offered(operator.press(':').types('export tok').press('tab'))).to.equal('export tokens.csv');
      expect(operator.state.connection.is).to.equal('denied');
    });
  });
});
