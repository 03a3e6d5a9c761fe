/** WORKERS above 1: one daemon whose promises hold over all of its processes, and whatever happens to one of them. */
import { once } from 'node:events';
import { Agent, get, type IncomingMessage, request } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { EXIT } from '../../daemon/api/vocabulary.js';
import type { WireProject, WireStatus, WireTokenCreated } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { Fleet, type Member } from '../support/fleet.js';
import { freezeProcess } from '../support/freeze-process.js';

const WORKERS = 3;
/** LLMP_WORKER_ROUNDS sets how often each fault is repeated. */
const ROUNDS = Number(process.env.LLMP_WORKER_ROUNDS ?? 3);
/** So many that each worker gets some. */
const CONNECTIONS = 8 * WORKERS;

class Workers {
  readonly fleet: Fleet;
  readonly daemon: Member;
  project!: WireProject;
  readonly #agents = Array.from({ length: CONNECTIONS }, () => new Agent({ keepAlive: true, maxSockets: 1 }));

  private constructor(fleet: Fleet) {
    this.fleet = fleet;
    this.daemon = fleet.at(0);
  }

  static async start(env: Record<string, string> = {}): Promise<Workers> {
    const fleet = await Fleet.start(null, { count: 1, env: { WORKERS: String(WORKERS), ...env } });
    const workers = new Workers(fleet);
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
    let text = '';
    for await (const piece of response.setEncoding('utf8')) text += piece as string;
    return { status: response.statusCode, body: JSON.parse(text) as unknown };
  }

