import { expect } from 'chai';
import { screenText } from './rendering.js';
import { scene } from './scenes.js';
import { at, NOW_MS, record, STATUS, token, usageLine } from './screen-fixture.js';
import { incidentExample } from '../../../daemon/api/schemas.js';
import type { WireIncident } from '../../../daemon/api/contract.js';
import { aTop, aTopRow } from '../../support/factories.js';

const incident = (fields: Partial<WireIncident>): WireIncident => ({
  ...incidentExample,
  project_name: 'checkout-service-of-the-web-shop',
  ...fields,
});
const INCIDENTS = [
  incident({}),
  incident({
    kind: 'failing_token',
    token_id: '3fa91c2e-0000-4000-8000-000000000009',
    token_name: 'nightly-report-of-the-finance-team',
    project_name: 'web',
    why: 'expired',
    remedy: 'issue the token again, because its expiry cannot be changed',
  }),
  incident({
    ...{ kind: 'slow_provider', project_id: '3fa91c2e-0000-4000-8000-000000000008', project_name: 'web' },
    ...{ why: 'provider slow', remedy: 'see the status page of the provider, or use a faster model' },
    ...{ failures: 0, p50_ms: 8_200, earlier_p50_ms: 1_100 },
  }),
];

const LONG = 'internal-tools/finance/quarterly-report-generator-with-a-long-name';

