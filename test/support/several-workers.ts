/** A daemon with WORKERS above 1 in its own processes, whose workers a test can freeze and kill. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage, request } from 'node:http';
import { expect } from 'chai';
import type { WireProject, WireStatus, WireTokenCreated } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN } from './daemon.js';
import { eventually } from './eventually.js';
import { Fleet, type Member } from './fleet.js';

export const WORKERS = 3;
/** LLMP_WORKER_ROUNDS sets how often each fault is repeated. */
export const ROUNDS = Number(process.env.LLMP_WORKER_ROUNDS ?? 2);
/** So many that each worker gets some. */
export const CONNECTIONS = 8 * WORKERS;
/** A daemon gives up after five within a minute. */
const MOST_DEATHS = 2;

/** A busy machine takes long to start a process. */
const REPLACED_WITHIN_MS = 45_000;

let running: SeveralWorkers | null = null;

export class SeveralWorkers {
  readonly fleet: Fleet;
  readonly daemon: Member;
  project!: WireProject;
  readonly #agents = Array.from({ length: CONNECTIONS }, () => new Agent({ keepAlive: true, maxSockets: 1 }));

  readonly #key: string;
  readonly #answer: Fleet['provider']['answer'];
  #deaths = 0;

  private constructor(key: string, fleet: Fleet) {
    this.#key = key;
    this.fleet = fleet;
    this.daemon = fleet.at(0);
    this.#answer = fleet.provider.answer;
  }

  /** The daemon of the tests before this one, if its settings are the same and few of its workers were killed; otherwise a new one. */
  static async with(env: Record<string, string> = {}): Promise<SeveralWorkers> {
    const key = JSON.stringify(env);
    if (running && running.#key === key && running.#deaths <= MOST_DEATHS) {
      running.fleet.thinkMs = () => 0;
      running.fleet.provider.answer = running.#answer;
      return running;
    }
    await SeveralWorkers.stopRunning();
    running = await SeveralWorkers.#start(key, env);
    return running;
  }

  static async stopRunning(): Promise<void> {
    const last = running;
    running = null;
    await last?.stop();
  }

