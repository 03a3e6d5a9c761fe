/** One daemon and one provider for all agents, and what each agent does with them. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import type { TokenCreate, WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { entriesBelow } from '../../packaging/files.js';
import { canary, secretsIn } from '../support/canaries.js';
import { ConnectProxy } from '../support/connect-proxy.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import type { Agent, Api } from './agents.js';
import { PROOF } from './model.js';
import { runAgent, type Start, WORK } from './process.js';
import { setUpOn } from './set-up.js';
import { type Account, keyOf, StandIn } from './stand-in.js';

/** Refusals after which no retry can succeed, and a part of the message that the user must see. */
export const REFUSALS = {
  'a revoked token': 'the token is unknown, expired or revoked',
  'an inactive project': 'project is inactive',
  'a spent cap': 'token request limit reached',
  "a project's wrong key": "upstream rejected the project's key",
  'a route that is not allowed': 'the token may not use this route',
  'a model that is not allowed': 'the token may not use this model',
} as const;
export type RefusalId = keyof typeof REFUSALS;

/** Terms of the tokens that are refused. */
const TERMS: Partial<Record<RefusalId, Partial<TokenCreate>>> = {
  'a spent cap': { max_requests: 1 },
  'a route that is not allowed': { allow: { routes: ['GET /v1/none'] } },
  'a model that is not allowed': { allow: { models: ['other-*'] } },
};

/** An agent notices nothing of lists and limits that it keeps to, although its requests are read strictly. */
const RESTRICTED = { allow: { models: ['*'] }, limits: { requests_per_minute: 10_000, concurrent: 100 } };

const AUTH = { openai: 'bearer', anthropic: 'x-api-key', google: 'x-goog-api-key' } as const satisfies Record<
  Api,
  string
>;

/** What became of the job, directly or through the daemon. */
export interface Job {
  /** Its exit code; null if it took too long. */
  code: number | null;
  output: string;
  home: string;
  /** The content of the file that it had to make. */
  proof: string | null;
  account: Account;
  /** Hosts elsewhere that it tried to reach. */
  elsewhere: string[];
  /** Files that it left in its home directory and that contain a withering token. */
  filesWithToken: string[];
}

export interface Refused {
  output: string;
  /** From its first request to its end; null if it did not end by itself. */
  seconds: number | null;
  /** At the daemon. */
  requests: number;
  showsMessage: boolean;
}

/** Also what `/manage/usage` reports for its project. */
export type ThroughDaemon = Job & {
  /** Its requests are the uses of its token. */
  usage: Account['reported'];
};

interface Arrivals {
  count: number;
  /** By the clock of `performance.now()`. */
  firstAt: number;
  onFirst: () => void;
}

const LLMP = join(import.meta.dirname, '../../cli/llmp.cjs');
const JOB_LIMIT_MS = 60_000;

