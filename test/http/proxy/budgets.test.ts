/** What budgets do with requests. What the provider bills is judged by the stand-in's own log. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type {
  WireBudgetEvent,
  WireEvent,
  WireProject,
  WireToken,
  WireTokenCreated,
} from '../../../daemon/api/contract.js';
import { nanoOf, usdOf } from '../../../daemon/api/money.js';
import type { Budget } from '../../../daemon/api/vocabulary.js';
import { type Bound, boundOf } from '../../../daemon/core/budget/bound.js';
import { temporaryFolder } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { type Answer, json } from '../../support/provider.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { type Fields, head, type RawResponse } from '../../support/raw.js';
import { Realtime } from '../../support/realtime.js';

const DAY_MS = 86_400_000;
/** Nano-USD per token. */
const [INPUT, OUTPUT] = [1_000, 2_000];
const USAGE = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 };
const BILLED = 10 * INPUT + 20 * OUTPUT;

function pricesFile(): string {
  const path = join(temporaryFolder(), 'prices.json');
  const prices = [
    { model: 'm', input: '1', output: '2', max_output: 1_000 },
    { model: 'unlimited', input: '1', output: '2' },
    { model: 'free', input: '0', output: '0', max_output: 1_000 },
    { model: 'gpt-realtime', input: '1', output: '2' },
  ];
  writeFileSync(path, JSON.stringify({ prices }));
  return path;
}

const asked = (fields: object = {}) =>
  JSON.stringify({ model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'hello' }], ...fields });

function boundFor(body: string): Bound {
  const request = {
    method: 'POST',
    target: '/v1/chat/completions',
    host: '127.0.0.1',
    contentType: 'application/json',
    body: Buffer.from(body),
  };
  const bound = boundOf(request, () => ({ maxOutput: 1_000, partTokens: null }));
  if ('why' in bound) throw new Error(bound.why);
  return bound;
}

const nanoFor = ({ inputTokens, outputTokens }: Bound) => inputTokens * INPUT + outputTokens * OUTPUT;

