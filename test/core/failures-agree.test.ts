/** Failures are counted and named alike everywhere: one request of each kind through a daemon, and every place that shows them. */
import { expect } from 'chai';
import { ALL_FAILURES, FAILED_OUTCOMES, TOP_DIMENSIONS, TOP_WINDOWS } from '../../daemon/api/vocabulary.js';
import type { WireStatus, WireTop, WireUsageLine } from '../../daemon/api/contract.js';
import { TestBrowser } from '../admin/test-browser.js';
import { llmp } from '../cli/captured.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { json } from '../support/provider.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { screenText } from '../tui/screens/rendering.js';
import { scene as screens } from '../tui/screens/scenes.js';

/** A request that was answered, one that its client left, and the failures. */
const COUNTS = { requests: 7, errors: 5, refused: 1, upstream_refused: 1, failed: 2, cut: 1 };
const WORDS = '5 failures: 1 refused, 1 provider refused, 2 failed, 1 cut';

describe('the failures of requests', () => {
  let scene: ProxyFixture;

  before(async () => {
    scene = await ProxyFixture.open({ ENABLE_METRICS: 'true' });
    const { daemon, provider } = scene;
    const ended = (requests: number) =>
      eventually(`${requests} requests have ended`, () => daemon.ended.length === requests);
    await scene.get();
    (await scene.midStream()).client.destroy();
    await ended(2);
    (await scene.midStream()).upstream.destroy();
    await ended(3);
    for (const status of [404, 500]) {
      provider.answer = (_req, res) => {
        json(res, status, {});
      };
      await scene.get();
    }
    await ended(5);
    await scene.midStream();
    await daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
    await ended(6);
    await scene.get();
    await ended(7);
    expect(daemon.ended.map(({ outcome }) => outcome)).to.deep.equal([
      ...['ok', 'client_closed', 'truncated', 'upstream_refused', 'upstream_error', 'revoked', 'refused'],
    ]);
  });
  after(() => scene.close());

  const read = async <T>(path: string): Promise<T> => (await scene.daemon.manage('GET', `/manage/${path}`)).body as T;
  const usage = () => read<WireUsageLine[]>('usage?by=hour');
  const top = (by: string, window = '1h') => read<WireTop>(`top?by=${by}&window=${window}`);
  const command = async (args: string, terminal?: number) => {
    const env = { LLMP_SERVER: scene.daemon.url, MANAGEMENT_TOKEN, LANG: 'C.UTF-8' };
    const { out, exitCode } = await llmp(args, { env, ...(terminal !== undefined && { terminal }) });
    expect(exitCode).to.equal(0);
    return out;
  };

  it('have the same sums in usage, by whatever it is grouped', async () => {
    const reports = ['', '?by=token', '?by=project,hour', '?by=token,hour', '?by=token,project,day'];
    for (const by of reports) expect((await read<object[]>(`usage${by}`))[0], by).to.include(COUNTS);
  });

  it('have the same sums in the top rows and their total', async () => {
    for (const window of TOP_WINDOWS) {
      for (const by of TOP_DIMENSIONS) {
        const { rows, total } = await top(by, window);
        expect(rows[0], `${by} ${window}`).to.include(COUNTS);
        expect(total).to.include(COUNTS);
        for (const { history, error_history: failures } of [rows[0]!, total]) {
          expect([history, failures].map((steps) => steps.reduce((sum, each) => sum + each, 0))).to.deep.equal([7, 5]);
        }
      }
    }
  });

  it('have the same share in the status, in the project and among events', async () => {
    const { requests } = await read<WireStatus>('status');
    expect(requests!.errors_per_second / requests!.per_second).to.be.closeTo(5 / 7, 0.01);
    expect(await read(`projects/${scene.project.id}`)).to.include({ requests_24h: 7, errors_24h: 5 });
    const events = await read<{ events: object[] }>(`events?outcome=${ALL_FAILURES}`);
    expect(JSON.stringify(events).match(/"outcome":/g)).to.have.lengthOf(5);
  });

  it('select the token by their number', async () => {
    const found = async (query: string) => JSON.stringify(await read(`tokens?${query}`)).includes(scene.token.id);
    expect([await found('errors_over=4'), await found('errors_over=5')]).to.deep.equal([true, false]);
  });

  it('are the outcomes of the metrics that are not ok', async () => {
    const metrics = await (await fetch(`${scene.daemon.url}/metrics`)).text();
    const sumOf = (outcomes: readonly string[]) =>
      outcomes.reduce(
        (sum, outcome) =>
          sum + Number(new RegExp(`llmp_request_outcomes_total\\{outcome="${outcome}"\\} (\\d+)`).exec(metrics)?.[1]),
        0,
      );
    expect([sumOf(FAILED_OUTCOMES), sumOf(['ok', 'client_closed'])]).to.deep.equal([5, 2]);
    expect(metrics).to.contain(`Failures are ${FAILED_OUTCOMES.join(', ')}.`);
  });

  it('have the same names and numbers on the command line', async () => {
    const table = await command('usage --by project --no-color', 200);
    expect(table).to.match(/REQUESTS +HITS +FAILURES +REFUSED +PROVIDER REFUSED +FAILED +CUT /);
    expect(table).to.match(/ 7 +█+ +0 +5 +1 +1 +2 +1 /);
    const rows = await command('top token --no-color', 200);
    expect(rows).to.match(/REQUESTS +FAILURES +FAILURE KINDS/);
    expect(rows).to.match(/ 7 +5 +refused 1, provider refused 1, /);
    expect(rows).to.match(/\ntotal +7 +5 /);
    expect(await command('status')).to.match(/^requests .*\/s, failures [0-9.]+\/s/m);
    expect((await command('events list --failed -o id')).trim().split('\n')).to.have.lengthOf(5);
    expect((await command('events list outcome:failed -o id')).trim().split('\n')).to.have.lengthOf(5);
  });

  it('have the same names and numbers in the terminal UI', async () => {
    const shown = async (tab: 'overview' | 'top') => {
      const setting = { status: await read<WireStatus>('status'), usage: await usage(), top: await top('token') };
      return screenText(screens({ tab, columns: 200, rows: 60, ...setting }).state);
    };
    const overview = await shown('overview');
    expect(overview)
      .to.contain(`7 in the hour  ${WORDS}`)
      .and.to.match(/\d failures\/s/);
    expect(await shown('top'))
      .to.contain(`7 requests, ${WORDS}`)
      .and.to.match(/refused 1 +provider refused 1 +failed 2 +cut 1/);
  });

  it('have the same names and numbers in the Admin UI', async () => {
    const browser = new TestBrowser(scene.daemon.url);
    await browser.logIn(MANAGEMENT_TOKEN);
    const overview = (await browser.get()).html;
    expect(overview).to.contain('aria-label="Failures: 5, up to 5 per hour. Failed 2,');
    expect((await browser.get('top')).html).to.contain('7 requests, 5 failures. Read ');
    expect((await browser.get(`projects/${scene.project.id}`)).html).to.contain('7 requests, 5 failures');
  });
});
