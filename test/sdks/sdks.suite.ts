/** Unmodified SDKs, in the versions that `environments.ts` lists, through the daemon and directly with the provider. */
import { spawn } from 'node:child_process';
import type { Server } from 'node:http';
import { expect } from 'chai';
import { loadSettings } from '../../config/settings.js';
import { mintSecret } from '../../daemon/core/token.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { type Provider, startProvider } from '../support/provider.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { type Environment, ENVIRONMENTS, NotChecked, type Program } from './environments.js';
import {
  type CallResult,
  type Call,
  CUT,
  type Kind,
  REFUSED,
  type Refused,
  type RefusedId,
  SAME,
} from './scenarios.js';
import { standIn } from './stand-in.js';

interface Sdk {
  title: string;
  environment: Environment;
  /** Its name for the driver. */
  sdk: string;
  /** The calls that it supports. */
  kinds: readonly Kind[];
  /** Error class, by status if the SDK has several. */
  classes: Record<number, string> | string;
  /** Decides about retries by the status alone, so final errors are sent to it as 403. */
  goesByStatus?: boolean;
  /** Its event format is not supported yet, so it sees a broken connection instead of the error event. */
  missesLastEvent?: boolean;
}

const ALL: readonly Kind[] = ['chat', 'stream', 'models', 'embeddings', 'tool', 'upload'];
const WITHOUT_FILES = ALL.filter((kind) => kind !== 'upload');
const WITHOUT_LISTS = WITHOUT_FILES.filter((kind) => kind !== 'models');
const COMMON = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  403: 'PermissionDeniedError',
  429: 'RateLimitError',
  500: 'InternalServerError',
  502: 'InternalServerError',
  503: 'InternalServerError',
};
const JAVASCRIPT = { ...COMMON, 413: 'APIError' };
const PYTHON = { ...COMMON, 413: 'APIStatusError' };
const { npm, pythonNew, pythonOld, langchain, go } = ENVIRONMENTS;
const SDKS: readonly Sdk[] = [
  { title: 'openai 4 (JavaScript)', environment: npm, sdk: 'openai4', kinds: ALL, classes: JAVASCRIPT },
  { title: 'openai 5 (JavaScript)', environment: npm, sdk: 'openai5', kinds: ALL, classes: JAVASCRIPT },
  { title: 'openai 6 (JavaScript)', environment: npm, sdk: 'openai6', kinds: ALL, classes: JAVASCRIPT },
  {
    title: 'ai with @ai-sdk/openai (JavaScript)',
    environment: npm,
    sdk: 'ai',
    kinds: WITHOUT_LISTS,
    classes: 'APICallError',
    goesByStatus: true,
  },
  { title: 'openai 3 (Python)', environment: pythonNew, sdk: 'openai', kinds: ALL, classes: PYTHON },
  { title: 'openai 1 (Python)', environment: pythonOld, sdk: 'openai', kinds: ALL, classes: PYTHON },
  {
    title: 'langchain-openai (Python)',
    environment: langchain,
    sdk: 'langchain',
    kinds: WITHOUT_LISTS,
    classes: PYTHON,
  },
  {
    title: 'anthropic, with auth_token (Python)',
    environment: pythonNew,
    sdk: 'anthropic',
    kinds: ['chat', 'stream', 'tool'],
    classes: { ...PYTHON, 413: 'ContentTooLargeError', 503: 'ServiceUnavailableError' },
    missesLastEvent: true,
  },
  { title: 'openai-go 3 (Go)', environment: go, sdk: 'openai-go', kinds: WITHOUT_FILES, classes: '*apierror.Error' },
  {
    title: 'go-openai (Go)',
    environment: go,
    sdk: 'go-openai',
    kinds: WITHOUT_FILES,
    classes: '*openai.APIError',
  },
];

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
  const driver = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env: withoutProxies() });
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
      ([name]) => !/proxy|^(?:OPENAI|ANTHROPIC|LANGCHAIN|LANGSMITH|NODE_OPTIONS)/i.test(name),
    ),
  );

/** Makes the calls of one SDK, once directly to the provider and once through the daemon. */
class SdkRun {
  direct = new Map<string, CallResult>();
  through = new Map<string, CallResult>();
  /** Number of requests by call. */
  atProviderItself = new Map<string, number>();
  atDaemon = new Map<string, number>();
  atProvider = new Map<string, number>();