  static async #start(key: string, env: Record<string, string>): Promise<SeveralWorkers> {
    const fleet = await Fleet.start(null, { count: 1, env: { WORKERS: String(WORKERS), ...env } });
    const workers = new SeveralWorkers(key, fleet);
    workers.project = await fleet.createProject();
    return workers;
  }

  token(maxRequests = 0): Promise<WireTokenCreated> {
    return this.fleet.createToken(this.project.id, maxRequests);
  }

  /** A management request on a new connection. */
  async manage(method: string, path: string, body?: unknown): Promise<{ status: number | undefined; body: unknown }> {
    const headers = { authorization: `Bearer ${MANAGEMENT_TOKEN}`, 'content-type': 'application/json' };
    const outgoing = request(this.daemon.url + path, { agent: false, method, headers });
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return { status: response.statusCode, body: JSON.parse(await textOf(response)) as unknown };
  }

  /** The body of the response to a request on a new connection. */
  async text(method: string, path: string, token: string): Promise<string> {
    const headers = { authorization: `Bearer ${token}`, 'content-length': '0' };
    const outgoing = request(this.daemon.url + path, { agent: false, method, headers }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return textOf(response);
  }

  async pids(): Promise<number[]> {
    let pids: number[] = [];
    await eventually('a worker answers', async () => {
      // The worker that would have answered may just have been killed.
      const status = await this.status().catch(() => null);
      pids = status?.workers.map(({ pid }) => pid) ?? [];
      return status !== null;
    });
    return pids;
  }

  /** Kills a worker, as `kill -9` does. */
  kill(pid: number): void {
    this.#deaths += 1;
    process.kill(pid, 'SIGKILL');
  }

  /** For a test that ends many workers, or the daemon: the next one gets another daemon. */
  useUp(): void {
    this.#deaths = Infinity;
  }

  /** Waits until all workers listen, and none of these processes is one of them. */
  async replaced(...former: readonly number[]): Promise<void> {
    await eventually(
      'the workers are replaced',
      async () => {
        const status = await this.status().catch(() => null);
        const listening = (status?.workers ?? []).filter(({ missing }) => missing.length === 0).map(({ pid }) => pid);
        return listening.length === WORKERS && !former.some((pid) => listening.includes(pid));
      },
      REPLACED_WITHIN_MS,
    );
  }

  async status(): Promise<WireStatus> {
    const { status, body } = await this.manage('GET', '/manage/status');
    if (status !== 200) throw new Error(`no status: ${JSON.stringify(body)}`);
    return body as WireStatus;
  }

  /** A request on one of the connections that stay open. @returns its status; null if the connection broke. */
  async call({ id, token }: Pick<WireTokenCreated, 'id' | 'token'>, connection: number): Promise<number | null> {
    const response = await this.#responseTo(`/v1/of/${id}`, token, this.#agents[connection % CONNECTIONS]);
    if (!response) return null;
    response.resume();
    return new Promise((resolve) => {
      response
        .on('error', () => undefined)
        .once('close', () => {
          resolve(response.complete ? (response.statusCode ?? null) : null);
        });
    });
  }

  /** The statuses of one request on each connection. */
  callAll(token: Pick<WireTokenCreated, 'id' | 'token'>): Promise<(number | null)[]> {
    return Promise.all(this.#agents.map((_, connection) => this.call(token, connection)));
  }

  /**
   * Requests on all connections, until the returned function is called. It resolves when the last ones have ended.
   * @param pauseMs between two of a connection: without a pause they take all of the processor time, also of a worker that is starting.
   */
  load(token: Pick<WireTokenCreated, 'id' | 'token'>, pauseMs = 0): () => Promise<void> {
    let isOver = false;
    const all = this.#agents.map(async (_, connection) => {
      while (!isOver) {
        const status = await this.call(token, connection);
        if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
        else if (status === null) await new Promise(setImmediate);
      }
    });
    return async () => {
      isOver = true;
      await Promise.all(all);
    };
  }

  /** Waits until a cap is used up, and checks that it was not exceeded. */
  async expectExact({ id, token }: Pick<WireTokenCreated, 'id' | 'token'>, cap: number): Promise<void> {
    const isUsedUp = async () => (await this.callAll({ id, token })).every((status) => status === 429);
    await eventually('the cap is reached', isUsedUp, REPLACED_WITHIN_MS);
    expect(this.fleet.reached(id)).to.be.at.most(cap);
    expect(await this.fleet.counted(id)).to.deep.equal({ requestCount: cap, reserved: cap, leased: 0 });
  }

  /** Begins a response that does not end by itself. */
  async stream({ id, token }: Pick<WireTokenCreated, 'id' | 'token'>): Promise<IncomingMessage> {
    const response = await this.#responseTo(`/v1/of/${id}?stream`, token, undefined);
    if (!response) throw new Error('no response');
    response.on('error', () => undefined).resume();
    return response;
  }

  #responseTo(path: string, token: string, agent: Agent | undefined): Promise<IncomingMessage | null> {
    return new Promise((resolve) => {
      const headers = { authorization: `Bearer ${token}` };
      get(`${this.daemon.url}${path}`, { agent: agent ?? false, headers }, resolve).on('error', () => {
        resolve(null);
      });
    });
  }

  async stop(): Promise<void> {
    for (const agent of this.#agents) agent.destroy();
    const { logged } = this.daemon;
    await this.fleet.stop().catch((error: unknown) => {
      throw new Error(logged.slice(-10).join('\n'), { cause: error });
    });
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of response.setEncoding('utf8')) text += piece as string;
  return text;
}

/** Whether a process exists and has not ended. One whose parent has ended may stay for a while as a zombie. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Streams do not end by themselves. */
export function streaming({ fleet }: SeveralWorkers): void {
  const { provider } = fleet;
  const usual = provider.answer;
  provider.answer = (req, res, received) => {
    if (!received.url.endsWith('?stream')) return usual?.(req, res, received);
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write('data: 1\n\n');
    return undefined;
  };
}
