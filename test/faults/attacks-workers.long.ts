/** Attacks on a daemon with two workers, each process with a heap of 256 MB. README.md has the figures. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { rssMb } from '../bench/machine.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { ask, head } from '../support/raw.js';
import { childrenOf } from '../support/process-tree.js';
import { attack, expectWithinLimits, type Hostility, startAttacked, targetOf } from './support/attack.js';
import { forgetPeak } from './support/measured-daemon.js';
import type { ServedDaemon } from './support/served-daemon.js';

const CONNECTIONS = 1_000;
const HELD_MS = 6_000;
/** Longer than a client may leave a response unread. */
const LONG_MS = 45_000;
/** `attack` waits seven seconds before it begins. */
const WARM_MS = 6_500;
/** Of the primary and both workers together: each may grow by 100 MB, of which 48 MiB are what it holds for clients. */
const MOST_MB = 300;
/** A worker that does not respond is ended after two seconds, and an attack must not make one look like that. */
const REVOKED_WITHIN_MS = 4_000;

describe('Attacks on a daemon with workers, each with a heap of 256 MB', function () {
  this.timeout(240_000);
  let served: ServedDaemon;
  let style: string;
  beforeEach(async () => {
    served = await startAttacked({ env: { ADMIN_UI_ENABLED: 'true', WORKERS: '2' } });
    const { text } = await ask(served.url, head('GET /admin/login', null));
    style = /href="([^"]+\.css)"/.exec(text)?.[1] ?? 'none';
  });
  afterEach(() => served.stop());

  /** Attacks, and revokes a token every half second meanwhile. */
  async function attackAll(title: string, hostility: Hostility, heldMs: number, mostMb = MOST_MB) {
    const pids = [served.pid, ...childrenOf(served.pid)];
    expect(pids).to.have.length(3);
    const revoking = new Revoking(served);
    // Just before the connections are made, when all processes have served requests for a while.
    const before = sleep(WARM_MS).then(() => {
      for (const pid of pids) forgetPeak(pid);
      return pids.map((pid) => rssMb(pid, 'now'));
    });
    const damage = await attack(targetOf(served), hostility, heldMs);
    const beforeMb = await before;
    const revokedMs = await revoking.stop();
    const lost = served.process.logged.filter((line) => /has ended|does not respond/.test(line));
    expect(lost, 'what was logged about workers').to.deep.equal([]);
    expect(childrenOf(served.pid), 'no worker was lost').to.have.members(pids.slice(1));
    const grewMb = pids.map((pid, index) => rssMb(pid, 'highest') - (beforeMb[index] ?? 0));
    console.log(
      `      processes +${grewMb.map((mb) => mb.toFixed(0)).join(' +')} MB; ${revokedMs.length} revocations, slowest ${Math.max(...revokedMs).toFixed(0)} ms`,
    );
    const total = grewMb.reduce((sum, mb) => sum + mb, 0);
    expectWithinLimits(title, { ...damage, grewMb: total }, { mostMb, isP99Judged: false });
    expect(Math.max(...revokedMs), 'the slowest revocation, in ms').to.be.below(REVOKED_WITHIN_MS);
    return damage;
  }

  it('pipelined requests for the style sheet, responses unread: memory', async function () {
    const request = `GET ${style} HTTP/1.1\r\nHost: a\r\n\r\n`;
    const hostility = { connections: CONNECTIONS, pieces: [request], times: 6_000 };
    await attackAll(this.test?.title ?? '', hostility, HELD_MS);
  });

  it('pipelined requests for the style sheet, responses unread: no connection is held for good', async function () {
    const request = `GET ${style} HTTP/1.1\r\nHost: a\r\n\r\n`;
    const hostility = { connections: 200, pieces: [request], times: 6_000 };
    const held: number[] = [];
    const counting = setInterval(() => held.push(establishedAt(served.url)), 5_000);
    await attackAll(this.test?.title ?? '', hostility, LONG_MS);
    clearInterval(counting);
    console.log(`      open connections every five seconds: ${held.join(' ')}`);
    // The polite clients have a few.
    expect(Math.max(...held)).to.be.at.least(200);
    expect(
      held.slice(-3).some((open) => open < 20),
      'all were closed',
    ).to.equal(true);
  });

  it('unfinished log-ins', async function () {
    const login = head('POST /admin/login', null, {
      'Content-Type': 'application/x-www-form-urlencoded',
      'Content-Length': '60000',
      Origin: 'http://llmp.test',
    });
    const hostility = { connections: CONNECTIONS, pieces: [login, 'x'.repeat(59_000)], pauseMs: 200 };
    await attackAll(this.test?.title ?? '', hostility, HELD_MS);
  });

  it('log-ins in chunks of one byte', async function () {
    const login = head('POST /admin/login', null, {
      'Content-Type': 'application/x-www-form-urlencoded',
      'Transfer-Encoding': 'chunked',
      Origin: 'http://llmp.test',
    });
    const hostility = { connections: 30, pieces: [login, '1\r\nx\r\n'], pauseMs: 200, times: 60_000, returns: true };
    await attackAll(this.test?.title ?? '', hostility, HELD_MS);
  });

  it('event streams and log-ins that come and go', async function () {
    const stream = head('GET /manage/events/stream', MANAGEMENT_TOKEN);
    const hostility = { connections: 300, pieces: [stream], returns: true };
    await attackAll(this.test?.title ?? '', hostility, HELD_MS);
  });

  it('a busy machine loses no worker', async () => {
    const busy = Array.from(
      { length: 4 * availableParallelism() },
      () => new Worker('const end = Date.now() + 20_000; while (Date.now() < end);', { eval: true }),
    );
    const pids = childrenOf(served.pid);
    const revoking = new Revoking(served);
    await sleep(20_000);
    const revokedMs = await revoking.stop();
    await Promise.all(busy.map((worker) => worker.terminate()));
    console.log(`      ${revokedMs.length} revocations, slowest ${Math.max(...revokedMs).toFixed(0)} ms`);
    expect(childrenOf(served.pid)).to.have.members(pids);
    expect(served.process.logged.join('\n')).not.to.include('does not respond');
  });
});

/** The established connections of a listener, as Linux reports them. The other end of a connection that it does not read may not know that it is closed. */
function establishedAt(url: string): number {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0');
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n');
  return lines.filter((line) => new RegExp(`^ *\\d+: [0-9A-F]{8}:${port} [0-9A-F:]+ 01 `).test(line)).length;
}

/** Issues and revokes tokens all the time, as an operator would in an emergency. */
class Revoking {
  readonly #tookMs: number[] = [];
  readonly #over = new AbortController();
  readonly #running: Promise<void>;

  constructor(served: ServedDaemon) {
    this.#running = this.#run(served);
  }

  async #run({ management }: ServedDaemon): Promise<void> {
    const { id } = await management.createProject({ name: 'revoked', api_key: 'sk-upstream-0' });
    while (!this.#over.signal.aborted) {
      const token = await management.createToken({ project_id: id });
      const begunMs = performance.now();
      await management.revokeToken(token.id);
      this.#tookMs.push(performance.now() - begunMs);
      await sleep(500);
    }
  }

  /** @returns how long each took, in ms. */
  async stop(): Promise<readonly number[]> {
    this.#over.abort();
    await this.#running;
    return this.#tookMs;
  }
}