describe('overview screen', () => {
  it('cuts long names on a narrow screen, but neither causes nor figures', () => {
    const model = 'ft:gpt-4o-2024-08-06:acme-corp::AbC123xyz';
    const line = usageLine(0, 9, { model, cost_usd: '22.81', project_id: 'long', project_name: LONG });
    const incidents = [incident({ project_name: LONG })];
    for (const columns of [60, 80]) {
      const text = screenText(scene({ tab: 'overview', columns, rows: 24, costs: [line], incidents }).state);
      expect(text).to.match(/project internal-tools\S*… {2}key refused/);
      expect(text).to.match(/cost, 7 days(?: \$22\.81)?: \S+… \$22\.81, \S+… \$22\.81 /);
    }
  });

  it('shows the health of the daemon', () => {
    const text = screenText(scene({ tab: 'overview', columns: 120, rows: 40 }).state);
    expect(text).to.contain('● ready  llmp 0.1.0, up 52h');
    expect(text).to.contain('p50 412 ms, p95 1,890 ms');
    expect(text).to.contain('● sqlite, schema 0001-first-schema');
    expect(text).to.contain('● in-memory, 0 buffered, 0 dropped');
    expect(text).to.contain('● 1,204 records, 0 failures');
    expect(text).to.contain('● memory, 62% hits');
    expect(text).to.match(/redis +○ off/);
  });

  it('leads with what is wrong, why, and what to do, at every size', () => {
    const status = { ...STATUS, status: 'not ready' as const, missing: ['database'], degraded: ['event_bus'] };
    for (const [columns, rows] of [
      [80, 24],
      [120, 40],
      [200, 60],
    ] as const) {
      const text = screenText(scene({ tab: 'overview', columns, rows, status, incidents: INCIDENTS }).state);
      const wrong = text.slice(0, text.indexOf('Traffic, last hour'));
      expect(wrong).to.match(/Problems 5/);
      for (const [subject, why, remedy] of [
        ['llmp', 'missing: database', 'run `llmp doctor`'],
        ['llmp', 'degraded: event bus', 'run `llmp doctor`'],
        ['project checkout-service-of-the-web-shop', 'key refused', 'give the project a key that its provider accepts'],
        ['token nightly-report-of-the-finance-team', 'expired', 'issue the token again'],
        ['project web', 'provider slow', 'see the status page'],
      ] as const) {
        expect(wrong, `${columns}x${rows}`).to.match(new RegExp(`${subject}[^]*?${why}[^]*?${remedy}`));
      }
      expect(wrong).to.contain('84 of 91 requests').and.not.to.contain('Nothing is wrong');
    }
  });

  it('opens with the first problem selected, a failure before what merely limits llmp', () => {
    const status = { ...STATUS, degraded: ['audit_file'] };
    const it = scene({ tab: 'overview', columns: 120, rows: 40, status, incidents: INCIDENTS });
    expect(screenText(it.state)).to.match(/▲ llmp +degraded: audit file[^]*run `llmp audit verify`/);
    expect(screenText(it.state)).to.match(/> *✗ project checkout-service-of-the-web-shop/);
    it.press('j');
    expect(screenText(it.state)).to.match(/> *✗ token nightly-report-of-the-finance-team/);
  });

  it('is announced on every other screen while something is wrong, at every size', () => {
    for (const columns of [80, 120, 200]) {
      for (const tab of ['tokens', 'events', 'top'] as const) {
        const tabs = (incidents: WireIncident[]) =>
          screenText(scene({ tab, columns, rows: 24, incidents }).state).split('\n')[1];
        expect(tabs(INCIDENTS)).to.match(/1 Overview ✗3 /);
        expect(tabs(INCIDENTS.slice(2))).to.match(/1 Overview ▲1 /);
        expect(tabs([])).to.match(/1 Overview {2}2 Tokens/);
      }
    }
  });

  it('has room for failures of all kinds, on one line or on two', () => {
    const kinds = { errors: 5_818, refused: 956, upstream_refused: 643, failed: 4_207, cut: 12 };
    const top = aTop({ rows: [aTopRow({ requests: 21_081, ...kinds })] });
    const text = screenText(scene({ tab: 'overview', columns: 120, rows: 40, top }).state);
    const left = text.split('\n').map((line) => line.slice(1, 59).trim());
    expect(left.join(' ')).to.contain('5,818 failures: 956 refused, 643 provider refused, 4,207 failed, 12 cut');
  });

  it('says which project has cost most in the last days, and which model in it, at every size', () => {
    for (const [columns, rows] of [
      [80, 24],
      [120, 40],
      [200, 60],
    ] as const) {
      const it = scene({ tab: 'overview', columns, rows });
      const text = screenText(it.state);
      if (columns === 80) expect(text).to.contain('cost, 7 days $282.63+: web $221.60, gpt-5 $180.50');
      else expect(text).to.match(/Cost, last 7 days: \$282\.63\+[^]*web +\$221\.60 +most gpt-5 \$180\.50/);
      if (columns > 80) expect(text).to.match(/research +\$61\.03\+[^]*batch +unknown/);
      it.press(...Array.from({ length: 14 }, () => 'j'));
      expect(screenText(it.state)).to.match(/> *web +\$221\.60/);
      expect(screenText(it.press('enter').state)).to.contain('overview › web');
    }
    const none = scene({ tab: 'overview', columns: 120, rows: 40, costs: [] });
    expect(screenText(none.state)).to.contain('No costs.');
  });

  it('warns of budgets that are nearly spent, and opens whose they are', () => {
    const budget = { usd: '25.00', period: 'month', mode: 'soft' } as const;
    const spending = (name: string, usd: string, mode: 'soft' | 'shadow' = 'soft') => {
      const { spent } = token(1);
      return token(name.length, { name, budget: { ...budget, mode }, spent: { ...spent, usd } });
    };
    const spenders = [spending('intern', '25.01'), spending('bot', '20.00'), spending('trial', '26.00', 'shadow')];
    const it = scene({ tab: 'overview', columns: 120, rows: 40, spenders });
    const text = screenText(it.state);
    expect(text).to.contain('Problems 3');
    expect(text).to.match(/✗ token intern in \S+ +budget spent +\$25\.01 of \$25 this month \(100%\) /);
    expect(text).to.match(/▲ token bot in \S+ +budget nearly spent +\$20\.00 of \$25 this month \(80%\) /);
    expect(text).to.match(/▲ token trial in[^]*nothing is refused in shadow mode/);
    expect(text).to.contain('raise the budget, or wait until the next month (UTC)');
    it.press('enter');
    expect(it.state.views.at(-1)).to.include({ screen: 'token', id: spenders[0]!.id });
  });

  it('says in one line that nothing is wrong, but not before it is known', () => {
    const it = scene({ tab: 'overview', columns: 80, rows: 24 });
    expect(screenText(it.state)).to.match(/\n +● Nothing is wrong *\n┌ Traffic/);
    const unknown = { ...it.state, overview: { ...it.state.overview, incidents: null } };
    expect(screenText(unknown)).not.to.contain('Nothing is wrong');
  });

  it('scrolls to the selected problem, and keeps room for the traffic', () => {
    const incidents = Array.from({ length: 12 }, (_, number) =>
      incident({ kind: 'failing_token', token_id: `token-${number}`, token_name: `client-${number}` }),
    );
    const it = scene({ tab: 'overview', columns: 80, rows: 24, incidents });
    expect(screenText(it.state)).to.contain('client-0').and.to.contain('requests/s').and.not.to.contain('client-9');
    it.press(...Array.from({ length: 9 }, () => 'j'));
    expect(screenText(it.state)).to.match(/> *✗ token client-9 in checkout/);
  });

  it('leaves hardly a row empty at 120x40, and cuts neither names nor IDs where there is room', () => {
    const instance = '0197a6b2-11c3-7000-8000-3f5a9c1d2e4b';
    const name = 'a-client-with-a-name-of-forty-characters';
    const tokens = [token(1, { name }), ...Array.from({ length: 20 }, (_, number) => token(number + 2))];
    const top = aTop({ rows: [aTopRow({ token_name: name, errors: 12, failed: 12, requests: 40 })] });
    const status = { ...STATUS, instance };
    const text = screenText(scene({ tab: 'overview', columns: 120, rows: 40, status, tokens, top }).state);
    expect(text).to.contain(instance);
    expect(text.match(new RegExp(name, 'g')), text).to.have.lengthOf(2);
    const blank = text.split('\n').filter((line) => /^[│ ]*$/.test(line));
    expect(blank.length, text).to.be.at.most(3);
  });

  it('shows tokens by state, with a bar for each', () => {
    const text = screenText(scene({ tab: 'overview', columns: 120, rows: 40 }).state);
    expect(text).to.contain('Tokens 4,213, projects 11 of 12 active');
    expect(text)
      .to.match(/● active +3,811 {2}█{20,}/)
      .and.to.match(/▲ limited +61 {2}▌?/);
  });

  it('charts the traffic of the last hour, with a mark under steps with failures', () => {
    const rows = [aTopRow({ requests: 90, errors: 3, failed: 3, history: [10, 0, 80], error_history: [0, 0, 3] })];
    const requests = { in_flight: 2, per_second: 58, errors_per_second: 1 };
    const setting = { status: { ...STATUS, requests }, top: aTop({ rows }) };
    const text = screenText(scene({ tab: 'overview', columns: 120, rows: 40, ...setting }).state);
    expect(text).to.match(/58 requests\/s {2}1\.0 failures\/s {2}2 in flight/);
    expect(text).to.contain('90 in the hour  3 failures: 3 failed');
    expect(text)
      .to.match(/█/)
      .and.to.match(/│ +! +│/)
      .and.to.match(/1 h ago +now/);
  });

  it('lists the tokens with the most failures in the last hour, by kind', () => {
    const rows = [aTopRow({ token_name: 'ci', errors: 9, refused: 7, upstream_refused: 2 }), aTopRow({ errors: 0 })];
    const text = screenText(scene({ tab: 'overview', columns: 120, rows: 40, top: aTop({ rows }) }).state);
    expect(text).to.match(/Most failures, last hour[^]*ci +web +9 +refused 7 +provider refused 2/);
  });

  it('charts the requests of the last 24 hours, with a mark under hours with failures', () => {
    const usage = [usageLine(0, 10), usageLine(5, 20, { errors: 5, refused: 2, failed: 3 })];
    const text = screenText(scene({ tab: 'overview', columns: 120, rows: 40, usage }).state);
    expect(text).to.contain('30 requests  5 failures: 2 refused, 3 failed  15 hits').and.not.to.contain('cached');
    const cached = [usageLine(0, 10, { cache_read_tokens: 2_000 }), usageLine(5, 20, { cache_read_tokens: NaN })];
    const shown = screenText(scene({ tab: 'overview', columns: 160, rows: 40, usage: cached.slice(0, 1) }).state);
    expect(shown).to.contain('2,000 cached');
    expect(screenText(scene({ tab: 'overview', columns: 120, rows: 40, usage: cached }).state)).not.to.contain('NaN');
    expect(text)
      .to.match(/│ +! +│/)
      .and.to.match(/\d\d:00 +\d\d:00/);
  });

  it('lists the tokens that expire next', () => {
    const text = screenText(scene({ tab: 'overview', columns: 120, rows: 40 }).state);
    expect(text).to.match(/Expiring next[^]*in 12m +ci-deploy +web +4,211\/5,000 +3fa91c2e/);
  });

  it('shows the most important parts at the minimum size', () => {
    const text = screenText(scene({ tab: 'overview', columns: 50, rows: 10 }).state);
    expect(text).to.contain('14 requests/s');
  });

  it('reports that tokens could not be counted', () => {
    const status = { ...STATUS, tokens: null, projects: null };
    expect(screenText(scene({ tab: 'overview', columns: 120, rows: 40, status }).state)).to.contain(
      'The tokens could not be counted.',
    );
  });
});

