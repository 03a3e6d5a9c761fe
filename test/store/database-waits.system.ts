/** How long anybody waits for a database of which a connection leads nowhere, or the answer to COMMIT is lost. */
import { expect } from 'chai';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { realClock } from '../../daemon/process/clock.js';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import { ServerDatabase } from '../../daemon/store/sql/server-database.js';
import { DATABASE_WAITS } from '../../daemon/store/sql/waits.js';
import type { TestAnswer, TestDaemon } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Relay, TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { Several } from '../support/several.js';

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
      relay.swallowsAnswersTo = null;
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

    it('a statement, or a COMMIT, that is not answered in time fails, and nothing else does (finding G2)', async () => {
      const url = behindRelay(await server.newDatabase());
      const waits = { ...DATABASE_WAITS, statementMs: { usual: 1_000, long: 6_000 } };
      const database = new ServerDatabase({ dialect: kind, url, poolSize: 3, clock: realClock, waits });
      await database.transact((tx) => tx.execute('CREATE TABLE kept (id INT PRIMARY KEY)'));
      relay.swallowsAnswersTo = (piece) => isCommit(piece) || piece.includes('SELECT 2');
      const slow = database.select(kind === 'postgres' ? 'SELECT pg_sleep(3)' : 'SELECT SLEEP(3)');
      const startMs = performance.now();
      const outcomes = await Promise.all([
        outcomeOf(database.select('SELECT 2', {}, 'usual')),
        outcomeOf(database.transact((tx) => tx.execute('INSERT INTO kept VALUES (1)'))),
      ]);
      expect(performance.now() - startMs).to.be.below(5_000);
      for (const outcome of outcomes) expect(outcome).to.be.instanceOf(StoreUnavailable);
      relay.swallowsAnswersTo = null;
      await database.transact((tx) => tx.execute('INSERT INTO kept VALUES (2)'));
      expect(await outcomeOf(slow), 'what goes over another connection').to.equal('done');
      const kept = await database.select<{ id: number }>('SELECT id FROM kept');
      expect(kept.map(({ id }) => id)).to.include(2);
      await database.close();
    });

    describe('by those who ask a daemon', () => {
      let several: Several;
      let one: TestDaemon;
      let other: TestDaemon;
      let project: WireProject;

      const begin = async (env: Record<string, string> = {}) => {
        const url = await server.newDatabase();
        several = await Several.start(server, {
          env: { ...env, DATABASE_URL: url },
          envOf: (index): Record<string, string> => (index === 0 ? { DATABASE_URL: behindRelay(url) } : {}),
        });
        [one, other] = [several.at(0), several.at(1)];
        project = await one.createProject();
      };
      afterEach(() => several.stop());

      /** Has the answers to COMMIT swallowed while `asking`, and twelve seconds pass. */
      const answeredInTime = async (asking: () => Promise<TestAnswer>) => {
        const swallowed = relay.swallowed;
        relay.swallowsAnswersTo = isCommit;
        let answer: TestAnswer | undefined;
        const asked = asking().then((it) => (answer = it));
        await eventually('the answer to COMMIT is lost', () => relay.swallowed > swallowed);
        for (let second = 0; second < 12 && !answer; second++) {
          one.clock.advance(1_000);
          await sleep(50);
        }
        relay.swallowsAnswersTo = null;
        expect(answer?.status, 'in the time that README names').to.equal(503);
        expect(answer?.headers.get('retry-after')).to.match(/^[1-9]\d*$/);
        return asked;
      };

      it('it is 503 with Retry-After after ten seconds, and what was counted is exact (finding G2)', async () => {
        await begin();
        await answeredInTime(() => one.manage('POST', '/manage/projects', { name: 'perhaps', api_key: 'sk-perhaps' }));
        const capped = await one.createToken(project.id, { max_requests: 3 });
        await answeredInTime(() => one.call(capped.token));
        for (let n = 0; n < 3; n++) {
          await eventually('it is served', async () => (await one.call(capped.token)).status === 200);
        }
        expect((await one.call(capped.token)).status).to.equal(429);
        expect(several.provider.received.length).to.equal(3);
      });

      /** An event stream of which the first piece has arrived; gives what it ends with. */
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

      it('a revocation elsewhere is heard of although all connections but one lead nowhere (finding G1) (finding G2)', async () => {
        const [aside, beside] = [new Set<Socket>(), new Set<Socket>()];
        let isStranded = false;
        relay.swallowsAnswersTo = (piece, connection) => {
          if (piece.includes('LEFT JOIN leases')) aside.add(connection);
          if (isStranded) return beside.has(connection) && !aside.has(connection);
          beside.add(connection);
          return false;
        };
        await begin();
        const token = await one.createToken(project.id);
        const isOver = await beginStream(token);
        isStranded = true;
        expect((await other.manage('DELETE', `/manage/tokens/${token.id}`)).status).to.equal(200);
        await eventually('it is ended', isOver, 5_000);
      });

      it(`a revocation elsewhere reaches what is in flight by Redis, while the database is away${WITHOUT_REDIS} (finding G1)`, async function () {
        const redis = WITHOUT_REDIS ? null : await TestRedis.start();
        await begin(redis ? { REDIS_ADDR: redis.address } : {});
        if (!redis) this.skip();
        const token = await one.createToken(project.id);
        const isOver = await beginStream(token);
        relay.isSilent = true;
        expect((await other.manage('DELETE', `/manage/tokens/${token.id}`)).status).to.equal(200);
        await eventually('it is ended', isOver, 5_000);
        relay.isSilent = false;
        await redis.stop();
      });
    });
  });
}
