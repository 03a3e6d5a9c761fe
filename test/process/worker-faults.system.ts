/** WORKERS above 1: what happens when one of the processes ends, is frozen or is slow. */
import { expect } from 'chai';
import { EXIT } from '../../daemon/api/vocabulary.js';
import { eventually } from '../support/eventually.js';
import { freezeProcess } from '../support/freeze-process.js';
import { freePort } from '../support/ports.js';
import { childrenOf } from '../support/process-tree.js';
import { CONNECTIONS, isAlive, ROUNDS, SeveralWorkers, streaming, WORKERS } from '../support/several-workers.js';

const ALL = Array.from({ length: CONNECTIONS });

describe('a process of several workers', function () {
  this.timeout(60_000 + ROUNDS * 60_000);
  let workers: SeveralWorkers;

  beforeEach(async () => {
    workers = await SeveralWorkers.with({
      HTTP_CACHE_ENABLED: 'true',
      LISTEN_ADDR: `127.0.0.1:${(port ??= await freePort())}`,
    });
  });
  let port: number | undefined;
  after(() => SeveralWorkers.stopRunning());

  it('a worker that is frozen holds up no requests of the others, even if their responses may be cached', async () => {
    const [warm, token] = [await workers.token(), await workers.token()];
    await workers.callAll(warm);
    const [frozen = 0] = await workers.pids();
    freezeProcess(frozen);
    const soon = ALL.map(async (_, connection) =>
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

  it('a worker that is frozen is ended by the next change, which is answered within seconds', async () => {
    streaming(workers);
    const token = await workers.token();
    const streams = await Promise.all(ALL.map(() => workers.stream(token)));
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
    await workers.replaced(frozen);
  });

  it('a worker that is starting is not ended because of a change', async () => {
    const [first = 0] = await workers.pids();
    workers.kill(first);
    const replaced = { isDone: false };
    const changes = (async () => {
      while (!replaced.isDone) {
        const token = await workers.token().catch(() => null); // Its connection may have been to the killed worker.
        if (token) await workers.manage('DELETE', `/manage/tokens/${token.id}`).catch(() => undefined);
      }
    })();
    const before = workers.daemon.logged.length;
    await workers.replaced(first);
    replaced.isDone = true;
    await changes;
    expect(workers.daemon.logged.slice(before).join('\n')).not.to.include('does not respond');
  });

  it('the primary: a pause ends no worker, even while changes are being applied', async () => {
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

  it('a worker that is killed under load: the cap holds, and requests are served again', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      if (round > 0) workers = await SeveralWorkers.with({ ROUND: String(round) });
      const cap = 200;
      const token = await workers.token(cap);
      const end = workers.load(token, 5);
      for (let kills = 0; kills < 2; kills++) {
        await eventually('requests reach the provider', () => workers.fleet.reached(token.id) > kills * 20);
        const pids = await workers.pids();
        const pid = pids[Math.floor(Math.random() * pids.length)] ?? 0;
        workers.kill(pid);
        await workers.replaced(pid);
      }
      await end();
      await workers.expectExact(token, cap);
      const other = await workers.token();
      await workers.callAll(other); // Connections to killed workers break.
      expect(await workers.callAll(other)).to.deep.equal(ALL.fill(200));
    }
  });

  it('the primary that is killed under load: the workers end, and the next daemon continues with exact caps', async () => {
    workers.useUp();
    for (let round = 0; round < ROUNDS; round++) {
      const cap = 100;
      const token = await workers.token(cap);
      const end = workers.load(token, 5);
      await eventually('requests reach the provider', () => workers.fleet.reached(token.id) > 10);
      const pids = await workers.pids();
      await workers.daemon.kill();
      await eventually('no worker is left', () => !pids.some(isAlive));
      await end();
      await workers.daemon.begin();
      await workers.expectExact(token, cap);
    }
  });

  it('a worker that was frozen when its primary was killed: the next daemon ends it and gets its address', async () => {
    workers.useUp();
    const { daemon } = workers;
    const [frozen = 0, ...others] = await workers.pids();
    freezeProcess(frozen);
    process.kill(daemon.pid, 'SIGKILL');
    await eventually('only the frozen worker is left', () => !others.some(isAlive));
    expect(isAlive(frozen)).to.equal(true);
    await daemon.begin();
    await eventually('it has ended', () => !isAlive(frozen));
    expect(daemon.logged.join('\n')).to.include('ended a worker that a killed daemon had left frozen');
    expect(await workers.callAll(await workers.token())).to.deep.equal(ALL.fill(200));
  });

  it('all workers that are killed at the same time, some time after another one: they are replaced', async () => {
    workers.useUp();
    const token = await workers.token();
    const [first = 0] = await workers.pids();
    workers.kill(first);
    await workers.replaced(first);
    for (const pid of await workers.pids()) workers.kill(pid);
    await eventually('requests are served again', async () => (await workers.call(token, 0)) === 200);
  });

  it('workers that keep ending: the daemon gives up, says why, and leaves no process', async () => {
    workers.useUp();
    const { daemon } = workers;
    const seen = new Set<number>();
    let code: number | null | undefined;
    void daemon.ended.then((ended) => (code = ended));
    await eventually('the daemon ends', () => {
      for (const pid of childrenOf(daemon.pid)) {
        seen.add(pid);
        if (isAlive(pid)) process.kill(pid, 'SIGKILL');
      }
      return code !== undefined;
    });
    expect(code).to.equal(EXIT.crash);
    expect(daemon.complaints).to.match(/^llmp: \d workers ended within a minute$/m);
    expect([...seen].filter(isAlive)).to.deep.equal([]);
    expect(seen.size).to.be.at.least(WORKERS + 2);
    await daemon.kill();
  });
});
