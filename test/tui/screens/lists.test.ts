import { expect } from 'chai';
import { listRows } from '../../../tui/state/rows.js';
import type { State } from '../../../tui/state/state.js';
import { frameLines, screenText, withoutColors } from './rendering.js';
import { PROJECTS, scene, TOKENS } from './scenes.js';
import { Scene, token } from './states.js';

const lines = (state: State) => screenText(state).split('\n');
const rowsOf = (state: State) => lines(state).filter((line) => /^│[> ].[· ✓]?/.test(line) && /[0-9a-f]{8}/.test(line));

describe('the list of tokens', () => {
  it('shows who, whose, in what state, until when, and how much it was used (finding A8)', () => {
    const { state } = scene({ columns: 120 });
    expect(lines(state)[3]).to.match(/ID +NAME +PROJECT +STATE +EXPIRES ▲ +REQUESTS +HIT% +LAST USED/);
    expect(lines(state)[4]).to.match(/^│> {2}3fa91c2e {2}ci-deploy +web +● active +in 12m +4,211\/5,000 +38 +6s ago/);
  });

  it('shows no more than 100 % of hits (finding A8)', () => {
    const often = token(1, { request_count: 10, cache_hit_count: 990 });
    const { state } = scene({ columns: 120, tokens: [often, token(2, { request_count: 0, cache_hit_count: 7 })] });
    expect(rowsOf(state)[0]).to.match(/10\/5,000 +99 /);
    expect(rowsOf(state)[1]).to.match(/0\/5,000 +100 /);
  });

  it('says every state with a sign and a word', () => {
    const text = screenText(scene().state);
    for (const state of ['● active', '▲ limited', '✗ revoked', '○ expired', '◌ project off']) {
      expect(text).to.contain(state);
    }
  });

  it('drops columns one after the other rather than cut all of them', () => {
    const title = (columns: number) => lines(scene({ columns }).state)[3]!;
    expect(title(80)).to.contain('PROJECT').and.not.to.contain('LAST USED');
    expect(title(60)).to.contain('EXPIRES').and.not.to.contain('REQUESTS');
    expect(title(50)).to.contain('NAME').and.to.contain('STATE');
    expect(title(200)).to.contain('CREATED').and.to.contain('SECRET');
  });

  it('has as many rows as the state counts on', () => {
    for (const rows of [10, 24, 60]) {
      const { state } = scene({ rows });
      expect(rowsOf(state)).to.have.length(listRows(state));
    }
  });

  it('moves > with the cursor, scrolls with it, and says where it is', () => {
    const { state } = scene({ rows: 12 }).press('G');
    const cursor = lines(state).find((line) => line.startsWith('│>'));
    expect(cursor).to.contain(TOKENS.at(-1)!.id.slice(0, 8));
    expect(screenText(state)).to.contain(' 80 of 80 ─┘');
  });

  it('has a bar at its edge while there is more than fits', () => {
    const bars = (state: State) => lines(state).filter((line) => line.endsWith('█')).length;
    expect(bars(scene({ rows: 24 }).state)).to.be.within(1, 6);
    expect(bars(scene({ rows: 24, tokens: TOKENS.slice(0, 3) }).state)).to.equal(0);
    expect(lines(scene({ rows: 24 }).press('G').state).at(-4)).to.match(/█$/);
  });

  it('marks with a sign', () => {
    const { state } = scene().press('space', 'space');
    expect(rowsOf(state).filter((line) => line.includes('✓'))).to.have.length(2);
  });

  it('shows a range while it is being marked', () => {
    const { state } = scene().press('v', 'j', 'j');
    expect(rowsOf(state).filter((line) => /^│[> ]·/.test(line))).to.have.length(3);
  });

  it('shows the order at the column, and keeps that column where it is narrow', () => {
    expect(lines(scene({ columns: 120 }).press('S').state)[3]).to.contain('EXPIRES ▼');
    expect(lines(scene({ columns: 60 }).press('s', 's').state)[3]).to.contain('LAST USED ▼');
  });

  it('says … for rows that are not known yet', () => {
    const known = new Scene({ rows: 20, tokens: TOKENS.slice(0, 5), projects: PROJECTS });
    const [page] = known.state.tokens.window.head.pages;
    const { window } = known.state.tokens;
    const more = { ...window, total: 400, head: { ...window.head, pages: [{ ...page!, next: 'more' }] } };
    const { state } = { state: { ...known.state, tokens: { ...known.state.tokens, window: more } } };
    expect(lines(state)[9]).to.match(/^│ {3}… +…/);
  });

  it('shows what the filter looked for', () => {
    const { state } = scene().press('/', 'd', 'e', 'p', 'enter', 'j');
    const row = frameLines(state).find((line) => line.includes('loy'))!;
    expect(row).to.match(/\x1b\[1;4;33mdep\x1b\[0mloy/); // eslint-disable-line no-control-regex
  });

  it('says what to do where there is none', () => {
    expect(screenText(scene({ tokens: [] }).state)).to.match(/There are no tokens yet\..*\n.* n issues the first one/);
  });

  it('says how to see all again where the filter lets none through', () => {
    const { state } = scene({ tokens: [] }).press('/', 'x', 'enter');
    expect(screenText(state)).to.match(/No token fits x\..*\n.*esc shows all again/);
  });

  it('says why nothing is known', () => {
    expect(screenText(scene({ status: null }).state)).to.contain('the daemon cannot be reached');
  });

  it('tells names apart that look alike, and lets none of them act', () => {
    const names = ['same\u200b', '\x1b[2Jclear', '\u202etxt'];
    const text = screenText(scene({ tokens: names.map((name, at) => token(at, { name })) }).state);
    expect(text).to.contain('same\\u{200b}').and.to.contain('\\x1b[2Jclear').and.to.contain('\\u202etxt');
  });

  it('writes numbers of any size in their column', () => {
    const huge = token(1, { max_requests: 2_147_483_647, request_count: 1_234_567 });
    expect(screenText(scene({ tokens: [huge] }).state)).to.contain('1.23M/2.15G');
  });
});

describe('the list of projects', () => {
  it('shows the name, whether it is active, and the end of its key', () => {
    const { state } = scene({ tab: 'projects', columns: 120 });
    const text = screenText(state);
    expect(text).to.match(/batch +◌ project off +…9f2c +30d ago +5h ago +90m ago/);
    expect(text).to.match(/web +● active/);
  });

  it('says what to do where there is none', () => {
    expect(screenText(scene({ tab: 'projects', projects: [] }).state)).to.contain('n makes the first one');
  });
});

describe('audit records and events', () => {
  for (const [columns, rows] of [
    [80, 24],
    [100, 30],
    [120, 40],
  ] as const) {
    it(`say what was done to what, and why, at ${columns}x${rows} (finding A9)`, () => {
      const text = screenText(scene({ tab: 'audit', columns, rows }).state);
      expect(text).to.match(/TIME +ACTION .*ABOUT .*REASON/);
      expect(text).to.match(/token\.revoke .* 3fa91c2e .*leaked in CI/);
    });
  }

  it('say what was done to what at 50x10 (finding A9)', () => {
    const text = screenText(scene({ tab: 'audit', columns: 50, rows: 10 }).state);
    expect(text).to.match(/TIME +ACTION .*ABOUT/);
  });

  it('show the newest at the bottom, and follow it', () => {
    const shown = lines(scene({ tab: 'audit', rows: 16 }).state);
    expect(shown.at(-4)).to.match(/^│> .*token\.revoke/);
    expect(shown.at(-3)).to.contain('following · 50 read');
  });

  it('count what is new while one looks further up', () => {
    const above = scene({ tab: 'audit', rows: 16 }).press('k', 'k');
    above.act({
      on: 'streamed',
      streamed: [1, 2, 3].map((number) => ({
        of: 'audit',
        item: { ...above.setting.audit![0]!, id: `new-${number}` },
      })),
    });
    expect(screenText(above.state)).to.contain('3 new below, G');
    expect(lines(above.state)[1]).to.contain('4 Audit +3');
    expect(screenText(above.press('G').state))
      .to.contain('following')
      .and.not.to.contain('new below');
  });

  it('open one below the list, with all that is known of it', () => {
    const { state } = scene({ tab: 'audit', rows: 30 }).press('enter');
    const text = screenText(state);
    expect(text)
      .to.match(/record +0197/)
      .and.to.match(/token +[0-9a-f-]{36} /);
    expect(text).to.contain('> ');
  });

  it('say how each request ended, with a sign beside the colour', () => {
    const text = screenText(scene({ tab: 'events', columns: 120, rows: 30 }).state);
    expect(text).to.match(/● 200 +POST \/v1\/chat\/completions +ci-deploy|● 200 +POST/);
    expect(text).to.contain('▲ 429').and.to.contain('✗ 502');
    expect(text).to.match(/gpt-4o-mini +412\/96 +812 ms +miss/);
  });

  it('open a request with its times, bytes and tokens', () => {
    const text = screenText(scene({ tab: 'events', rows: 40 }).press('enter').state);
    expect(text).to.contain('812 ms, upstream 805 ms, first byte 240 ms');
    expect(text).to.contain('1.18 KiB in, 9.09 KiB out, streamed');
    expect(text).to.contain('412 in, 96 out, 508 in all');
  });

  it('say that nothing has happened yet', () => {
    expect(screenText(scene({ tab: 'events', events: [] }).state)).to.contain('Nothing has happened');
  });

  it('say that the stream is lost', () => {
    const { state } = scene({ tab: 'events' }).act({ on: 'stream', of: 'events', is: 'lost', failure: null });
    expect(screenText(state)).to.contain('the stream is lost');
  });

  it('keep the line under the cursor in sight at every height', () => {
    for (const rows of [10, 14, 24, 60]) {
      const { state } = scene({ tab: 'audit', rows }).press('k', 'k', 'k', 'k', 'k', 'k', 'enter');
      expect(frameLines(state).map(withoutColors).join('\n'), String(rows)).to.match(/\n│> /);
    }
  });
});
