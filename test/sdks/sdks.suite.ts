/** Unmodified SDKs, in the releases that `environments.ts` names, with the daemon and with the provider itself. */
import { spawn } from 'node:child_process';
import type { Server } from 'node:http';
import { expect } from 'chai';
import { loadSettings } from '../../config/settings.js';
import { mintSecret } from '../../daemon/core/token.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { type Provider, startProvider } from '../support/provider.js';
import { Scene } from '../support/scene.js';
import { type Environment, ENVIRONMENTS, NotChecked, type Program } from './environments.js';
import { type Became, type Call, CUT, type Kind, REFUSED, type Refused, type RefusedId, SAME } from './scenarios.js';
import { standIn } from './stand-in.js';

interface Sdk {
  title: string;
  environment: Environment;
  /** As the driver calls it. */
  sdk: string;
  /** What it cannot do is left out. */
  kinds: readonly Kind[];
  /** The class of an error by its status, where the SDK has one for each. */
  classes: Record<number, string> | string;
  /** It goes by the status alone, so that what is not to be repeated is 403 to it. */
  goesByStatus?: boolean;
  /** It reads events in a form that we do not write yet, and sees a broken connection. */
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

/** How often each call was heard, by the header field that its driver sends. */
function heardAt(server: Server): Map<string, number> {
  const heard = new Map<string, number>();
  server.prependListener('request', ({ headers: { 'x-scenario': id } }) => {
    if (typeof id === 'string') heard.set(id, (heard.get(id) ?? 0) + 1);
  });
  return heard;
}

/** Runs a driver. What it is told goes through its standard input: there are tokens in it. */
async function drive({ command, args }: Program, told: { sdk: string; base: string; calls: Call[] }) {
  const driver = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env: withoutProxies() });
  let [said, complained] = ['', ''];
  driver.stdout.setEncoding('utf8').on('data', (piece: string) => (said += piece));
  driver.stderr.setEncoding('utf8').on('data', (piece: string) => (complained += piece));
  driver.stdin.end(JSON.stringify(told));
  const code = await new Promise((resolve) => driver.on('close', resolve));
  if (code !== 0) throw new Error(`the driver of ${told.sdk} ended with ${String(code)}: ${complained.slice(-2_000)}`);
  const lines = said.trim().split('\n');
  return new Map(lines.map((line) => JSON.parse(line) as Became).map((became) => [became.id, became]));
}

/** Neither keys nor addresses that an SDK would take from there. */
const withoutProxies = () =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/proxy|^(?:OPENAI|ANTHROPIC|LANGCHAIN|LANGSMITH|NODE_OPTIONS)/i.test(name),
    ),
  );

/** One SDK's calls, made once to the provider itself and once to the daemon. */
class Performance {
  direct = new Map<string, Became>();
  through = new Map<string, Became>();
  /** Requests, by call. */
  atProviderItself = new Map<string, number>();
  atDaemon = new Map<string, number>();
  atProvider = new Map<string, number>();

  async play({ sdk, kinds }: Sdk, program: Program): Promise<void> {
    const env = { MAX_REQUEST_SIZE: '100KB' };
    const scene = await Scene.open(env);
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
    this.atProviderItself = heardAt(itself.server);
    const key = 'the-own-key-of-somebody';
    this.direct = await drive(program, { sdk, base: itself.url, calls: calls.map((call) => ({ ...call, key })) });
  }

  async #playThrough(program: Program, sdk: string, scene: Scene, same: Call[], env: Record<string, string>) {
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
    // Before the daemon looks at the request.
    daemon.daemon.server.prependListener('request', ({ headers: { 'x-scenario': id } }) => {
      if (id === ('a rate limit to use up' satisfies string)) limit('1');
      if (id === ('a daemon that stops' satisfies RefusedId)) limit('0');
    });
    this.atDaemon = heardAt(daemon.daemon.server);
    this.atProvider = heardAt(provider.server);
    const useUp: Call = { id: 'a rate limit to use up', kind: 'chat', key: scene.secret, model: 'gpt-test' };
    const at = refused.findIndex(({ id }) => id === ('a rate limit' satisfies RefusedId));
    const calls = [...same, cutCall, ...refused.slice(0, at), useUp, ...refused.slice(at)];
    this.through = await drive(program, { sdk, base: daemon.url, calls });
  }
}

describe('SDKs', function () {
  this.timeout(600_000);
  const unchecked = new Set<string>();
  // All at once: each waits for its registry most of the time.
  const programs = new Map(
    Object.values(ENVIRONMENTS).map((each) => [each, each.prepare().catch((error: unknown) => error)]),
  );

  for (const sdk of SDKS) {
    describe(sdk.title, () => {
      const performance = new Performance();

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
        it(`${id}: the same as from the provider itself, in as many requests`, () => {
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
        it(`${id}: status, class, message, type and code are the right ones (finding D1) (finding D3)`, () => {
          const { error } = performance.through.get(id) ?? {};
          expect(error, 'an error').to.be.an('object');
          expect(error?.message).to.include(says);
          expect(error?.class).to.equal(typeof sdk.classes === 'string' ? sdk.classes : sdk.classes[status]);
          const isFinal = id === 'a spent cap' || id === "a project's wrong key";
          expect(error).to.include({ status: sdk.goesByStatus && isFinal ? 403 : status });
          // Anthropic's knows neither; it will be told its own.
          if (sdk.sdk !== 'anthropic') expect(error).to.include({ code, type });
        });

        it(`${id}: as many requests as are of use (finding D2)`, () => {
          expect(performance.atDaemon.get(id)).to.equal(1);
        });
      }

      it(`${CUT} is told as that, and no cut stream is taken for whole (finding D4)`, () => {
        const { error } = performance.through.get(CUT) ?? {};
        expect(error, 'an error').to.be.an('object');
        if (!sdk.missesLastEvent) expect(error?.message).to.include('token revoked');
        expect(performance.atDaemon.get(CUT), 'requests').to.equal(1);
      });
    });
  }
});