/** Variables with the keys of the user who starts `llmp run`. An agent must not find them. */
const OWN_KEYS = ['OPENAI_API_KEY', 'CODEX_API_KEY', 'ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'GEMINI_API_KEY'];

export class Scene {
  readonly daemon: TestDaemon;
  readonly #standIn: StandIn;
  readonly #proxy: ConnectProxy;
  /** What arrived at the daemon with a token that is refused. */
  readonly #arrivals = new Map<string, Arrivals>();

  private constructor(daemon: TestDaemon, standIn: StandIn, proxy: ConnectProxy) {
    this.daemon = daemon;
    this.#standIn = standIn;
    this.#proxy = proxy;
    proxy.response = 'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n';
    for (const event of ['request', 'upgrade']) {
      daemon.daemon.server.prependListener(event, ({ headers }: IncomingMessage) => {
        const arrivals = this.#arrivals.get(keyOf(headers));
        if (arrivals?.count === 0) {
          arrivals.firstAt = performance.now();
          arrivals.onFirst();
        }
        if (arrivals) arrivals.count++;
      });
    }
  }

  static async open(): Promise<Scene> {
    const [standIn, proxy] = [await StandIn.start(), await ConnectProxy.start()];
    return new Scene(await startDaemon({ upstream: standIn.url }), standIn, proxy);
  }

  async close(): Promise<void> {
    await this.daemon.stop();
    await this.#standIn.stop();
    this.#proxy.stop();
  }

  directly(agent: Agent, bin: string): Promise<Job> {
    const key = canary('client');
    return this.#job(agent, key, {
      bin,
      setUp: setUpOn(agent.page, agent.blocks, this.#standIn.url),
      env: { TOKEN: key },
    });
  }

  async through(agent: Agent, bin: string): Promise<ThroughDaemon> {
    const { project, key } = await this.#project(agent);
    const { token } = await this.daemon.createToken(project, RESTRICTED);
    const setUp = setUpOn(agent.page, agent.blocks, this.daemon.url);
    const job = await this.#job(agent, key, { bin, setUp, env: { TOKEN: token } });
    return { ...job, usage: await this.#usageOf(project) };
  }

  /** Started by `llmp run`, in a home directory without any set-up, by somebody who has keys of their own. */
  async underRun(agent: Agent, bin: string): Promise<ThroughDaemon> {
    const { project, key } = await this.#project(agent);
    const env = {
      LLMP_SERVER: this.daemon.url,
      MANAGEMENT_TOKEN,
      ...Object.fromEntries(OWN_KEYS.map((name) => [name, canary('client')])),
    };
    const under = [process.execPath, LLMP, 'run', '--project-id', project, ...(agent.runOptions ?? []), '--'];
    const job = await this.#job(agent, key, { bin, setUp: { files: {}, script: '' }, env, under });
    return { ...job, usage: await this.#usageOf(project) };
  }

  /** @param limitMs after its first request it is stopped when this time has passed. */
  async refused(agent: Agent, bin: string, id: RefusalId, limitMs: number): Promise<Refused> {
    const { token } = await this.#refusedToken(agent, id);
    const late = new AbortController();
    const stop = () => {
      late.abort();
    };
    const arrivals: Arrivals = { count: 0, firstAt: 0, onFirst: () => setTimeout(stop, limitMs) };
    this.#arrivals.set(token, arrivals);
    const setUp = setUpOn(agent.page, agent.blocks, this.daemon.url);
    const env = { TOKEN: token, ...this.#proxyFor(agent) };
    const signal = AbortSignal.any([late.signal, AbortSignal.timeout(JOB_LIMIT_MS + limitMs)]);
    const { code, output, endedAt, home } = await runAgent({ agent, bin, setUp, env, signal });
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    return {
      output,
      seconds: code === null ? null : (endedAt - arrivals.firstAt) / 1_000,
      requests: arrivals.count,
      showsMessage: output.replace(/\s+/g, ' ').includes(REFUSALS[id]),
    };
  }

  async #job(agent: Agent, key: string, start: Omit<Start, 'agent' | 'signal'>): Promise<Job> {
    const env = { ...start.env, ...this.#proxyFor(agent) };
    const signal = AbortSignal.timeout(JOB_LIMIT_MS);
    const { code, output, home } = await runAgent({ agent, ...start, env, signal });
    const proof = join(home, WORK, PROOF.file);
    const job: Job = {
      code,
      output,
      home,
      proof: existsSync(proof) ? readFileSync(proof, 'utf8').trim() : null,
      account: this.#standIn.of(key),
      elsewhere: this.#elsewhere(agent),
      filesWithToken: filesWithToken(home),
    };
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    return job;
  }

  async #project({ api, title }: Agent): Promise<{ project: string; key: string }> {
    const key = canary('upstream');
    const { id } = await this.daemon.createProject({ api_key: key });
    const upstream = { upstream_base_url: this.#standIn.url, upstream_auth: AUTH[api] };
    expect((await this.daemon.manage('PATCH', `/manage/projects/${id}`, upstream)).status, title).to.equal(200);
    return { project: id, key };
  }

  async #refusedToken(agent: Agent, id: RefusalId): Promise<WireTokenCreated> {
    const { project, key } = await this.#project(agent);
    const token = await this.daemon.createToken(project, TERMS[id] ?? {});
    if (id === 'a spent cap') await this.daemon.call(token.token);
    if (id === 'a revoked token') await this.daemon.manage('DELETE', `/manage/tokens/${token.id}`);
    if (id === 'an inactive project')
      await this.daemon.manage('PATCH', `/manage/projects/${project}`, { is_active: false });
    if (id === "a project's wrong key") this.#standIn.reject(key);
    return token;
  }

  /** What is recorded for a project, and how often its only token was used. */
  async #usageOf(project: string): Promise<Account['reported']> {
    this.daemon.daemon.scheduler.publishAll();
    const report = await this.daemon.manage('GET', `/manage/usage?by=model&project_id=${project}`);
    const tokens = await this.daemon.manage('GET', `/manage/tokens?project_id=${project}`);
    const lines = report.body as Account['reported'][];
    return {
      requests: (tokens.body as WireToken[]).reduce((sum, { request_count: count }) => sum + count, 0),
      prompt_tokens: lines.reduce((sum, line) => sum + line.prompt_tokens, 0),
      completion_tokens: lines.reduce((sum, line) => sum + line.completion_tokens, 0),
    };
  }

  /** Requests to other machines end at a proxy that forwards nothing. */
  #proxyFor({ title }: Agent): NodeJS.ProcessEnv {
    const url = `http://${encodeURIComponent(title)}:none@${this.#proxy.address}`;
    return { HTTPS_PROXY: url, https_proxy: url };
  }

  #elsewhere({ title }: Agent): string[] {
    const user = (credentials = '') =>
      Buffer.from(credentials.replace('Basic ', ''), 'base64').toString().split(':')[0];
    const its = this.#proxy.asked.filter(({ credentials }) => decodeURIComponent(user(credentials) ?? '') === title);
    return [...new Set(its.map(({ authority }) => authority))];
  }
}

const filesWithToken = (home: string): string[] =>
  entriesBelow(home)
    .filter(({ entry, path }) => entry.isFile() && secretsIn(readFileSync(path)).some(({ kind }) => kind === 'token'))
    .map(({ path }) => relative(home, path));