  /** The body of the response to a request on a new connection. */
  async text(method: string, path: string, token: string): Promise<string> {
    const headers = { authorization: `Bearer ${token}`, 'content-length': '0' };
    const outgoing = request(this.daemon.url + path, { agent: false, method, headers }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    let text = '';
    for await (const piece of response.setEncoding('utf8')) text += piece as string;
    return text;
  }

  async pids(): Promise<number[]> {
    for (let tries = 1; ; tries++) {
      // The worker that would have answered may just have been killed.
      const answer = await this.manage('GET', '/manage/status').catch(() => null);
      if (answer === null) await new Promise((resolve) => setTimeout(resolve, 50));
      if (answer?.status === 200) return (answer.body as WireStatus).workers.map(({ pid }) => pid);
      if (tries === 20)
        throw new Error(`no status: ${JSON.stringify(answer)}\n${this.daemon.logged.slice(-12).join('\n')}`);
    }
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

/** Whether a process exists and has not ended. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Streams do not end by themselves. */
function streaming({ fleet }: Workers): void {
  const { provider } = fleet;
  const usual = provider.answer;
  provider.answer = (req, res, received) => {
    if (!received.url.endsWith('?stream')) return usual?.(req, res, received);
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write('data: 1\n\n');
    return undefined;
  };
}

describe('several workers', function () {
  this.timeout(45_000 + ROUNDS * 20_000);
  let workers: Workers;

  afterEach(() => workers.stop());

  it('after a revocation is answered, no worker forwards a request of the token', async () => {
    workers = await Workers.start();
    const rounds = Math.max(30, Number(process.env.LLMP_REVOCATION_ROUNDS ?? 0));
    for (let round = 0; round < rounds; round++) {
      const token = await workers.token();
      expect(await workers.callAll(token)).to.deep.equal(Array(CONNECTIONS).fill(200));
      // Requests that never pause while the token is revoked.
      let isOver = false;
      const load = Array.from({ length: CONNECTIONS }, async (_, connection) => {
        while (!isOver) await workers.call(token, connection);
      });
      const revoked = await workers.daemon.manage('DELETE', `/manage/tokens/${token.id}`);
      const reached = workers.fleet.reached(token.id);
      expect(revoked.status).to.equal(200);
      isOver = true;
      await Promise.all(load);
      expect(await workers.callAll(token)).to.deep.equal(Array(CONNECTIONS).fill(401));
      expect(workers.fleet.reached(token.id), `round ${round}`).to.equal(reached);
    }
  });

  it('a revocation ends the streams of all workers before it is answered', async () => {
    workers = await Workers.start();
    streaming(workers);
    const token = await workers.token();
    const streams = await Promise.all(Array.from({ length: CONNECTIONS }, () => workers.stream(token)));
    let ended = 0;
    for (const stream of streams) stream.once('close', () => (ended += 1));
    await workers.daemon.manage('DELETE', `/manage/tokens/${token.id}`);
    await eventually('all streams have ended', () => ended === CONNECTIONS);
  });

  it('a frozen worker is ended by the next change, which is answered within seconds', async () => {
    workers = await Workers.start();
    streaming(workers);
    const token = await workers.token();
    const streams = await Promise.all(Array.from({ length: CONNECTIONS }, () => workers.stream(token)));
    const [frozen = 0] = await workers.pids();
    expect(freezeProcess(frozen)).to.equal(true);
    const begunMs = performance.now();
    // The frozen worker may get one of the connections.
    const revoked = Array.from({ length: 3 }, () => workers.manage('DELETE', `/manage/tokens/${token.id}`));
    const { status } = await Promise.any(revoked);
    expect(status).to.equal(200);
    expect(performance.now() - begunMs).to.be.within(1_500, 8_000);
    expect(isAlive(frozen)).to.equal(false);
    await Promise.allSettled(revoked);
    await eventually('all streams have ended', () => streams.every(({ closed }) => closed));
    await eventually('the worker is replaced', async () => (await workers.pids()).length === WORKERS);
  });

  it('a pause of the primary ends no worker, even while changes are being applied', async () => {
    workers = await Workers.start();
    const before = await workers.pids();
    let isOver = false;
    const changes = Array.from({ length: 8 }, async (_, at) => {
      for (let change = 0; !isOver; change++)
        await workers.manage('PATCH', `/manage/projects/${workers.project.id}`, { name: `name ${at}-${change}` });
    });
    for (let pauses = 0; pauses < 2; pauses++) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      workers.daemon.freeze();
      await new Promise((resolve) => setTimeout(resolve, 2_500)); // Longer than a worker may take.
      workers.daemon.resume();
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
    isOver = true;
    await Promise.all(changes);
    expect(await workers.pids()).to.deep.equal(before);
  });

  it('a frozen worker holds up no requests of the others, even if their responses may be cached', async () => {
    workers = await Workers.start({ HTTP_CACHE_ENABLED: 'true' });
    const [warm, token] = [await workers.token(), await workers.token()];
    await workers.callAll(warm);
    const [frozen = 0] = await workers.pids();
    freezeProcess(frozen);
    const soon = Array.from({ length: CONNECTIONS }, async (_, connection) =>
      Promise.race([
        workers.call(token, connection),
        new Promise<null>((resolve) => {
          setTimeout(resolve, 5_000, null);
        }),
      ]),
    );
    const statuses = await Promise.all(soon);
    process.kill(frozen, 'SIGCONT');
    expect(statuses.filter((status) => status === 200)).to.have.length.above(0);
  });

  it('a cap holds, and requests are served again, after a worker was killed under load', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      if (round > 0) await workers.stop();
      workers = await Workers.start();
      const cap = 200;
      const token = await workers.token(cap);
      let isOver = false;
      const load = Array.from({ length: CONNECTIONS }, async (_, connection) => {
        while (!isOver) await workers.call(token, connection);
      });
      for (let kills = 0; kills < 3; kills++) {
        await eventually('requests reach the provider', () => workers.fleet.reached(token.id) > kills * 20);
        const pids = await workers.pids();
        const pid = pids[Math.floor(Math.random() * pids.length)];
        if (pid !== undefined) process.kill(pid, 'SIGKILL');
        await eventually('the worker is replaced', async () => {
          const now = await workers.pids();
          return now.length === WORKERS && !now.includes(pid ?? 0);
        });
      }
      isOver = true;
      await Promise.all(load);
      await eventually('the cap is reached', async () => {
        const statuses = await workers.callAll(token);
        return statuses.every((status) => status === 429);
      });
      const reached = workers.fleet.reached(token.id);
      const counted = await workers.fleet.counted(token.id);
      expect(reached, `round ${round}`).to.be.at.most(cap);
      expect(counted).to.deep.equal({ requestCount: cap, reserved: cap, leased: 0 });
      const other = await workers.token();
      expect(await workers.callAll(other)).to.deep.equal(Array(CONNECTIONS).fill(200));
    }
  });

  it('continues after all workers ended at the same time, and some time after another one', async () => {
    workers = await Workers.start();
    const token = await workers.token();
    const [first = 0, ...others] = await workers.pids();
    process.kill(first, 'SIGKILL');
    await eventually('the first is replaced', async () => {
      const pids = await workers.pids();
      return pids.length === WORKERS && !pids.includes(first);
    });
    const replacement = (await workers.pids()).filter((pid) => !others.includes(pid));
    for (const pid of [...others, ...replacement]) process.kill(pid, 'SIGKILL');
    await eventually('requests are served again', async () => (await workers.call(token, 0)) === 200);
  });

  it('the workers end with the primary, and the next daemon continues with exact caps', async () => {
    workers = await Workers.start();
    for (let round = 0; round < ROUNDS; round++) {
      const cap = 100;
      const token = await workers.token(cap);
      let isOver = false;
      const load = Array.from({ length: CONNECTIONS }, async (_, connection) => {
        while (!isOver) if ((await workers.call(token, connection)) === null) await new Promise(setImmediate);
      });
      await eventually('requests reach the provider', () => workers.fleet.reached(token.id) > 10);
      const pids = await workers.pids();
      await workers.daemon.kill();
      await eventually('no worker is left', () => !pids.some(isAlive));
      isOver = true;
      await Promise.all(load);
      await workers.daemon.begin();
      await eventually('the cap is reached', async () =>
        (await workers.callAll(token)).every((status) => status === 429),
      );
      expect(workers.fleet.reached(token.id), `round ${round}`).to.be.at.most(cap);
      expect(await workers.fleet.counted(token.id)).to.deep.equal({ requestCount: cap, reserved: cap, leased: 0 });
    }
  });

  it('after the response of a POST no worker replays what it made invalid', async () => {
    workers = await Workers.start({ HTTP_CACHE_ENABLED: 'true' });
    let version = 0;
    workers.fleet.provider.answer = (req, res) => {
      if (req.method === 'POST') version += 1;
      res.setHeader('cache-control', 'max-age=600');
      res.end(String(version));
    };
    const token = await workers.token();
    const ask = (method: string) => workers.text(method, `/v1/of/${token.id}`, token.token);
    for (let round = 0; round < 30; round++) {
      await Promise.all(Array.from({ length: CONNECTIONS }, () => ask('GET')));
      const posted = await ask('POST');
      const read = await Promise.all(Array.from({ length: CONNECTIONS }, () => ask('GET')));
      expect([...new Set(read)], `round ${round}`).to.deep.equal([posted]);
    }
  });

  it('a worker that is starting is not ended because of a change', async () => {
    workers = await Workers.start();
    const before = await workers.pids();
    process.kill(before[0] ?? 0, 'SIGKILL');
    const replaced = { isDone: false };
    const changes = (async () => {
      while (!replaced.isDone) {
        const token = await workers.token().catch(() => null); // Its connection may have been to the killed worker.
        if (token) await workers.manage('DELETE', `/manage/tokens/${token.id}`).catch(() => undefined);
      }
    })();
    await eventually('the worker is replaced', async () => {
      const pids = await workers.pids();
      return pids.length === WORKERS && pids[0] !== before[0];
    });
    replaced.isDone = true;
    await changes;
    expect(workers.daemon.logged.join('\n')).not.to.include('does not respond');
  });

  it('a rate limit counts the requests to all workers together', async () => {
    workers = await Workers.start({ GLOBAL_RATE_LIMIT: '50', RATE_LIMIT_WINDOW: '1h' });
    const token = await workers.token();
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => workers.callAll(token)))).flat();
    expect(statuses.filter((status) => status === 200)).to.have.length(50);
    expect(statuses.filter((status) => status === 429)).to.have.length(statuses.length - 50);
  });

  it('SIGHUP applies a setting in every worker, and in those that start later', async () => {
    const limit = join(temporaryFolder(), 'limit');
    writeFileSync(limit, '0');
    workers = await Workers.start({ GLOBAL_RATE_LIMIT_FILE: limit, RATE_LIMIT_WINDOW: '1h' });
    const token = await workers.token();
    expect(await workers.callAll(token)).to.deep.equal(Array(CONNECTIONS).fill(200));
    writeFileSync(limit, '1');
    workers.daemon.signal('SIGHUP');
    await eventually('the limit applies to all', async () =>
      (await workers.callAll(token)).every((status) => status === 429),
    );
    const before = await workers.pids();
    process.kill(before[0] ?? 0, 'SIGKILL');
    await eventually('the worker is replaced', async () => {
      const pids = await workers.pids();
      return pids.length === WORKERS && pids[0] !== before[0];
    });
    await workers.callAll(token); // The connections to the killed worker break.
    expect(await workers.callAll(token)).to.deep.equal(Array(CONNECTIONS).fill(429));
  });

  it('SIGHUP while a worker starts applies in that worker too', async () => {
    const limit = join(temporaryFolder(), 'limit');
    writeFileSync(limit, '0');
    workers = await Workers.start({ IP_RATE_LIMIT_FILE: limit, RATE_LIMIT_WINDOW: '1h' });
    const token = await workers.token();
    const [first = 0] = await workers.pids();
    process.kill(first, 'SIGKILL');
    await eventually('another one starts', () => workers.daemon.logged.some((line) => line.includes('has ended')));
    await new Promise((resolve) => setTimeout(resolve, 200));
    writeFileSync(limit, '10');
    workers.daemon.signal('SIGHUP');
    await eventually('all workers listen', async () => {
      const { body } = await workers.manage('GET', '/manage/status');
      const { length } = (body as WireStatus).workers.filter(({ missing }) => missing.length === 0);
      return length === WORKERS;
    });
    const statuses = (await Promise.all(Array.from({ length: 4 }, () => workers.callAll(token)))).flat();
    expect(statuses.filter((status) => status === 200)).to.have.length(10);
  });

  it('SIGTERM lets the requests of all workers finish, and loses no count', async () => {
    workers = await Workers.start({ SHUTDOWN_GRACE: '20s' });
    workers.fleet.thinkMs = () => 500;
    const token = await workers.token(100);
    const answers = workers.callAll(token);
    await eventually('all are in flight', () => workers.fleet.reached(token.id) === CONNECTIONS);
    await workers.daemon.stop();
    expect(await answers).to.deep.equal(Array(CONNECTIONS).fill(200));
    const counted = await workers.fleet.counted(token.id);
    expect(counted).to.deep.equal({ requestCount: CONNECTIONS, reserved: CONNECTIONS, leased: 0 });
  });

  it('gives up when workers keep ending', async () => {
    workers = await Workers.start();
    const { daemon } = workers;
    const end = { isReached: false };
    void daemon.ended.then(() => (end.isReached = true));
    while (!end.isReached) {
      const [pid] = await workers.pids().catch(() => []);
      if (pid !== undefined && isAlive(pid)) process.kill(pid, 'SIGKILL');
    }
    expect(await daemon.ended).to.equal(EXIT.crash);
    await daemon.kill();
  });
});
