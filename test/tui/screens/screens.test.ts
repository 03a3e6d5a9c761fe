import { expect } from 'chai';
import { screenText } from './rendering.js';
import { scene } from './scenes.js';
import { at, NOW_MS, record, STATUS, usageLine } from './screen-fixture.js';

describe('overview screen', () => {
  it('shows the health of the daemon', () => {
    const text = screenText(scene({ tab: 'overview', columns: 120, rows: 40 }).state);
    expect(text).to.contain('● ready  llmp 0.1.0, up 52h  web-1');
    expect(text).to.contain('p50 412 ms, p95 1,890 ms');
    expect(text).to.contain('● sqlite, schema 0001-first-schema');
    expect(text).to.contain('● in-memory, 0 buffered, 0 dropped');
    expect(text).to.contain('● 1,204 records, 0 failures');
    expect(text).to.contain('● memory, 62% hits');
    expect(text).to.match(/redis +○ off/);
  });

  it('shows missing and degraded parts first', () => {
    const status = { ...STATUS, status: 'not ready' as const, missing: ['database'], degraded: ['event bus'] };
    for (const columns of [60, 120]) {
      const text = screenText(scene({ tab: 'overview', columns, rows: 24, status }).state);
      expect(text).to.contain('✗ not ready').and.to.contain('! missing: database').and.to.contain('! degraded: event');
    }
  });

  it('shows tokens by state, with a bar for each', () => {
    const text = screenText(scene({ tab: 'overview', columns: 120, rows: 40 }).state);
    expect(text).to.contain('Tokens 4,213, projects 11 of 12 active');
    expect(text)
      .to.match(/● active +3,811 {2}█{20,}/)
      .and.to.match(/▲ limited +61 {2}▌?/);
  });

  it('charts the traffic of the last minutes', () => {
    const it = scene({ tab: 'overview', columns: 120, rows: 40 });
    for (let second = 2; second < 60; second += 2) {
      const requests = { in_flight: 2, per_second: second, errors_per_second: 1 };
      it.act({ on: 'loaded', request: { of: 'status' }, data: { ...STATUS, requests } }, NOW_MS + second * 1_000);
    }
    const text = screenText(it.state);
    expect(text).to.match(/58 requests\/s {2}1\.0 errors\/s {2}2 in flight/);
    expect(text).to.match(/[\u2801-\u28ff]{10}/);
    expect(screenText({ ...it.state, look: { ...it.state.look, ascii: true } })).to.match(/[.:|#]{8}/);
  });

  it('charts the requests of the last 24 hours, with a mark under hours with errors', () => {
    const usage = [usageLine(0, 10), usageLine(5, 20, { errors: 3, refused: 2 })];
    const text = screenText(scene({ tab: 'overview', columns: 120, rows: 40, usage }).state);
    expect(text).to.contain('30 requests  3 errors  2 refused  15 hits').and.not.to.contain('cached');
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
    expect(text).to.match(/Expiring next[^]*in 12m +3fa91c2e +ci-deploy +web +4,211\/5,000/);
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
