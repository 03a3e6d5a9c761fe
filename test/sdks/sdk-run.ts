/** One SDK makes its calls, through the daemon and directly with the provider. */
import { spawn } from 'node:child_process';
import type { Server } from 'node:http';
import { expect } from 'chai';
import { loadSettings } from '../../config/settings.js';
import type { UpstreamAuth } from '../../daemon/api/vocabulary.js';
import { mintSecret } from '../../daemon/core/token.js';
import { CREDENTIAL_FIELDS } from '../../daemon/http/request-head.js';
import { canary, secretsIn } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, UPSTREAM_KEY } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type Provider, startProvider } from '../support/provider.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import type { Program } from './environments.js';
import { type Call, type CallResult, CUT, REFUSED, type Refused, type RefusedId, RETRIED, SAME } from './scenarios.js';
import type { Sdk, Usage } from './sdks.js';
import { HELD, KEY_HEADERS, standIn } from './stand-in.js';

/** Counts the requests of each call, by the header that its driver sends. */
function countRequests(server: Server): Map<string, number> {
  const counts = new Map<string, number>();
  server.prependListener('request', ({ headers: { 'x-scenario': id } }) => {
    if (typeof id === 'string') counts.set(id, (counts.get(id) ?? 0) + 1);
  });
  return counts;
}

/** Runs a driver. Its input contains tokens, so it goes through standard input. */
async function drive({ command, args }: Program, input: { sdk: string; base: string; calls: Call[] }) {
  const driver = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...withoutProxies(), ...CLIENTS_OWN },
  });
  let [output, errors] = ['', ''];
  driver.stdout.setEncoding('utf8').on('data', (piece: string) => (output += piece));
  driver.stderr.setEncoding('utf8').on('data', (piece: string) => (errors += piece));
  driver.stdin.end(JSON.stringify(input));
  const code = await new Promise((resolve) => driver.on('close', resolve));
  if (code !== 0) throw new Error(`the driver of ${input.sdk} ended with ${String(code)}: ${errors.slice(-2_000)}`);
  const lines = output.trim().split('\n');
  return new Map(lines.map((line) => JSON.parse(line) as CallResult).map((became) => [became.id, became]));
}

/** The environment without the keys and addresses that an SDK would use. */
const withoutProxies = () =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) =>
        !/proxy|^(?:OPENAI|AZURE|ANTHROPIC|CLAUDE|GOOGLE|GEMINI|GROQ|MISTRAL|LANGCHAIN|LANGSMITH|NODE_OPTIONS)/i.test(
          name,
        ),
    ),
  );

/** What SDKs read from the environment and send beside the key that they are given: none of it is for the project's provider. */
const CLIENTS_OWN = {
  OPENAI_ORG_ID: canary('client'),
  OPENAI_PROJECT_ID: canary('client'),
  ANTHROPIC_API_KEY: canary('client'),
  ANTHROPIC_AUTH_TOKEN: canary('client'),
};

/** Makes the calls of one SDK, once directly to the provider and once through the daemon. */
export class SdkRun {
  direct = new Map<string, CallResult>();
  through = new Map<string, CallResult>();
  /** Number of requests by call. */
  atProviderItself = new Map<string, number>();
  atDaemon = new Map<string, number>();
  atProvider = new Map<string, number>();
  /** What is wrong with the credentials of requests at the provider. */
  readonly wrongCredentials: string[] = [];
  /** What `/manage/usage` reports, by model. */
  usage: readonly (Usage & { model: string | null; requests: number })[] = [];

  async play({ sdk, kinds, api, retriesRegardless = false }: Sdk, program: Program): Promise<void> {
    const env = { MAX_REQUEST_SIZE: '100KB' };
    const scene = await ProxyFixture.open(env);
    const itself = await startProvider();
    try {
      const calls = SAME.filter(({ kind }) => kinds.includes(kind)).map((call) => ({ ...call, key: scene.secret }));
      await Promise.all([
        this.#playDirectly(program, sdk, itself, calls),
        this.#playThrough(program, { sdk, api, retriesRegardless }, scene, calls, env),
      ]);
    } finally {
      await itself.stop();
      await scene.daemon.stop();
      await scene.provider.stop();
    }
  }

