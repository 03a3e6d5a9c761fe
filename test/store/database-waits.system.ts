/** How long callers wait for a database when a connection is dead or the response to COMMIT is lost. */
import { expect } from 'chai';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { realClock } from '../../daemon/process/clock.js';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import { ServerDatabase } from '../../daemon/store/sql/server-database.js';
import { DATABASE_TIMEOUTS } from '../../daemon/store/sql/database.js';
import type { TestResponse, TestDaemon } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Relay, TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { DaemonGroup } from '../support/daemon-group.js';

const isCommit = (piece: Buffer) => piece.includes('COMMIT');

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`waiting for ${name}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;
    let relay: Relay;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
      relay = await Relay.to(server.port);
    });
    afterEach(() => {
      relay.dropsRepliesTo = null;
    });
    after(async () => {
      if (WITHOUT[kind]) return;
      await relay.stop();
    });

    const behindRelay = (to: string) => {
      const url = new URL(to);
      url.port = String(relay.port);
      return url.href;
    };
    const outcomeOf = (work: Promise<unknown>) =>
      work.then(
        () => 'done',
        (error: unknown) => error,
      );

    it('a statement or COMMIT without a response in time fails, and nothing else does', async () => {
      const url = behindRelay(await server.newDatabase());
      const timeouts = { ...DATABASE_TIMEOUTS, statementMs: { usual: 1_000, long: 6_000 } };
      const database = new ServerDatabase({ dialect: kind, url, poolSize: 3, clock: realClock, timeouts });
      await database.transact((tx) => tx.execute('CREATE TABLE items (id INT PRIMARY KEY)'));
      relay.dropsRepliesTo = (piece) => isCommit(piece) || piece.includes('SELECT 2');
      const slow = database.select(kind === 'postgres' ? 'SELECT pg_sleep(3)' : 'SELECT SLEEP(3)');
      const startMs = performance.now();
      const outcomes = await Promise.all([
        outcomeOf(database.select('SELECT 2', {}, 'usual')),
        outcomeOf(database.transact((tx) => tx.execute('INSERT INTO items VALUES (1)'))),
      ]);
      expect(performance.now() - startMs).to.be.below(5_000);
      for (const outcome of outcomes) expect(outcome).to.be.instanceOf(StoreUnavailable);
      relay.dropsRepliesTo = null;
      await database.transact((tx) => tx.execute('INSERT INTO items VALUES (2)'));
      expect(await outcomeOf(slow), 'a statement on another connection').to.equal('done');
      const items = await database.select<{ id: number }>('SELECT id FROM items');
      expect(items.map(({ id }) => id)).to.include(2);
      await database.close();
    });

    describe('by clients of a daemon', () => {
      let several: DaemonGroup;
      let one: TestDaemon;
      let other: TestDaemon;
      let project: WireProject;

      const begin = async (env: Record<string, string> = {}) => {
        const url = await server.newDatabase();
        several = await DaemonGroup.start(server, {
          env: { ...env, DATABASE_URL: url },
          envOf: (index): Record<string, string> => (index === 0 ? { DATABASE_URL: behindRelay(url) } : {}),
        });
        [one, other] = [several.at(0), several.at(1)];
        project = await one.createProject();
      };
      afterEach(async () => {
        relay.dropsRepliesTo = null;
        // A statement whose response was dropped ends by its timeout, for which the clock must move.
        const ended = new AbortController();
        const stopping = several.stop().finally(() => {
          ended.abort();
        });
        while (!ended.signal.aborted) {
          for (const daemon of [one, other]) daemon.clock.advance(1_000);
          await sleep(50);
        }
        await stopping;
      });

      /** Drops the responses to COMMIT while `asking`, and lets twelve seconds pass. */
      const answeredInTime = async (asking: () => Promise<TestResponse>) => {
        const swallowed = relay.dropped;
        relay.dropsRepliesTo = isCommit;
        let response: TestResponse | undefined;
        const asked = asking().then((it) => (response = it));
        await eventually('the response to COMMIT is lost', () => relay.dropped > swallowed);
        for (let second = 0; second < 12 && !response; second++) {
          one.clock.advance(1_000);
          await sleep(50);
        }
        relay.dropsRepliesTo = null;
        expect(response?.status, 'within the documented time').to.equal(503);
        expect(response?.headers.get('retry-after')).to.match(/^[1-9]\d*$/);
        return asked;
      };

      it('the response is 503 with Retry-After after ten seconds, and all counts are exact', async () => {
        await begin();
        await answeredInTime(() => one.manage('POST', '/manage/projects', { name: 'perhaps', api_key: 'sk-perhaps' }));
        const capped = await one.createToken(project.id, { max_requests: 3 });
        await answeredInTime(() => one.call(capped.token));
        for (let n = 0; n < 3; n++) {
          await eventually('the request is served', async () => (await one.call(capped.token)).status === 200);
        }
        expect((await one.call(capped.token)).status).to.equal(429);
        expect(several.provider.received.length).to.equal(3);
      });

      /** An event stream whose first chunk has arrived; resolves with the way it ends. */
      const beginStream = async (token: WireTokenCreated) => {
        several.provider.answer = (_req, res) => {
          res.writeHead(200, { 'content-type': 'text/event-stream' });
          res.write('data: first\n\n');
        };
        const response = await one.call(token.token);
        several.provider.answer = undefined;
        expect(response.status).to.equal(200);
        let isOver = false;
        void response.text().then(
          () => (isOver = true),
          () => (isOver = true),
        );
        return () => isOver;
      };

      it('a revocation by another instance takes effect although all connections but one are dead', async () => {
        const [priority, others] = [new Set<Socket>(), new Set<Socket>()];
        let isStranded = false;
        relay.dropsRepliesTo = (piece, connection) => {
          if (piece.includes('LEFT JOIN leases')) priority.add(connection);
          if (isStranded) return others.has(connection) && !priority.has(connection);
          others.add(connection);
          return false;
        };
        await begin();
        const token = await one.createToken(project.id);
        const isOver = await beginStream(token);
        isStranded = true;
        expect((await other.manage('DELETE', `/manage/tokens/${token.id}`)).status).to.equal(200);
        await eventually('the stream is ended', isOver, 5_000);
      });

      it(`a revocation by another instance ends requests in flight through Redis while the database is unavailable${WITHOUT_REDIS}`, async function () {
        const redis = WITHOUT_REDIS ? null : await TestRedis.start();
        await begin(redis ? { REDIS_ADDR: redis.address } : {});
        if (!redis) this.skip();
        const token = await one.createToken(project.id);
        const isOver = await beginStream(token);
        relay.isSilent = true;
        expect((await other.manage('DELETE', `/manage/tokens/${token.id}`)).status).to.equal(200);
        await eventually('the stream is ended', isOver, 5_000);
        relay.isSilent = false;
        await redis.stop();
      });
    });
  });
}