  async play({ sdk, kinds }: Sdk, program: Program): Promise<void> {
    const env = { MAX_REQUEST_SIZE: '100KB' };
    const scene = await ProxyFixture.open(env);
    const itself = await startProvider();
    try {
      const calls = SAME.filter(({ kind }) => kinds.includes(kind)).map((call) => ({ ...call, key: scene.secret }));
      await Promise.all([
        this.#playDirectly(program, sdk, itself, calls),
        this.#playThrough(program, sdk, scene, calls, env),
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

  async #playThrough(program: Program, sdk: string, scene: ProxyFixture, same: Call[], env: Record<string, string>) {
    const { daemon, provider } = scene;
    const expired = await daemon.createToken(scene.project.id, { duration_minutes: 1 });
    daemon.clock.advance(60_000);
    const revoked = await daemon.createToken(scene.project.id);
    await daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
    const idle = await daemon.createProject();
    const inactive = await daemon.createToken(idle.id);
    await daemon.manage('PATCH', `/manage/projects/${idle.id}`, { is_active: false });
    const spent = await daemon.createToken(scene.project.id, { max_requests: 1 });
    expect((await daemon.call(spent.token)).status).to.equal(200);
    const cut = await daemon.createToken(scene.project.id);
    const keys: Partial<Record<RefusedId, string>> = {
      'an unknown token': mintSecret(),
      'an expired token': expired.token,
      'a revoked token': revoked.token,
      "a provider's key": `sk-proj-${'0'.repeat(40)}`,
      'an inactive project': inactive.token,
      'a spent cap': spent.token,
    };
    const refused = Object.entries<Refused>(REFUSED).map(([id, { call }]) => ({
      id,
      kind: 'chat' as const,
      key: keys[id as RefusedId] ?? scene.secret,
      model: 'gpt-test',
      ...call,
    }));
    const cutCall: Call = { id: CUT, kind: 'stream', key: cut.token, model: 'cut' };
    provider.answer = standIn(
      () => daemon.manage('DELETE', `/manage/tokens/${cut.id}`),
      () => void daemon.stop(),
    );
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
    const at = refused.findIndex(({ id }) => id === ('a rate limit' satisfies RefusedId));
    const calls = [...same, cutCall, ...refused.slice(0, at), useUp, ...refused.slice(at)];
    this.through = await drive(program, { sdk, base: daemon.url, calls });
  }
}

describe('SDKs', function () {
  this.timeout(600_000);
  const unchecked = new Set<string>();
  // In parallel: each mostly waits for its registry.
  const programs = new Map(
    Object.values(ENVIRONMENTS).map((each) => [each, each.prepare().catch((error: unknown) => error)]),
  );

  for (const sdk of SDKS) {
    describe(sdk.title, () => {
      const performance = new SdkRun();

      before(async function () {
        const program = await programs.get(sdk.environment);
        if (program instanceof NotChecked) {
          const line = `NOT CHECKED: SDKs of ${sdk.environment.what}: ${program.message}`;
          if (!unchecked.has(line)) console.log(line);
          unchecked.add(line);
          this.skip();
        }
        if (program instanceof Error) throw program;
        await performance.play(sdk, program as Program);
      });

      for (const { id, kind } of SAME) {
        if (!sdk.kinds.includes(kind)) continue;
        it(`${id}: has the same result and number of requests as directly with the provider`, () => {
          const { direct, through, atProviderItself, atDaemon, atProvider } = performance;
          expect(through.get(id), 'what its user sees').to.deep.equal(direct.get(id));
          if (id === kind) expect(direct.get(id)).to.have.property('ok');
          else expect(direct.get(id)).to.have.property('error');
          const requests = atProviderItself.get(id);
          expect(requests, 'requests').to.be.at.least(1);
          expect([atDaemon.get(id), atProvider.get(id)]).to.deep.equal([requests, requests]);
        });
      }

      for (const [id, { status, code, type, says }] of Object.entries<Refused>(REFUSED)) {
        it(`${id}: has the expected status, class, message, type and code (finding D1) (finding D3)`, () => {
          const { error } = performance.through.get(id) ?? {};
          expect(error, 'an error').to.be.an('object');
          expect(error?.message).to.include(says);
          expect(error?.class).to.equal(typeof sdk.classes === 'string' ? sdk.classes : sdk.classes[status]);
          const isFinal = id === 'a spent cap' || id === "a project's wrong key";
          expect(error).to.include({ status: sdk.goesByStatus && isFinal ? 403 : status });
          // The SDK of Anthropic supports neither.
          if (sdk.sdk !== 'anthropic') expect(error).to.include({ code, type });
        });

        it(`${id}: is not retried (finding D2)`, () => {
          expect(performance.atDaemon.get(id)).to.equal(1);
        });
      }

      it(`${CUT} is reported as such, and an incomplete stream is not taken for a complete one (finding D4)`, () => {
        const { error } = performance.through.get(CUT) ?? {};
        expect(error, 'an error').to.be.an('object');
        if (!sdk.missesLastEvent) expect(error?.message).to.include('token revoked');
        expect(performance.atDaemon.get(CUT), 'requests').to.equal(1);
      });
    });
  }
});
