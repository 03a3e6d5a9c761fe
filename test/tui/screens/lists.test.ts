import { stripVTControlCharacters } from 'node:util';
import { expect } from 'chai';
import { isShownBy } from '../../../console/columns/column.js';
import { COLUMNS } from '../../../tui/state/columns.js';
import { listRows } from '../../../tui/state/rows.js';
import { NOTHING_SAVED } from '../../../tui/state/saved.js';
import type { State } from '../../../tui/state/state.js';
import { frameLines, screenText } from './rendering.js';
import { PROJECTS, scene, TOKENS } from './scenes.js';
import { ofProject, ofToken, record, request, ScreenFixture, token } from './screen-fixture.js';

const lines = (state: State) => screenText(state).split('\n');
const rowsOf = (state: State) => lines(state).filter((line) => /^│[> ].[· ✓]?/.test(line) && /[0-9a-f]{8}/.test(line));

describe('tokens screen', () => {
  it('shows name, project, state, expiry and use of each token (finding A8)', () => {
    const { state } = scene({ columns: 120 });
    expect(lines(state)[3]).to.match(/ID +NAME +PROJECT +STATE +EXPIRES +REQUESTS +SPENT +LEFT +HIT% +LAST USED/);
    expect(lines(state)[4]).to.match(
      /^│> {2}3fa91c2e {2}ci-deploy +web +● active +in 12m +4,211\/5,000 +\$12\.35 +51% +38 +6s ago/,
    );
  });

  it('shows up to 100 % of hits (finding A8)', () => {
    const often = token(1, { request_count: 10, cache_hit_count: 990 });
    const { state } = scene({ columns: 120, tokens: [often, token(2, { request_count: 0, cache_hit_count: 7 })] });
    expect(rowsOf(state)[0]).to.match(/10\/5,000 +\$0 +∞ +99 /);
    expect(rowsOf(state)[1]).to.match(/0\/5,000 +\$0 +∞ +100 /);
  });

  it('shows every state with a sign and a word', () => {
    const text = screenText(scene().state);
    for (const state of ['● active', '▲ limited', '✗ revoked', '○ expired', '◌ project off']) {
      expect(text).to.contain(state);
    }
  });

  it('drops columns one by one instead of cutting all of them', () => {
    const title = (columns: number) => lines(scene({ columns }).state)[3]!;
    expect(title(100)).to.match(/ ID +NAME/);
    expect(title(80))
      .to.contain('PROJECT')
      .and.not.to.match(/ ID |CREATED/);
    expect(title(60)).to.contain('EXPIRES').and.not.to.contain('PROJECT');
    expect(title(50)).to.contain('NAME').and.to.contain('STATE');
    expect(title(200)).to.contain('CREATED').and.to.contain('SECRET');
  });

  it('has whole names at 80 columns, and the ID of a token without one', () => {
    const tokens = [token(1, { name: 'contractor-kim-support' }), token(2, { name: null })];
    const text = screenText(scene({ columns: 80, tokens }).state);
    expect(text).to.contain('contractor-kim-support').and.to.contain(tokens[1]!.id.slice(0, 8));
  });

  it('has the number of rows that the state assumes', () => {
    for (const rows of [10, 24, 60]) {
      const { state } = scene({ rows });
      expect(rowsOf(state)).to.have.length(listRows(state));
    }
  });

  it('moves > with the cursor, scrolls, and shows the position', () => {
    const { state } = scene({ rows: 12 }).press('G');
    const cursor = lines(state).find((line) => line.startsWith('│>'));
    expect(cursor).to.contain(TOKENS.at(-1)!.id.slice(0, 8));
    expect(screenText(state)).to.contain(' 80 of 80 ─┘');
  });

  it('has a scroll bar if the rows do not fit', () => {
    const bars = (state: State) => lines(state).filter((line) => line.endsWith('█')).length;
    expect(bars(scene({ rows: 24 }).state)).to.be.within(1, 6);
    expect(bars(scene({ rows: 24, tokens: TOKENS.slice(0, 3) }).state)).to.equal(0);
    expect(lines(scene({ rows: 24 }).press('G').state).at(-4)).to.match(/█$/);
  });

  it('shows marks with a sign', () => {
    const { state } = scene().press('space', 'space');
    expect(rowsOf(state).filter((line) => line.includes('✓'))).to.have.length(2);
  });

  it('shows a range while it is selected', () => {
    const { state } = scene().press('v', 'j', 'j');
    expect(rowsOf(state).filter((line) => /^│[> ]·/.test(line))).to.have.length(3);
  });

  it('shows the sort order at its column, and keeps that column on a narrow screen', () => {
    expect(lines(scene({ columns: 120 }).press('s', 'S').state)[3]).to.contain('CREATED ▲');
    expect(lines(scene({ columns: 60 }).press('s', 's').state)[3]).to.contain('LAST USED ▼');
    expect(lines(scene({ columns: 60 }).press('s', 's', 's', 's', 's').state)[3]).to.contain('EXPIRES ▲');
  });

  it('says in the frame that usable tokens come first, because no column alone has that order', () => {
    const shown = lines(scene({ columns: 80 }).state);
    expect(shown[2]).to.contain('usable first, by expiry');
    expect(shown[3]).not.to.match(/[▲▼]/);
    expect(lines(scene({ columns: 80 }).press('S').state)[2]).to.contain('usable last, by expiry');
    expect(lines(scene({ columns: 80 }).press('s').state)[2]).not.to.contain('usable');
  });

  describe('with names of up to 30 characters', () => {
    const names = ['nightly-regression-eu-west-1', 'contractor-kim-support-trainee', 'ci'];
    const tokens = names.map((name, at) => token(at, { name }));
    const shownAt = (columns: number, rows: number, ids: readonly string[]) =>
      screenText(
        scene({ columns, rows, tokens, settings: { saved: { ...NOTHING_SAVED, columns: { tokens: ids } } } }).state,
      );
    const defaults = COLUMNS.tokens.filter((column) => isShownBy(column, 'tui')).map(({ id }) => id);
    const others = COLUMNS.tokens.map(({ id }) => id).filter((id) => !defaults.includes(id));

    for (const [columns, rows] of [
      [80, 24],
      [120, 40],
      [200, 60],
    ] as const) {
      it(`shows them whole at ${columns}x${rows}, whatever other column is shown too`, () => {
        for (const other of others) {
          const text = shownAt(columns, rows, [...defaults, other]);
          for (const name of names) expect(text, other).to.contain(`${name} `);
        }
      });
    }

    it('leaves out a column only if the narrowest others have no room for it', () => {
      const text = shownAt(120, 40, ['id', 'name', 'project', 'state', 'expires', 'requests', 'last_used', 'used']);
      expect(text).to.match(/ID +NAME +PROJECT +STATE +EXPIRES +REQUESTS +LAST USED +USED/);
    });

    it('cuts them where there would be neither state nor expiry', () => {
      expect(screenText(scene({ columns: 50, tokens }).state)).to.match(
        /NAME +STATE +EXPIRES.*\n.*contractor-kim-[a-z-]*…/s,
      );
    });
  });

  it('shows … for rows that are not loaded yet', () => {
    const known = new ScreenFixture({ rows: 20, tokens: TOKENS.slice(0, 5), projects: PROJECTS });
    const [page] = known.state.tokens.window.head.pages;
    const { window } = known.state.tokens;
    const more = { ...window, total: 400, head: { ...window.head, pages: [{ ...page!, next: 'more' }] } };
    const { state } = { state: { ...known.state, tokens: { ...known.state.tokens, window: more } } };
    expect(lines(state)[9]).to.match(/^│ {3}… +…/);
  });

  it('highlights the words of the filter', () => {
    const { state } = scene().press('/', 'd', 'e', 'p', 'enter', 'j');
    const row = frameLines(state).find((line) => line.includes('loy'))!;
    expect(row).to.match(/\x1b\[1;4;33mdep\x1b\[0mloy/); // eslint-disable-line no-control-regex
  });

  it('says what to do where there is none', () => {
    expect(screenText(scene({ tokens: [] }).state)).to.match(/No tokens yet\..*\n.* n issues the first one/);
  });

  it('shows how to clear a filter without matches', () => {
    const { state } = scene({ tokens: [] }).press('/', 'x', 'enter');
    expect(screenText(state)).to.match(/No tokens match x\..*\n.*esc shows all/);
  });

  it('shows why there is no data', () => {
    expect(screenText(scene({ status: null }).state)).to.contain('the daemon is unreachable');
  });

  it('makes similar names distinguishable, and control characters harmless', () => {
    const names = ['same\u200b', '\x1b[2Jclear', '\u202etxt'];
    const text = screenText(scene({ tokens: names.map((name, at) => token(at, { name })) }).state);
    expect(text).to.contain('same\\u{200b}').and.to.contain('\\x1b[2Jclear').and.to.contain('\\u202etxt');
  });

  it('fits numbers of any size into their column', () => {
    const huge = token(1, { max_requests: 2_147_483_647, request_count: 1_234_567 });
    expect(screenText(scene({ tokens: [huge] }).state)).to.contain('1.23M/2.15G');
  });
});

describe('projects screen', () => {
  it('has whole numbers of tokens', () => {
    const projects = [{ ...scene().setting.projects![0]!, active_token_count: 14_977, token_count: 21_000 }];
    for (const columns of [80, 120, 200]) {
      expect(screenText(scene({ tab: 'projects', columns, projects }).state)).to.contain(' 14,977/21,000 ');
    }
  });

  it('shows name, state, figures, the provider and the end of the key', () => {
    const { state } = scene({ tab: 'projects', columns: 140 });
    const text = screenText(state);
    expect(text).to.match(/batch +◌ inactive +2\/3 +0 +0 +\$0 +∞ +never +default +…9f2c +30d ago/);
    expect(text).to.match(/web +● active .* \$300\.10 +40% /);
  });

  it('says what to do where there is none', () => {
    expect(screenText(scene({ tab: 'projects', projects: [] }).state)).to.contain('n creates the first one');
  });
});

describe('audit and events screens', () => {
  for (const [columns, rows] of [
    [80, 24],
    [100, 30],
    [120, 40],
  ] as const) {
    it(`show action, subject and reason at ${columns}x${rows} (finding A9)`, () => {
      const text = screenText(scene({ tab: 'audit', columns, rows }).state);
      expect(text).to.match(/TIME +ACTION .*SUBJECT .*REASON/);
      expect(text).to.match(/token\.revoke .* cli .* ci-deploy .*leaked in CI/);
    });
  }

  it('show action and subject at 50x10 (finding A9)', () => {
    const text = screenText(scene({ tab: 'audit', columns: 50, rows: 10 }).state);
    expect(text).to.match(/TIME +ACTION .*SUBJECT/);
  });

  it('show the newest at the bottom, and follow it', () => {
    const shown = lines(scene({ tab: 'audit', rows: 16 }).state);
    expect(shown.at(-4)).to.match(/^│> .*token\.revoke/);
    expect(shown.at(-3)).to.contain('following · 50 loaded');
  });

  it('count new items while the cursor is further up', () => {
    const above = scene({ tab: 'audit', rows: 16 }).press('k', 'k');
    above.act({
      on: 'streamed',
      streamed: [1, 2, 3].map((number) => ({
        of: 'audit',
        item: { ...above.setting.audit![0]!, id: `new-${number}` },
      })),
    });
    expect(screenText(above.state)).to.contain('3 new below (G)');
    expect(lines(above.state)[1]).to.contain('4 Audit +3');
    expect(screenText(above.press('G').state))
      .to.contain('following')
      .and.not.to.contain('new below');
  });

  it('show all details of an item below the list', () => {
    const { state } = scene({ tab: 'audit', rows: 30 }).press('enter');
    const text = screenText(state);
    expect(text)
      .to.match(/record +0197/)
      .and.to.match(/token +job-1 +[0-9a-f-]{36} /);
    expect(text).to.contain('> ');
  });

  it('show who made a change, and uses by their hour', () => {
    const time = new Date(2026, 10, 23, 3).toISOString();
    const audit = [
      record(1, { action: 'token.use', actor: 'token', count: 3, time }),
      record(2, { user: 'ana@laptop', ...ofToken(TOKENS[0]!) }),
    ];
    const whole = screenText(scene({ tab: 'audit', columns: 140, rows: 20, audit }).state);
    expect(whole).to.match(/2026-11-23 03h +token\.use/);
    expect(whole).to.match(/ana@laptop \(cli\) +ci-deploy /);
    expect(screenText(scene({ tab: 'audit', columns: 80, rows: 20, audit }).state)).to.match(/ 03h +token\.use/);
    const details = screenText(scene({ tab: 'audit', columns: 80, rows: 30, audit }).press('k', 'enter').state);
    expect(details).to.contain('hour from 2026-11-23 03:00:00');
  });

  for (const [columns, rows] of [
    [80, 24],
    [120, 40],
    [200, 60],
  ] as const) {
    it(`shows at ${columns}x${rows} what was changed, a batch as one row, and its members in the details`, () => {
      const batch = '7e6d5c4b-2f1a-4b3c-9d8e-5a6b7c8d9e0f';
      const audit = [
        record(1, { action: 'project.update', ...ofProject(PROJECTS[0]!), details: { name: ['web', 'shop'] } }),
        record(2, { batch, count: 514, request_id: null, ...ofProject(PROJECTS[0]!) }),
      ];
      const { state } = scene({ tab: 'audit', columns, rows, audit });
      const [updated = '', batched = ''] = lines(state).filter((line) => /project\.update|token\.revoke/.test(line));
      expect(updated).to.contain('name: web ->');
      if (columns > 80) expect(updated).to.contain('name: web -> shop');
      expect(batched).to.contain('×514');
      const members = [
        record(4, { batch, token_id: 'a', token_name: 'alpha' }),
        record(3, { batch, outcome: 'denied', token_name: null }),
      ];
      const opened = { ...state.audit, opened: { ...audit[1]!, id: batch } };
      const text = screenText({ ...state, audit: opened, members: { batch, records: members } });
      expect(text)
        .to.match(/batch +7e6d5c4b/)
        .and.to.match(/● token\.revoke +alpha/);
    });
  }

  it('show in words what a token may use since a change', () => {
    const details = { limits: [null, { concurrent: 4 }], allow: [{ models: ['gpt-5'] }, null] };
    const audit = [record(1, { action: 'token.update', ...ofToken(TOKENS[0]!), details })];
    const text = screenText(scene({ tab: 'audit', columns: 200, rows: 60, audit }).press('enter').state);
    expect(text).to.contain('limits: unlimited -> 4 at a time, allow: mod');
    expect(text).to.match(/allow +models gpt-5 -> everything/);
  });

  it('show who made a change and why at 80 columns', () => {
    const audit = [record(2, { user: 'ana@laptop', reason: 'leaked', ...ofToken(TOKENS[0]!) })];
    const text = screenText(scene({ tab: 'audit', columns: 80, rows: 20, audit }).state);
    expect(text).to.match(/token\.revoke +● +ana@laptop +ci-deploy +leaked /);
  });

  it('show the date of events of another day', () => {
    const [event] = scene().setting.events!;
    const events = [
      { ...event!, time: new Date(2026, 10, 21, 17, 48).toISOString() },
      { ...event!, id: 'x' },
    ];
    const text = (columns: number) => screenText(scene({ tab: 'events', columns, rows: 20, events }).state);
    expect(text(120)).to.match(/ 11-21 17:48 /);
    expect(text(80)).to.match(/ 26-11-21 [^]* \d\d:\d\d:\d\d /);
  });

  it('have whole names of tokens at 120 and 200 columns, and at 80 with the request beside them', () => {
    const [event] = scene().setting.events!;
    const events = [{ ...event!, token_name: 'support-bot-user-1358', project_name: 'data-platform-batch' }];
    const text = (columns: number) => screenText(scene({ tab: 'events', columns, rows: 20, events }).state);
    for (const columns of [80, 120, 200]) {
      expect(text(columns)).to.match(/ support-bot-user-1358 .* POST \/v1/);
    }
  });

  it('show the outcome of each request with a sign and a colour', () => {
    const text = screenText(scene({ tab: 'events', columns: 120, rows: 30 }).state);
    expect(text).to.match(/● 200 {2} +ci-deploy/);
    expect(text)
      .to.match(/▲ 429 +cap spent +job/)
      .and.to.match(/✗ 502 +provider unreachable +job/);
    expect(text).to.match(/gpt-4o-mini +POST .* 812 ms/);
  });

  for (const [columns, rows] of [
    [80, 24],
    [120, 40],
    [200, 60],
  ] as const) {
    it(`show why each request failed, uncut, at ${columns}x${rows}`, () => {
      const failed = { status: 401, outcome: 'refused', code: 'unauthorized' } as const;
      const events = [
        request(0, { ...failed, error: 'the token is revoked' }),
        request(1, { ...failed, error: 'the token is expired' }),
        request(2, { ...failed, error: 'unauthorized' }),
        request(3, { status: 429, outcome: 'refused', code: 'request_limit_reached' }),
        request(4, { status: 200, outcome: 'provider_error', code: 'overloaded_error' }),
        request(5, { status: 429, outcome: 'upstream_refused' }),
        request(6, { status: 413, outcome: 'refused', code: 'body_too_large' }),
        request(7, { status: 499, outcome: 'client_closed' }),
      ].map((event) => ({ ...event, ...ofToken(TOKENS[0]!) }));
      const text = screenText(scene({ tab: 'events', columns, rows, events }).state);
      expect(text).to.match(/TIME +STATUS +WHY +TOKEN/);
      for (const why of [
        '401 +revoked',
        '401 +expired',
        '401 +unknown token',
        '429 +cap spent',
        '200 +overloaded_error',
        '429 +provider rate limit',
        '413 +body too large',
        '499 +client left',
      ])
        expect(text).to.match(new RegExp(`. ${why} +ci-deploy`));
    });
  }

  it('say what to do about a failure', () => {
    const events = [
      request(0, { status: 401, outcome: 'refused', code: 'unauthorized', error: 'the token is expired' }),
    ];
    const text = screenText(scene({ tab: 'events', rows: 40, events }).press('enter').state);
    expect(text).to.match(/why +the token is expired[^]*remedy +issue the token again, because its expiry/);
  });

  it('show why a request failed first, at every size', () => {
    for (const [columns, rows] of [
      [50, 10],
      [80, 24],
      [120, 40],
    ] as const) {
      const text = screenText(scene({ tab: 'events', columns, rows }).press('k', 'enter').state);
      expect(text, String(columns)).to.match(/request +502 POST \/v1\/chat\/completions/);
      expect(text, String(columns)).to.match(/why +upstream unreachable \(ECONNREFUSED\)/);
      expect(text, String(columns)).to.match(/outcome +upstream_error +upstream_unreachable/);
    }
    const wide = screenText(scene({ tab: 'events', columns: 120, rows: 50 }).press('k', 'enter').state);
    for (const line of [
      /of +\S+ {2}in web/,
      /model +gpt-4o-mini/,
      /ids +\S+/,
      /token +[0-9a-f-]{36}/,
      /project +[0-9a-f-]{36}/,
    ])
      expect(wide).to.match(line);
  });

  it('wrap a long sentence', () => {
    const error = 'the request was refused for a reason that needs a long sentence, longer than the terminal is wide';
    const events = [request(0, { status: 400, code: 'malformed_request', outcome: 'refused', error })];
    const text = screenText(scene({ tab: 'events', columns: 60, rows: 30, events }).press('enter').state);
    expect(text)
      .to.match(/why +the request was refused/)
      .and.to.match(/\n│ +a long sentence, longer than the terminal is +│\n│ +wide/);
  });

  it('show times, bytes and tokens of a request', () => {
    const text = screenText(scene({ tab: 'events', rows: 40 }).press('k', 'k', 'k', 'enter').state);
    expect(text).to.contain('took 812 ms').and.to.contain('first byte after 240 ms, provider 805 ms');
    expect(text).to.contain('1.20 kB in, 9.31 kB out, streamed');
    expect(text).to.contain('412 in, 96 out, 508 in total');
    const usage = {
      ...{ prompt_tokens: 412, completion_tokens: 96, total_tokens: 508, source: 'provider' as const },
      ...{ cache_read_tokens: 300, cache_write_tokens: 20 },
    };
    const cached = scene({ tab: 'events', rows: 40, columns: 100, events: [request(0, { usage })] }).press('enter');
    expect(screenText(cached.state)).to.contain('412 in (prompt cache: 300 read, 20 written), 96 out');
  });

  it('report that there are no events yet', () => {
    expect(screenText(scene({ tab: 'events', events: [] }).state)).to.contain('No events yet');
  });

  it('report a lost stream', () => {
    const { state } = scene({ tab: 'events' }).act({ on: 'stream', of: 'events', is: 'lost', failure: null });
    expect(screenText(state)).to.contain('stream disconnected');
  });

  it('keep the row under the cursor visible at every height', () => {
    for (const rows of [15, 20, 24, 60]) {
      const { state } = scene({ tab: 'audit', rows }).press('k', 'k', 'k', 'k', 'k', 'k', 'enter');
      expect(frameLines(state).map(stripVTControlCharacters).join('\n'), String(rows)).to.match(/\n│> /);
    }
  });
});