describe('token screen', () => {
  const opened = () => scene({ columns: 120, rows: 50 }).press('enter');

  it('shows the token, its use, and the equivalent command line', () => {
    const text = screenText(opened().state);
    expect(text).to.contain('● active  expires in 12m  in web');
    expect(text).to.match(/█{20,}.*4,211 of 5,000 \(84%\), 789 left/);
    expect(text).to.contain('2,610 served from the cache (38%)');
    expect(text).to.match(/expires +2026-11-2\d \d\d:15:11 {2}in 12m/);
    expect(text).to.match(/llmp -c 'prod' token get 3fa91c2e-[0-9a-f-]+ {2}Y copies it/);
  });

  it('counts the requests of the last minute', () => {
    const it = opened();
    const event = { ...it.setting.events![0]!, time: at(0) };
    it.act({ on: 'streamed', streamed: [{ of: 'tokenEvents', item: event }] });
    it.act(
      { on: 'streamed', streamed: [{ of: 'tokenEvents', item: { ...event, id: 'another', time: at(0.5) } }] },
      NOW_MS + 30_000,
    );
    expect(screenText(it.state)).to.contain('2 requests in the last minute');
    expect(screenText(it.wait(35_000).state)).to.contain('1 request in the last minute');
  });

  it('shows all use in one line, then the changes, newest first, down to the creation (finding A7)', () => {
    const { id } = scene().setting.tokens![0]!;
    const of = (number: number, action: 'token.use' | 'token.create' | 'token.revoke') =>
      record(number, { token_id: id, action });
    const uses = Array.from({ length: 30 }, (_, number) => of(number, 'token.use'));
    const audit = [of(40, 'token.create'), of(35, 'token.revoke'), ...uses];
    const text = screenText(scene({ audit, rows: 60 }).press('enter').state);
    expect(text.match(/token\.use/g)).to.have.lengthOf(1);
    expect(text).to.match(/History[^]*token\.use [^\n]* requests? in total[^]*token\.revoke[^]*token\.create/);
  });

  it('says when it was last used, although uses are recorded by the hour', () => {
    const { id } = scene().setting.tokens![0]!;
    const tokens = [{ ...scene().setting.tokens![0]!, last_used_at: at(-0.05) }];
    const audit = [record(1, { token_id: id, action: 'token.use', time: at(-46) })];
    const text = screenText(scene({ tokens, audit, columns: 120, rows: 50 }).press('enter').state);
    expect(text)
      .to.match(/\d\dh +3s ago +token\.use/)
      .and.not.to.contain('46m ago');
  });

  it('shows the changes, newest first', () => {
    const text = screenText(opened().state);
    expect(text).to.match(/History[^]*● {2}token\.revoke +cli 10\.1\.2\.3/);
    expect(text.indexOf('08:11:11')).to.be.below(text.indexOf('07:47:11'));
  });

  it('scrolls to the end and no further', () => {
    const audit = Array.from({ length: 30 }, (_, number) =>
      record(number, { token_id: scene().setting.tokens![0]!.id, reason: `number ${number}` }),
    );
    const it = scene({ rows: 16, audit }).press('enter', 'G');
    expect(screenText(it.state).split('\n').at(-4)).to.contain('“number 0”');
    expect(screenText(it.press('k').state).split('\n').at(-4)).to.contain('“number 1”');
    expect(screenText(it.press('g').state)).to.contain('● active');
  });

  it('reports a token that no longer exists', () => {
    const it = opened();
    const failure = { kind: 'refused', status: 404, code: 'not_found', message: '', retryAfterMs: null } as const;
    it.act({ on: 'failed', request: { of: 'token', id: it.setting.tokens![0]!.id }, failure });
    expect(screenText(it.state)).to.contain('no longer exists');
  });
});

describe('cache screen', () => {
  it('shows the entries, the hits, and what x does', () => {
    const text = screenText(scene({ tab: 'cache' }).state);
    expect(text).to.contain('memory of this instance').and.to.contain('1,204, 18.9 MB');
    expect(text)
      .to.match(/█{10,}.* 62%/)
      .and.to.contain('2,610 of 4,211');
    expect(text).to.contain('x purges');
  });

  it('shows how to turn the cache on', () => {
    const cache = { backend: 'off' as const, entries: 0, bytes: 0, hits: 0, misses: 0 };
    expect(screenText(scene({ tab: 'cache', cache }).state)).to.contain('HTTP_CACHE_ENABLED=true');
  });
});