describe('budgets', function () {
  this.timeout(60_000);
  const scene = ProxyFixture.forEachTest(() => ({
    PRICES_FILE: pricesFile(),
    ENABLE_METRICS: 'true',
    HTTP_CACHE_ENABLED: 'true',
  }));

  const tokenWith = (budget: Partial<Budget> | null, more: object = {}) =>
    scene.daemon.createToken(scene.project.id, { budget, ...more });
  const patch = async (token: WireTokenCreated, budget: Partial<Budget> | null) => {
    expect((await scene.daemon.manage('PATCH', `/manage/tokens/${token.id}`, { budget })).status).to.equal(200);
  };
  const bytesOf = (token: WireTokenCreated, body = asked(), fields: Fields = {}, route = 'POST /v1/chat/completions') =>
    head(route, token.token, {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      ...fields,
    }) + body;
  const complete = (token: WireTokenCreated, body?: string, fields?: Fields) =>
    scene.send(bytesOf(token, body, fields));
  const answering =
    (usage: object | null = USAGE): Answer =>
    (_req, res) => {
      json(res, 200, { model: 'm', choices: [], ...(usage && { usage }) });
    };
  const refused = (answer: RawResponse, status: number, code: string) => {
    expect([answer.status, answer.json.code]).to.deep.equal([status, code]);
    return answer.json as { error: string; hint?: string; budget?: Record<string, unknown> };
  };
  /** Waits until all requests are recorded. */
  const spent = async ({ id }: Pick<WireToken, 'id'>) => {
    await scene.inFlight(0);
    scene.daemon.daemon.scheduler.publishAll();
    const { usd, tokens, unpriced_requests: unpriced } = (await scene.daemon.token(id)).spent;
    return { nano: nanoOf(usd), tokens, unpriced };
  };
  const spentOfProject = async () => {
    const answer = await scene.daemon.manage('GET', `/manage/projects/${scene.project.id}`);
    return nanoOf((answer.body as WireProject).spent.usd);
  };
  const budgetEvents = async (count: number) => {
    let events: WireBudgetEvent[] = [];
    await eventually(`${count} events of budgets`, async () => {
      scene.daemon.daemon.scheduler.publishAll();
      const all = (await scene.daemon.manage('GET', '/manage/events')).body as WireEvent[];
      events = all.filter((event): event is WireBudgetEvent => 'budget' in event);
      return events.length >= count;
    });
    expect(events).to.have.lengthOf(count);
    return events.reverse();
  };

  beforeEach(() => {
    scene.provider.answer = answering();
  });

  it('charges what the provider reports, with and without a budget, to the token and its project', async () => {
    const tokens = [await tokenWith(null), await tokenWith({ usd: '1', mode: 'hard' }), await tokenWith({ usd: '1' })];
    for (const token of tokens) {
      expect((await complete(token)).status).to.equal(200);
      expect(await spent(token)).to.deep.equal({ nano: BILLED, tokens: 30, unpriced: 0 });
    }
    expect(await spentOfProject()).to.equal(3 * BILLED);
    expect((await complete(tokens[0]!, asked({ model: 'other' }))).status).to.equal(200);
  });

  // ---- endings

  const CUT: Answer = (_req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.write('data: {"model":"m","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n', () => res.destroy());
  };
  const streamedUntil =
    (last: object): Answer =>
    (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      res.write(`data: ${JSON.stringify({ model: 'm', ...last })}\n\n`, () => res.destroy());
    };
  const body = asked();
  const bound = boundFor(body);
  const input = Math.ceil(body.length / 4);
  const HARD = { nano: nanoFor(bound), tokens: bound.inputTokens + bound.outputTokens, unpriced: 0 };
  const ESTIMATE = { nano: input * INPUT + (1_000 - input) * OUTPUT, tokens: 1_000, unpriced: 0 };
  const INPUT_AND_ESTIMATE = { nano: input * INPUT + 1_000 * OUTPUT, tokens: input + 1_000, unpriced: 0 };
  const REPORTED = { nano: BILLED, tokens: 30, unpriced: 0 };
  const NOTHING = { nano: 0, tokens: 0, unpriced: 0 };
  const ENDINGS: Record<string, { answer: Answer; hard: object; soft: object }> = {
    'with a usage': { answer: answering(), hard: REPORTED, soft: REPORTED },
    'without a usage': { answer: answering(null), hard: HARD, soft: ESTIMATE },
    'with a part of the usage': {
      answer: answering({ completion_tokens: 20 }),
      hard: HARD,
      soft: ESTIMATE,
    },
    'with a usage of zeros': {
      answer: answering({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }),
      hard: HARD,
      soft: NOTHING,
    },
    'in the middle': { answer: CUT, hard: HARD, soft: INPUT_AND_ESTIMATE },
    'in the middle, after its usage': {
      answer: streamedUntil({ choices: [], usage: USAGE }),
      hard: REPORTED,
      soft: REPORTED,
    },
    'in the middle, with the usage until then': {
      answer: streamedUntil({ choices: [{ index: 0, delta: {} }], usage: { prompt_tokens: 10, completion_tokens: 1 } }),
      hard: HARD,
      soft: INPUT_AND_ESTIMATE,
    },
    'with only the usage of its beginning': {
      answer: (_req, res) => {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' });
        const message = { model: 'm', usage: { input_tokens: 10, output_tokens: 1 } };
        res.end(`data: ${JSON.stringify({ type: 'message_start', message })}\n\n`);
      },
      hard: HARD,
      soft: INPUT_AND_ESTIMATE,
    },
    'without a response': {
      answer: (_req, res) => {
        res.destroy();
      },
      hard: HARD,
      soft: INPUT_AND_ESTIMATE,
    },
    'after an informational response': {
      answer: (_req, res) => {
        res.socket?.write('HTTP/1.1 103 Early Hints\r\n\r\n', () => res.destroy());
      },
      hard: HARD,
      soft: INPUT_AND_ESTIMATE,
    },
    'with 400': {
      answer: (_req, res) => {
        json(res, 400, {});
      },
      hard: NOTHING,
      soft: NOTHING,
    },
    'with 429': {
      answer: (_req, res) => {
        json(res, 429, {});
      },
      hard: NOTHING,
      soft: NOTHING,
    },
    'with 401': {
      answer: (_req, res) => {
        json(res, 401, {});
      },
      hard: NOTHING,
      soft: NOTHING,
    },
    'with 500': {
      answer: (_req, res) => {
        json(res, 500, {});
      },
      hard: NOTHING,
      soft: NOTHING,
    },
  };
  for (const [ending, { answer, hard, soft }] of Object.entries(ENDINGS)) {
    for (const [mode, expected] of [
      ['hard', hard],
      ['soft', soft],
      ['shadow', soft],
    ] as const) {
      it(`charges a request of a ${mode} budget that ends ${ending}`, async () => {
        const token = await tokenWith({ usd: '10.00', tokens: 1_000_000, mode });
        scene.provider.answer = answer;
        await complete(token, body).catch(() => undefined);
        await scene.reached(1);
        expect(await spent(token)).to.deep.equal(expected);
        expect((await scene.daemon.token(token.id)).budget).to.deep.include({ usd: '10.00', mode });
      });
    }
  }

  for (const [mode, expected] of [
    ['hard', HARD],
    ['soft', INPUT_AND_ESTIMATE],
  ] as const) {
    it(`charges a request of a ${mode} budget whose client leaves, or whose token is revoked`, async () => {
      scene.provider.answer = () => undefined;
      for (const ending of ['client', 'revocation']) {
        const token = await tokenWith({ usd: '10.00', tokens: 1_000_000, mode });
        const before = scene.provider.received.length;
        const client = await scene.client(bytesOf(token, body));
        await eventually('it is at the provider', () => scene.provider.received.length > before);
        await eventually('its body is there', () => scene.provider.received.at(-1)!.body.length > 0);
        if (ending === 'client') client.destroy();
        else await scene.daemon.manage('DELETE', `/manage/tokens/${token.id}`);
        expect(await spent(token), ending).to.deep.equal(expected);
      }
    });
  }

  it('charges nothing for an upload that is not complete', async () => {
    const token = await tokenWith({ usd: '10.00', mode: 'soft' });
    const fields = { 'Content-Type': 'application/json', 'Content-Length': '3000000' };
    const client = await scene.client(
      head('POST /v1/chat/completions', token.token, fields) + `{"x":"${'x'.repeat(1_500_000)}`,
    );
    await scene.reached(1);
    client.destroy();
    expect(await spent(token)).to.deep.equal(NOTHING);
  });

  for (const mode of ['hard', 'soft', 'shadow'] as const) {
    it(`serves responses from the cache whatever is left of a ${mode} budget, and spends nothing of it`, async () => {
      const token = await tokenWith({ tokens: HARD.tokens, mode });
      const left = mode === 'shadow' ? undefined : 'budget-left=0%';
      const stored = { 'Cache-Control': 'public, max-age=3600' };
      scene.provider.answer = answering({ prompt_tokens: HARD.tokens, completion_tokens: 0 });
      expect((await complete(token, body, stored)).status).to.equal(200);
      expect(await spent(token)).to.include({ tokens: HARD.tokens });
      if (mode !== 'shadow') refused(await complete(token, asked({ n: 2 })), 402, 'budget_exhausted');
      const hit = async () => {
        const answer = await complete(token, body, stored);
        expect([answer.status, answer.header('cache-status')?.split('; ttl')[0]]).to.deep.equal([200, 'llmp; hit']);
        expect(await spent(token)).to.include({ tokens: HARD.tokens });
        return answer.header('x-token-warning');
      };
      expect(await hit()).to.equal(left);
      // Its purse is not needed, and stays forgotten.
      const { purses } = scene.daemon.daemon.admission;
      const other = await scene.daemon.createToken(scene.project.id);
      await eventually('it is forgotten', async () => {
        scene.daemon.clock.advance(2_000);
        await complete(other);
        return purses.known(token.id) === undefined;
      });
      expect((await complete(token, body, stored)).header('x-token-warning')).to.equal(undefined);
      expect(purses.known(token.id)).to.equal(undefined);
      await hit();
      if (mode !== 'shadow') refused(await complete(token, asked({ n: 2 })), 402, 'budget_exhausted');
    });
  }

  // ---- hard

  it('never lets the provider bill more than a hard budget, with 1,000 requests at the same time', async () => {
    const limit = 1_000_000_000 / 10;
    const token = await tokenWith({ usd: usdOf(limit), mode: 'hard' });
    let billed = 0;
    let open = 0;
    let most = 0;
    scene.provider.answer = async (_req, res) => {
      most = Math.max(most, ++open);
      await new Promise((resolve) => setImmediate(resolve));
      open -= 1;
      const usage = { prompt_tokens: 1 + (billed % 500), completion_tokens: billed % 2 === 0 ? 100 : 40 };
      billed += usage.prompt_tokens * INPUT + usage.completion_tokens * OUTPUT;
      json(res, 200, { model: 'm', choices: [], usage });
    };
    const codes = new Map<unknown, number>();
    const send = async () => {
      const response = await scene.daemon.call(token.token, '/v1/chat/completions', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body,
      });
      const { code = response.status } = (await response.json()) as { code?: string };
      codes.set(code, (codes.get(code) ?? 0) + 1);
    };
    await Promise.all(Array.from({ length: 1_000 }, send));
    // Again, until nothing fits any more.
    for (let n = 0; n < 200 && !codes.has('budget_exhausted'); n++) await Promise.all(Array.from({ length: 20 }, send));
    const { nano } = await spent(token);
    expect(nano).to.equal(billed);
    expect(billed).to.be.at.most(limit);
    expect(billed).to.be.above(limit - nanoFor(bound));
    expect(most).to.be.above(1);
    expect([...codes.keys()].filter((code) => ![200, 'budget_exhausted', 'budget_reserved'].includes(code as never))).to
      .be.empty;
  });

  it('refuses what does not fit a hard budget, and says what would', async () => {
    const limit = nanoFor(bound) - 1;
    const token = await tokenWith({ usd: usdOf(1_000 * Math.ceil(limit / 1_000)).slice(0, 8), mode: 'hard' });
    await patch(token, { usd: '0.000700', mode: 'hard' });
    const { budget } = refused(await complete(token, body), 402, 'budget_exhausted');
    const fitting = Math.floor((700_000 - bound.inputTokens * INPUT) / OUTPUT);
    expect(budget).to.deep.equal({
      unit: 'usd',
      limit: '0.0007',
      used: '0.00',
      reserved: '0.00',
      needed: usdOf(nanoFor(bound)),
      max_output_tokens_that_fit: Math.max(0, fitting),
    });
    expect(scene.provider.received).to.have.lengthOf(0);
    await patch(token, { tokens: bound.inputTokens + 50, mode: 'hard' });
    const answer = await complete(token, body);
    expect(answer.header('x-should-retry')).to.equal('false');
    expect(answer.header('retry-after')).to.equal(undefined);
    const { budget: ofTokens, hint } = refused(answer, 402, 'budget_exhausted');
    expect(ofTokens).to.include({ unit: 'tokens', max_output_tokens_that_fit: 50, needed: bound.inputTokens + 100 });
    expect(hint).to.equal('it fits with a maximum of 50 output tokens');
  });

  it('refuses what has no price or no bound', async () => {
    const token = await tokenWith({ usd: '1', mode: 'hard' });
    refused(await complete(token, asked({ model: 'nobody-knows' })), 403, 'model_not_priced');
    const { error } = refused(await complete(token, '{"model":"unlimited","messages":[]}'), 403, 'cost_not_bounded');
    expect(error).to.match(/^the cost of this request has no bound: .*; the hard budget of the token needs one$/);
    refused(await complete(token, asked({ x: 'x'.repeat(9_000_000) })), 403, 'cost_not_bounded');
    refused(await complete(token, body, { 'Content-Encoding': 'gzip' }), 403, 'cost_not_bounded');
    // Without dollars a price is not needed.
    await patch(token, { tokens: 1_000_000, mode: 'hard' });
    expect((await complete(token, asked({ model: 'nobody-knows' }))).status).to.equal(200);
    expect(scene.provider.received).to.have.lengthOf(1);
    expect((await scene.get(token.token)).status).to.equal(200);
  });

  it('charges the bound if a response was cut when one of several answers was complete', async () => {
    scene.provider.answer = streamedUntil({
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
      usage: USAGE,
    });
    const [one, several] = [asked({ stream: true }), asked({ stream: true, n: 2 })];
    for (const [sent, nano] of [
      [one, BILLED],
      [several, nanoFor(boundFor(several))],
    ] as const) {
      const token = await tokenWith({ usd: '10.00', mode: 'hard' });
      await complete(token, sent).catch(() => undefined);
      expect(await spent(token)).to.include({ nano });
    }
  });

  it('reserves for all that is not known to cost nothing', async () => {
    const token = await tokenWith({ tokens: 1_000_000, mode: 'hard' });
    const send = (route: string) => scene.send(bytesOf(token, '{}', {}, route));
    for (const route of [
      'GET /v1/chat/completions',
      'PUT /v1/chat/completions',
      'PATCH /v1/responses/r',
      'DELETE /v1/responses/r',
      'POST /v1/conversations',
      'POST /v1/conversations/c',
      'POST /v1/threads/runs',
      'POST /v1/threads/t/runs/wait',
      'POST /v1/vector_stores/v/search',
      'POST /v1/responses/compact/',
      'POST /v1/responses/%20',
      'POST /v1/models/files/x/predictions',
    ]) {
      const { json: answered } = await send(route);
      expect(answered.code, route).to.equal('cost_not_bounded');
    }
    for (const name of ['X-Vertex-AI-LLM-Shared-Request-Type', 'x-portkey-config', 'X-Original-URL']) {
      const { error } = refused(await complete(token, body, { [name]: 'x' }), 403, 'cost_not_bounded');
      expect(error).to.include(`the header ${name.toLowerCase()} may choose a more expensive service`);
    }
    refused(await complete(token, body, { 'X-HTTP-Method-Override': 'PUT' }), 400, 'invalid_request');
    expect(scene.provider.received).to.have.lengthOf(0);
    scene.provider.answer = answering(null);
    for (const route of [
      'POST /v1/files',
      'POST /v1/threads/t/messages',
      'POST /v1/threads/t/runs/run_1/cancel',
      'POST /v1/messages/count_tokens',
      'POST /v1/responses/r/cancel',
      'POST /v1/chat/completions/c',
    ]) {
      expect((await send(route)).status, route).to.equal(200);
    }
    expect((await scene.send(head('DELETE /v1/responses/r', token.token))).status).to.equal(200);
    expect(await spent(token)).to.deep.equal(NOTHING);
  });

  it('lets a free model pass', async () => {
    const token = await tokenWith({ usd: '1', mode: 'hard' });
    scene.provider.answer = (_req, res) => {
      json(res, 200, { model: 'free', usage: USAGE });
    };
    for (let n = 0; n < 2; n++) expect((await complete(token, asked({ model: 'free' }))).status).to.equal(200);
    expect(await spent(token)).to.deep.equal({ nano: 0, tokens: 60, unpriced: 0 });
  });

  it('says so when the rest is reserved, until others have settled', async () => {
    const token = await tokenWith({ tokens: 2 * HARD.tokens - 1, mode: 'hard' });
    let go: () => void = () => undefined;
    scene.provider.answer = async (req, res, received) => {
      await new Promise<void>((resolve) => (go = resolve));
      await answering()(req, res, received);
    };
    const first = complete(token, body);
    await scene.reached(1);
    await eventually('it waits', () => scene.provider.received[0]!.body.length > 0);
    const answer = await complete(token, body);
    const { budget } = refused(answer, 429, 'budget_reserved');
    expect(budget).to.deep.equal({
      unit: 'tokens',
      limit: 2 * HARD.tokens - 1,
      used: 0,
      reserved: HARD.tokens,
      needed: HARD.tokens,
    });
    expect(answer.header('retry-after')).to.equal('1');
    expect(answer.header('x-should-retry')).to.equal(undefined);
    go();
    expect((await first).status).to.equal(200);
    expect(await spent(token)).to.include({ tokens: 30 });
    scene.provider.answer = answering();
    expect((await complete(token, body)).status).to.equal(200);
  });

  it('counts what a provider bills above a bound', async () => {
    const token = await tokenWith({ usd: '1.00', mode: 'hard' });
    scene.provider.answer = answering({ prompt_tokens: 5_000, completion_tokens: 5_000, total_tokens: 10_000 });
    expect((await complete(token, body)).status).to.equal(200);
    expect(await spent(token)).to.include({ nano: 5_000 * (INPUT + OUTPUT) });
    const metrics = await (await fetch(`${scene.daemon.url}/metrics`)).text();
    expect(metrics).to.match(/^llmp_budget_overruns_total 1$/m);
    expect(scene.daemon.logged.filter((line) => line.includes('billed more than the bound'))).to.have.lengthOf(1);
  });

  // ---- soft and shadow

  it('admits requests of a soft budget until it is used up, and nothing after that', async () => {
    const token = await tokenWith({ tokens: 50 });
    expect((await complete(token)).status).to.equal(200);
    expect(await spent(token)).to.include({ tokens: 30 });
    expect((await complete(token)).status).to.equal(200);
    expect(await spent(token)).to.include({ tokens: 60 });
    const { error, hint, budget } = refused(await complete(token), 402, 'budget_exhausted');
    expect([error, hint]).to.deep.equal(['the budget of the token is used up', 'ask for a larger budget']);
    expect(budget).to.include({ unit: 'tokens', limit: 50, used: 60 });
    expect(scene.provider.received).to.have.lengthOf(2);
    expect((await scene.get(token.token)).status, 'a read').to.equal(200);
  });

  it('charges for conversations in which a model answers, and refuses them when nothing is left', async () => {
    const token = await tokenWith({ tokens: 30 });
    const converse = () => scene.send(bytesOf(token, '{"model":"m","inputs":"hello"}', {}, 'POST /v1/conversations'));
    expect((await converse()).status).to.equal(200);
    expect(await spent(token)).to.include({ tokens: 30 });
    refused(await converse(), 402, 'budget_exhausted');
    await patch(token, { tokens: 100_000 });
    scene.provider.answer = CUT;
    await converse().catch(() => undefined);
    expect(await spent(token), 'as estimated').to.include({ tokens: 30 + 8 + 30 });
  });

  it('estimates from what its own project has used', async () => {
    const others = await scene.daemon.createProject();
    const theirs = await scene.daemon.createToken(others.id, { budget: { tokens: 1_000_000_000_000 } });
    scene.provider.answer = answering({ prompt_tokens: 900_000_000, completion_tokens: 900_000_000 });
    expect((await complete(theirs)).status).to.equal(200);
    expect(await spent(theirs)).to.include({ tokens: 1_800_000_000 });
    const token = await tokenWith({ usd: '10.00' });
    scene.provider.answer = answering(null);
    expect((await complete(token, body)).status).to.equal(200);
    expect(await spent(token)).to.deep.equal(ESTIMATE);
  });

  it('does not refuse a model without a price in a soft budget', async () => {
    const token = await tokenWith({ usd: '0.01' });
    scene.provider.answer = (_req, res) => {
      json(res, 200, { model: 'nobody-knows', usage: USAGE });
    };
    expect((await complete(token, asked({ model: 'nobody-knows' }))).status).to.equal(200);
    expect(await spent(token)).to.deep.equal({ nano: 0, tokens: 30, unpriced: 1 });
  });

  it('refuses nothing because of a shadow budget, and tells once a minute what it would', async () => {
    const token = await tokenWith({ tokens: 30, mode: 'shadow' }, { name: 'tried' });
    for (let n = 0; n < 4; n++) {
      expect((await complete(token)).status).to.equal(200);
      await spent(token);
    }
    const [threshold80, threshold100, first] = await budgetEvents(3);
    expect([threshold80?.budget.percent, threshold100?.budget.percent]).to.have.members([80, 100]);
    expect(first).to.deep.include({ kind: 'budget.would_refuse', token_name: 'tried', count: 1 });
    expect(first?.budget).to.include({ owner: 'token', mode: 'shadow', unit: 'tokens', limit: 30, percent: null });
    scene.daemon.clock.advance(61_000);
    expect((await complete(token)).status).to.equal(200);
    // The first one did not wait, so the second one had what was leased for it.
    expect((await budgetEvents(4)).at(-1)).to.include({ count: 2 });
    expect(await spent(token)).to.include({ tokens: 150 });
  });

  // ---- several budgets, periods, changes

  it('fits the budgets of the token and of its project, or takes nothing of either', async () => {
    await scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, {
      budget: { tokens: 2 * HARD.tokens - 1, mode: 'hard' },
    });
    const token = await tokenWith(
      { tokens: 10 * HARD.tokens, mode: 'hard' },
      { max_requests: 5, limits: { requests_per_minute: 5 } },
    );
    scene.provider.answer = answering({ prompt_tokens: HARD.tokens - 100, completion_tokens: 100 });
    expect((await complete(token, body)).status).to.equal(200);
    await spent(token);
    for (let n = 0; n < 9; n++) {
      const { error, budget } = refused(await complete(token, body), 402, 'budget_exhausted');
      expect(error).to.include('of the budget of the project');
      expect(budget).to.include({ used: HARD.tokens });
    }
    expect(await spent(token)).to.include({ tokens: HARD.tokens });
    expect((await scene.daemon.token(token.id)).request_count).to.equal(1);
    await scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, { budget: null });
    for (let n = 0; n < 4; n++) expect((await complete(token, body)).status).to.equal(200);
    expect(scene.provider.received).to.have.lengthOf(5);
  });

  it('resets with the period, which the refusal names', async () => {
    const token = await tokenWith({ tokens: 30, period: 'day' });
    expect((await complete(token)).status).to.equal(200);
    await spent(token);
    const answer = await complete(token);
    const { hint } = refused(answer, 402, 'budget_exhausted');
    const now = scene.daemon.clock.now();
    const midnight = now - (now % DAY_MS) + DAY_MS;
    expect(Number(answer.header('retry-after'))).to.equal(Math.ceil((midnight - now) / 1_000));
    expect(hint).to.equal(`the budget resets at ${new Date(midnight).toISOString().replace('.000Z', 'Z')}`);
    scene.daemon.clock.advance(midnight - now + 1_000);
    expect((await complete(token)).status).to.equal(200);
    expect(await spent(token)).to.include({ tokens: 30 });
  });

  it('holds a change from the next request on, while those under way go on', async () => {
    const token = await tokenWith({ tokens: 30 });
    let go: () => void = () => undefined;
    scene.provider.answer = async (req, res, received) => {
      await new Promise<void>((resolve) => (go = resolve));
      await answering()(req, res, received);
    };
    const first = complete(token);
    await scene.reached(1);
    await patch(token, { tokens: 20 });
    await eventually('its body is there', () => scene.provider.received[0]!.body.length > 0);
    go();
    expect((await first).status).to.equal(200);
    expect(await spent(token)).to.include({ tokens: 30 });
    scene.provider.answer = answering();
    refused(await complete(token), 402, 'budget_exhausted');
    await patch(token, { tokens: 1_000 });
    expect((await complete(token)).status).to.equal(200);
    await patch(token, null);
    expect((await complete(token)).status).to.equal(200);
    expect(await spent(token)).to.include({ tokens: 90 });
  });

  it('warns the client, and tells operators when 80 and 100 % are used', async () => {
    const token = await tokenWith({ tokens: 100 }, { name: 'soon' });
    scene.provider.answer = answering({ prompt_tokens: 48, completion_tokens: 0, total_tokens: 48 });
    expect((await complete(token)).header('x-token-warning')).to.equal(undefined);
    await spent(token);
    expect((await complete(token)).header('x-token-warning')).to.equal(undefined);
    await spent(token);
    expect((await complete(token)).header('x-token-warning')).to.equal('budget-left=4%');
    await spent(token);
    const events = await budgetEvents(2);
    expect(events.map(({ budget: { percent, used } }) => [percent, used])).to.deep.equal([
      [80, 96],
      [100, 144],
    ]);
    for (const event of events) {
      expect(event).to.include({ kind: 'budget.threshold', token_id: token.id, token_name: 'soon', count: null });
    }
  });

  it('is refused in the dialect of the client', async () => {
    const token = await tokenWith({ tokens: 30 });
    await complete(token);
    await spent(token);
    const message = 'the budget of the token is used up: ask for a larger budget';
    const budget = { unit: 'tokens', limit: 30, used: 30, reserved: 0, needed: 30 };
    const openai = await complete(token, body, { 'x-stainless-lang': 'js' });
    expect(openai.status).to.equal(402);
    expect(openai.json).to.deep.include({
      error: { message, type: 'insufficient_quota', param: null, code: 'budget_exhausted' },
      budget,
    });
    const anthropic = await complete(token, body, { 'anthropic-version': '2023-06-01' });
    expect(anthropic.json).to.deep.include({ type: 'error', error: { type: 'billing_error', message }, budget });
    const google = await complete(token, body, { 'x-goog-api-key': token.token });
    expect(google.json).to.deep.nested.include({ 'error.code': 402, 'error.status': 'FAILED_PRECONDITION' });
    expect(google.json).to.deep.nested.include({
      'error.details[0].metadata': {
        code: 'budget_exhausted',
        ...{ unit: 'tokens', limit: '30', used: '30', reserved: '0', needed: '30' },
      },
    });
    const codex = await complete(token, body, { 'User-Agent': 'codex_exec/0.1' });
    expect(codex.status).to.equal(400);
  });

  it('restricts the token to routes that do not escape, unless it is a shadow', async () => {
    const send = (token: WireTokenCreated) => scene.send(bytesOf(token, '{}', {}, 'POST /v1/batches'));
    refused(await send(await tokenWith({ usd: '1' })), 403, 'route_escapes');
    expect((await send(await tokenWith({ usd: '1', mode: 'shadow' }))).status).to.equal(200);
    const named = { allow: { routes: ['POST /v1/batches'] } };
    refused(await send(await tokenWith({ usd: '1', mode: 'hard' }, named)), 403, 'cost_not_bounded');
  });

  // ---- WebSockets

  describe('on WebSockets', () => {
    let realtime: Realtime;
    beforeEach(() => {
      realtime = new Realtime(scene.provider);
    });
    afterEach(() => {
      realtime.close();
    });

    it('refuses the handshake of a hard budget', async () => {
      const token = await tokenWith({ usd: '1', mode: 'hard' });
      for (const target of ['/v1/realtime?model=gpt-realtime', '/v1/responses']) {
        const client = realtime.client(`${scene.daemon.url}${target}`, token.token);
        const status = await new Promise((resolve) => {
          client.on('unexpected-response', (_req, res) => {
            resolve(res.statusCode);
          });
        });
        expect(status).to.equal(403);
      }
      expect(realtime.conversations).to.have.lengthOf(0);
    });

    it('charges each response, and refuses the next one when nothing is left', async () => {
      const token = await tokenWith({ tokens: 50 });
      const { client, socket } = await realtime.begin(scene.daemon.url, token.token, { target: '/v1/responses' });
      const heard: { type: string; error?: { code: string } }[] = [];
      client.on('message', (data: Buffer) => heard.push(JSON.parse(data.toString()) as never));
      socket.on('message', () => {
        socket.send('{"type":"response.created","response":{"model":"m"}}');
        const usage = { input_tokens: 10, output_tokens: 20 };
        socket.send(JSON.stringify({ type: 'response.completed', response: { model: 'm', usage } }));
      });
      for (let n = 1; n <= 2; n++) {
        client.send('{"type":"response.create","model":"m"}');
        await eventually(
          'it is answered',
          () => heard.filter(({ type }) => type === 'response.completed').length === n,
        );
      }
      client.send('{"type":"response.create","model":"m"}');
      await eventually('it is refused', () => heard.at(-1)?.error?.code === 'budget_exhausted');
      expect(await spent(token)).to.deep.equal({ nano: 2 * BILLED, tokens: 60, unpriced: 0 });
    });

    it('charges a transcription, and ends the connection when nothing is left', async () => {
      const token = await tokenWith({ tokens: 50 });
      const target = '/v1/realtime?model=gpt-realtime';
      const { client, socket } = await realtime.begin(scene.daemon.url, token.token, { target });
      const transcribed = JSON.stringify({
        type: 'conversation.item.input_audio_transcription.completed',
        usage: { type: 'tokens', input_tokens: 10, output_tokens: 20, total_tokens: 30 },
      });
      const closed = new Promise<number>((resolve) => client.on('close', resolve));
      socket.send(transcribed);
      await eventually('it is charged', async () => (await scene.daemon.token(token.id)).spent.tokens === 30);
      socket.send(transcribed);
      expect(await closed).to.equal(1008);
      expect(await spent(token)).to.deep.equal({ nano: 2 * BILLED, tokens: 60, unpriced: 0 });
    });

    it('charges what is under way when the connection is cut', async () => {
      const token = await tokenWith({ tokens: 100_000 });
      const { client, socket } = await realtime.begin(scene.daemon.url, token.token, { target: '/v1/responses' });
      const message = '{"type":"response.create","model":"m"}';
      client.send(message);
      await new Promise((resolve) => socket.once('message', resolve));
      client.terminate();
      const { tokens } = await spent(token);
      expect(tokens).to.be.within(1_000 + Math.ceil(message.length / 4), 1_000 + message.length);
    });
  });
});
