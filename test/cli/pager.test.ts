import { expect } from 'chai';
import { type Pager, pagerIn } from '../../cli/pager.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { aWireToken } from '../support/factories.js';
import { perTest } from '../support/per-test.js';
import { llmp, type Situation } from './captured.js';
import { answerJson, startStandIn } from './stand-in.js';

describe('the pager', () => {
  const daemon = perTest(() => startStandIn());

  beforeEach(() => {
    daemon.answer = (req, res) => {
      answerJson(res, 200, req.url?.startsWith('/manage/tokens/') ? tokens(1)[0] : tokens(30));
    };
  });

  const tokens = (count: number) => Array.from({ length: count }, (_, n) => aWireToken({ name: `token-${n}` }));

  /** Runs a command on a terminal. @param works whether the pager can be started. */
  async function onTerminal(args: string, { works = true, env, ...more }: Situation & { works?: boolean } = {}) {
    const shown: { pager: Pager; text: string }[] = [];
    const { out, exitCode } = await llmp(args, {
      env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, ...env },
      terminal: 100,
      rows: 24,
      page(pager, text) {
        shown.push({ pager, text });
        return Promise.resolve(works);
      },
      ...more,
    });
    return { out, exitCode, shown };
  }

  it('shows a table that is longer than the screen, with its colors', async () => {
    const { out, exitCode, shown } = await onTerminal('token list');
    expect({ out, exitCode }).to.deep.equal({ out: '', exitCode: 0 });
    expect(shown.map(({ pager }) => pager)).to.deep.equal(['less']);
    expect(shown[0]?.text.split('\n')).to.have.length(32);
    expect(shown[0]?.text).to.contain('token-29').and.to.contain('\x1b[');
  });

  it('shows what fits on the terminal itself: the table, and a row for the prompt', async () => {
    expect((await onTerminal('token list', { rows: 32 })).shown).to.be.empty;
    expect((await onTerminal('token list', { rows: 31 })).shown).to.have.length(1);
    // A line that is wrapped needs two rows.
    expect((await onTerminal('token get 3fa91c2e-1111-4111-8111-111111111111', { rows: 40 })).shown).to.be.empty;
    expect((await onTerminal('token get 3fa91c2e-1111-4111-8111-111111111111', { rows: 5 })).shown).to.have.length(1);
  });

  it('is not used off a terminal, for data for programs, with --no-pager, and while a list is refreshed', async () => {
    for (const args of ['-o json', '-o csv', '-o yaml', '--jq .', '-o id', '--no-pager']) {
      const { out, shown } = await onTerminal(`token list ${args}`);
      expect(shown, args).to.be.empty;
      expect(out, args).not.to.equal('');
    }
    expect((await onTerminal('token list --watch')).shown).to.be.empty;
    const { out } = await llmp('token list', { env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN } });
    expect(out.split('\n')).to.have.length(31);
  });

  it('is replaced by the terminal if it cannot be started', async () => {
    const { out, exitCode, shown } = await onTerminal('token list', { works: false });
    expect(shown).to.have.length(1);
    expect({ out, exitCode }).to.deep.equal({ out: shown[0]?.text, exitCode: 0 });
  });

  it('is that of LLMP_PAGER, then PAGER, then less; an empty one and cat are none', async () => {
    expect((await onTerminal('token list', { env: { PAGER: 'most -s' } })).shown[0]?.pager).to.deep.equal({
      command: 'most -s',
    });
    expect(pagerIn({})).to.equal('less');
    expect(pagerIn({ LLMP_PAGER: 'a', PAGER: 'b' })).to.deep.equal({ command: 'a' });
    for (const none of [{ LLMP_PAGER: '', PAGER: 'b' }, { LLMP_PAGER: 'cat' }, { PAGER: '' }, { TERM: 'dumb' }]) {
      expect(pagerIn(none), JSON.stringify(none)).to.equal(null);
    }
    expect((await onTerminal('token list', { env: { LLMP_PAGER: '' } })).out).to.contain('token-29');
  });
});
