/** Refusals by routes, models and limits: one of each code through a daemon, and every place that shows failures. */
import { expect } from 'chai';
import type { WireRequestEvent, WireTop, WireUsageLine } from '../../daemon/api/contract.js';
import { causeOf } from '../../daemon/api/request-outcome.js';
import { llmp } from '../cli/captured.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { type Fields, head, WEBSOCKET } from '../support/raw.js';
import { scraped, sumOf } from '../support/scrape.js';

const CHAT = 'POST /v1/chat/completions';
const MODELS = { allow: { models: ['gpt-5-mini'] } };

/** A token that is refused, and the request. Before it, `before` others are forwarded, or are under way. */
const REFUSED: Record<string, { token: object; route: string; body?: string; fields?: Fields; before?: number }> = {
  route_not_allowed: { token: { allow: { routes: ['GET /v1/none'] } }, route: 'GET /v1/models' },
  route_escapes: { token: { max_requests: 5 }, route: 'POST /v1/batches', body: '{}' },
  model_not_allowed: { token: MODELS, route: CHAT, body: '{"model":"gpt-5"}' },
  model_not_named: { token: MODELS, route: CHAT, body: '{}' },
  model_not_checkable: { token: MODELS, route: 'GET /v1/realtime', fields: WEBSOCKET },
  rate_limited: { token: { limits: { requests_per_minute: 1 } }, route: 'GET /v1/models', before: 1 },
  budget_exhausted: {
    token: { budget: { tokens: 1, mode: 'hard' } },
    route: CHAT,
    body: '{"model":"m","max_tokens":1,"messages":[]}',
  },
  model_not_priced: { token: { budget: { usd: '1', mode: 'hard' } }, route: CHAT, body: '{"model":"nobody-knows"}' },
  cost_not_bounded: { token: { budget: { usd: '1', mode: 'hard' } }, route: CHAT, body: '{"messages":[]}' },
  concurrency_limited: { token: { limits: { concurrent: 1 } }, route: 'GET /v1/models', before: 1 },
};
const CODES = Object.keys(REFUSED);

describe('requests that a policy refuses', () => {
  let scene: ProxyFixture;

  before(async () => {
    scene = await ProxyFixture.open({ ENABLE_METRICS: 'true' });
    for (const [code, { token: terms, route, body, fields, before: others = 0 }] of Object.entries(REFUSED)) {
      const { token } = await scene.daemon.createToken(scene.project.id, { name: code, ...terms });
      const content: Fields =
        body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
      const bytes = head(route, token, { ...content, ...fields }) + (body ?? '');
      for (let n = 0; n < others; n++) {
        if (code !== 'concurrency_limited') {
          expect((await scene.send(bytes)).status).to.equal(200);
          continue;
        }
        const already = scene.provider.received.length;
        scene.provider.answer = () => undefined;
        await scene.client(bytes);
        await scene.reached(already + 1);
      }
      expect((await scene.send(bytes)).json, code).to.include({ code });
    }
    await eventually(
      'all have ended',
      () => scene.daemon.ended.filter(({ code }) => code !== null).length === CODES.length,
    );
    scene.daemon.daemon.scheduler.publishAll();
  });
  after(() => scene.close());

  const read = async <T>(path: string): Promise<T> => (await scene.daemon.manage('GET', `/manage/${path}`)).body as T;

  it('are events with the code, a cause, and what to do', async () => {
    const events = await read<WireRequestEvent[]>('events?outcome=refused');
    expect(events.map(({ token_name: name, code }) => [name, code])).to.have.deep.members(
      CODES.map((code) => [code, code]),
    );
    for (const event of events) {
      const { why, remedy } = causeOf(event) ?? { why: '' };
      expect(why, event.code ?? '').to.match(/^[a-z ]{5,20}$/);
      expect(remedy, why).to.be.a('string');
    }
  });

  it('are found by code and cause on the command line', async () => {
    const env = { LLMP_SERVER: scene.daemon.url, MANAGEMENT_TOKEN, LANG: 'C.UTF-8' };
    const listed = await llmp('events list code:model_not_allowed --no-color', { env, terminal: 200 });
    expect(listed.out.match(/model not allowed/g)).to.have.lengthOf(1);
    const { out } = await llmp(['events', 'list', 'why:"too many at once"', '-o', 'id'], { env });
    expect(out.trim().split('\n')).to.have.lengthOf(1);
  });

  it('are refusals in usage and in Top, each of its token', async () => {
    const usage = await read<WireUsageLine[]>('usage?by=token');
    const { rows } = await read<WireTop>('top?by=token');
    for (const code of CODES) {
      for (const line of [usage.find((it) => it.token_name === code), rows.find((it) => it.token_name === code)]) {
        expect(line, code).to.include({ errors: 1, refused: 1, upstream_refused: 0, failed: 0 });
      }
    }
  });

  it('are counted by code, without a label that names a token', async () => {
    const series = await scraped(`${scene.daemon.url}/metrics`);
    const own = series.filter(({ name }) => name === 'llmp_policy_refusals_total');
    for (const { labels } of own) expect(labels).to.have.all.keys('code');
    for (const code of CODES) {
      expect(sumOf(own, 'llmp_policy_refusals_total', { code }), code).to.equal(1);
      expect(sumOf(series, 'llmp_requests_total', { code }), code).to.equal(1);
    }
  });
});