  async #playDirectly(program: Program, sdk: string, itself: Provider, calls: Call[]): Promise<void> {
    itself.answer = standIn(
      () => Promise.resolve(),
      () => undefined,
    );
    this.atProviderItself = countRequests(itself.server);
    const key = 'a-provider-key-of-the-client';
    this.direct = await drive(program, { sdk, base: itself.url, calls: calls.map((call) => ({ ...call, key })) });
  }

  async #playThrough(
    program: Program,
    { sdk, api, retriesRegardless }: Pick<Sdk, 'sdk' | 'api'> & { retriesRegardless: boolean },
    scene: ProxyFixture,
    same: Call[],
    env: Record<string, string>,
  ) {
    const { daemon, provider } = scene;
    const upstream = {
      upstream_base_url: provider.url + (api.path ?? ''),
      upstream_auth: api.auth,
      api_key: UPSTREAM_KEY,
    };
    expect((await daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, upstream)).status).to.equal(200);
    provider.onHead = ({ rawHeaders, url }) => {
      this.wrongCredentials.push(...wrongCredentials(rawHeaders, url, api.auth));
    };
    const expired = await daemon.createToken(scene.project.id, { duration_minutes: 1 });
    daemon.clock.advance(60_000);
    const revoked = await daemon.createToken(scene.project.id);
    await daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
    const idle = await daemon.createProject();
    const inactive = await daemon.createToken(idle.id);
    await daemon.manage('PATCH', `/manage/projects/${idle.id}`, { is_active: false });
    const spent = await daemon.createToken(scene.project.id, { max_requests: 1 });
    provider.answer = (_req, res) => void res.end('{}');
    expect((await daemon.call(spent.token)).status).to.equal(200);
    const slow = await daemon.createToken(scene.project.id, { limits: { requests_per_minute: 1 } });
    const routed = await daemon.createToken(scene.project.id, { allow: { routes: ['GET /v1/none'] } });
    const other = await daemon.createToken(scene.project.id, { allow: { models: ['other-*'] } });
    const busy = await daemon.createToken(scene.project.id, { limits: { concurrent: 1 } });
    const cut = await daemon.createToken(scene.project.id);
    const keys: Partial<Record<RefusedId, string>> = {
      'an unknown token': mintSecret(),
      'an expired token': expired.token,
      'a revoked token': revoked.token,
      "a provider's key": `sk-proj-${'0'.repeat(40)}`,
      'an inactive project': inactive.token,
      'a spent cap': spent.token,
      'a route that is not allowed': routed.token,
      'a model that is not allowed': other.token,
      "a token's rate": slow.token,
      'too many requests at the same time': busy.token,
    };
    const each = Object.entries<Refused>(REFUSED).map(([id, { call }]) => ({
      id,
      kind: 'chat' as const,
      key: keys[id as RefusedId] ?? scene.secret,
      model: 'gpt-test',
      ...call,
    }));
    // Shortly before, because a minute may pass until then.
    const isOfRate = ({ id }: Call) => id === ("a token's rate" satisfies RefusedId);
    const refused = each.flatMap((one) => (isOfRate(one) ? [{ ...one, id: "a token's rate to use up" }, one] : [one]));
    const cutCall: Call = { id: CUT, kind: 'stream', key: cut.token, model: 'cut' };
    provider.answer = standIn(
      () => daemon.manage('DELETE', `/manage/tokens/${cut.id}`),
      () => void this.#readUsage(scene).finally(() => daemon.stop()),
    );
    const body = JSON.stringify({ model: HELD });
    const headers = { 'content-type': 'application/json' };
    // It ends when the daemon stops.
    void daemon.call(busy.token, '/v1/chat/completions', { method: 'POST', body, headers }).catch(() => undefined);
    await eventually('its slot is taken', () => provider.received.some((it) => it.body.toString() === body));
    const limit = (most: string) => {
      const settings = { MANAGEMENT_TOKEN, ...env, IP_RATE_LIMIT: most, RATE_LIMIT_WINDOW: '1h' };
      daemon.daemon.apply(loadSettings(settings).reloadable);
    };
    // Before the daemon handles the request.
    daemon.daemon.server.prependListener('request', ({ headers: { 'x-scenario': id } }) => {
      if (id === ('a rate limit to use up' satisfies string)) limit('1');
      if (id === ('a daemon that stops' satisfies RefusedId)) limit('0');
    });
    this.atDaemon = countRequests(daemon.daemon.server);
    this.atProvider = countRequests(provider.server);
    const useUp: Call = { id: 'a rate limit to use up', kind: 'chat', key: scene.secret, model: 'gpt-test' };
    const retried: Call[] = retriesRegardless
      ? [{ id: RETRIED, kind: 'chat', key: spent.token, model: 'gpt-test', retries: 2 }]
      : [];
    const at = refused.findIndex(({ id }) => id === ('a rate limit' satisfies RefusedId));
    const calls = [...same, cutCall, ...retried, ...refused.slice(0, at), useUp, ...refused.slice(at)];
    this.through = await drive(program, { sdk, base: daemon.url, calls });
  }

  async #readUsage({ daemon, project }: ProxyFixture): Promise<void> {
    daemon.daemon.scheduler.publishAll();
    const report = await daemon.manage('GET', `/manage/usage?by=model&project_id=${project.id}`);
    this.usage = report.body as typeof this.usage;
  }
}

/** @returns what is wrong: the provider gets the project's key in its own header, and nothing else that is secret. */
function wrongCredentials(rawHeaders: readonly string[], url: string, auth: UpstreamAuth): string[] {
  const key = auth === 'bearer' ? `authorization: Bearer ${UPSTREAM_KEY}` : `${auth}: ${UPSTREAM_KEY}`;
  const lines = rawHeaders.flatMap((name, i) => (i % 2 ? [] : [`${name.toLowerCase()}: ${rawHeaders[i + 1] ?? ''}`]));
  const others = lines.filter((line) => line !== key);
  const wrong = others.filter((line) => secretsIn(line).length > 0 || isCredential(line));
  if (lines.length - others.length !== 1) wrong.push(`not one header with the key: ${url}`);
  if (secretsIn(url).length > 0) wrong.push(`a secret in ${url}`);
  return wrong;
}

const isCredential = (line: string) =>
  [...KEY_HEADERS, ...CREDENTIAL_FIELDS].some((name) => line.startsWith(`${name}:`));
