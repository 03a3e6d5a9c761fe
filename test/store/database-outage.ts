/** What clients and operators see while a database server is unavailable, and what holds after it returns. */
import { expect } from 'chai';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Sequelize } from 'sequelize';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import type { TestResponse, TestDaemon } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Relay } from '../support/redis.js';
import { DaemonGroup } from '../support/daemon-group.js';
import { TestDatabaseTimeouts } from '../support/test-database-timeouts.js';

const SECOND_MS = 1000;
const LIMIT_MS = 60 * SECOND_MS;
const BACK_MS = 5 * SECOND_MS;
// The time until the server is probed and does not respond, plus a margin for a busy machine.
const SOON_MS = 3 * SECOND_MS;
// Clients without pauses would leave no CPU time for the servers.
const CLIENT_PAUSE_MS = 4;
const PROBE_MS = 1.5 * SECOND_MS;

const WAYS = ['is stopped', 'hangs', 'is cut off'] as const;
type Way = (typeof WAYS)[number];

export function testOutages(kind: ServerKind, name: string): void {
  describe(`an unavailable database server: ${name}${WITHOUT[kind]}`, function () {
    this.timeout(120_000);
    let server: DatabaseServer;
    let relay: Relay;
    let several: DaemonGroup;
    /** This daemon reaches its database through the relay; the other one does not. */
    let one: TestDaemon;
    let other: TestDaemon;
    let project: WireProject;
    let isStopped = false;
    const waits = new TestDatabaseTimeouts();

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.start(kind);
      relay = await Relay.to(server.port);
    });
    beforeEach(async () => {
      const url = await server.newDatabase();
      const behindRelay = new URL(url);
      behindRelay.port = String(relay.port);
      several = await DaemonGroup.start(server, {
        waitsOf: (index) => (index === 0 ? waits : undefined),
        env: { DATABASE_URL: url },
        envOf: (index): Record<string, string> => (index === 0 ? { DATABASE_URL: behindRelay.href } : {}),
      });
      [one, other] = [several.at(0), several.at(1)];
      project = await one.createProject();
    });
    afterEach(async () => {
      relay.isSilent = false;
      server.resume();
      waits.reset();
      if (isStopped) await server.begin();
      isStopped = false;
      await several.stop();
    });
    after(async () => {
      if (WITHOUT[kind]) return;
      await relay.stop();
      await server.remove();
    });

    const takeAway = async (way: Way) => {
      waits.shorten();
      if (way === 'hangs') server.freeze();
      else if (way === 'is cut off') relay.isSilent = true;
      else {
        isStopped = true;
        await server.stop();
      }
    };
    const bringBack = async (way: Way) => {
      waits.reset();
      if (way === 'hangs') server.resume();
      else if (way === 'is cut off') relay.isSilent = false;
      else {
        await server.begin();
        isStopped = false;
      }
    };
    const statusOf = async (token: WireTokenCreated, at = one) => (await at.call(token.token)).status;
    const expectAway = async (token: WireTokenCreated) => {
      const { status, headers } = await one.call(token.token);
      expect(status).to.equal(503);
      expect(Number(headers.get('retry-after'))).to.be.at.least(1);
    };
    const probe = async (path: string, status: number, fields: object) => {
      const startMs = performance.now();
      const answer = await fetch(one.url + path);
      expect(performance.now() - startMs, path).to.be.below(PROBE_MS);
      expect(answer.status, path).to.equal(status);
      expect(await answer.json(), path).to.deep.include(fields);
    };
    const isBackSoon = async (what: string, holds: () => Promise<boolean>) => {
      const startMs = performance.now();
      await eventually(what, holds, 2 * BACK_MS);
      expect(performance.now() - startMs, what).to.be.below(BACK_MS);
    };
    /** An event stream whose first chunk has arrived. */
    const beginStream = async (token: WireTokenCreated) => {
      let upstream: ServerResponse | undefined;
      several.provider.answer = (_req, res) => {
        upstream = res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write('data: first\n\n');
      };
      const response = await one.call(token.token);
      several.provider.answer = undefined;
      expect(response.status).to.equal(200);
      return { upstream: upstream!, text: response.text() };
    };
    const recordsAt = async (daemon: TestDaemon) => {
      const counted = await Promise.all(
        ['/manage/projects', '/manage/tokens', '/manage/audit'].map((path) => daemon.manage('GET', path)),
      );
      return counted.map(({ body }) => (body as unknown[]).length);
    };

    for (const way of WAYS) {
      it(`M14 ${way}: known tokens are served for TOKEN_STALE_LIMIT, none is reported as revoked or exhausted, and no change is half done`, async () => {
        const known = await one.createToken(project.id);
        const spent = await one.createToken(project.id, { max_requests: 2 });
        const roomy = await one.createToken(project.id, { max_requests: 1_000 });
        const unknown = await other.createToken(project.id);
        for (const token of [known, spent]) expect(await statusOf(token)).to.equal(200);
        const inFlight = await beginStream(known);
        const before = await recordsAt(other);
        expect(await statusOf(roomy)).to.equal(200);

        await takeAway(way);
        let served = 2;
        for (let n = 0; n < 3; n++) {
          expect(await statusOf(known)).to.equal(200);
          expect(await statusOf(roomy), 'with leased units').to.equal(200);
          served += 1;
        }
        const startMs = performance.now();
        await Promise.all([expectAway(unknown), expectAway(spent)]);
        const refused = await Promise.all<TestResponse>([
          one.manage('POST', '/manage/projects', { name: 'never', api_key: 'sk-never' }),
          one.manage('POST', '/manage/tokens', { project_id: project.id }),
          one.manage('PATCH', `/manage/tokens/${known.id}`, { is_active: false }),
          one.manage('DELETE', `/manage/tokens/${known.id}`),
          one.manage('GET', '/manage/tokens'),
        ]);
        expect(performance.now() - startMs).to.be.below(SOON_MS);
        for (const { status, headers } of refused) {
          expect(status).to.equal(503);
          expect(headers.get('retry-after')).to.match(/^[1-9]\d*$/);
        }
        await probe('/live', 200, { status: 'ok' });
        await probe('/ready', 200, { status: 'ready', missing: [], degraded: ['database'] });
        await probe('/health', 503, { status: 'failing' });

        one.clock.advance(LIMIT_MS - 20 * SECOND_MS);
        expect(await statusOf(known), 'after its refresh time').to.equal(200);
        const knownAtMs = performance.now();
        for (let n = 0; n < 5; n++) {
          one.clock.advance(SECOND_MS);
          expect(await statusOf(known)).to.equal(200);
        }
        expect(performance.now() - knownAtMs, 'all requests, once the database is known to be unavailable').to.be.below(
          SECOND_MS,
        );
        served += 6;
        one.clock.advance(15 * SECOND_MS);
        await Promise.all([known, unknown, spent, roomy].map((token) => expectAway(token)));
        await probe('/live', 200, { status: 'ok' });
        await probe('/ready', 503, { status: 'not ready', missing: ['database'], degraded: [] });
        inFlight.upstream.end('data: last\n\n');
        expect(await inFlight.text).to.equal('data: first\n\ndata: last\n\n');

        await bringBack(way);
        await isBackSoon('all is well', async () => {
          const answer = await one.manage('GET', '/ready');
          return answer.status === 200 && (answer.body as { degraded: string[] }).degraded.length === 0;
        });
        await isBackSoon('all are served', async () => (await statusOf(unknown)) === 200);
        for (const token of [known, spent]) expect(await statusOf(token)).to.equal(200);
        expect(await statusOf(spent)).to.equal(429);
        expect(await recordsAt(other), 'no records of refused changes').to.deep.equal(before);
        expect((await one.manage('DELETE', `/manage/tokens/${unknown.id}`)).status).to.equal(200);
        const countOf = async ({ id }: WireTokenCreated) => (await other.token(id)).request_count;
        await eventually('the counts are settled', async () => (await countOf(known)) === served + 1);
        await eventually('the counts of capped tokens are settled', async () => (await countOf(roomy)) === 4);
        expect(await countOf(spent)).to.equal(2);
        expect(await statusOf(known)).to.equal(200);
        await eventually('the request is counted once', async () => (await countOf(known)) === served + 2);
      });

      it(`M01 ${way}: an instance stops when asked to, and lets requests in flight finish`, async () => {
        const token = await one.createToken(project.id, { max_requests: 100 });
        expect(await statusOf(token)).to.equal(200);
        const inFlight = await beginStream(token);
        await takeAway(way);
        const startMs = performance.now();
        const stopped = one.stop();
        inFlight.upstream.end();
        await stopped;
        expect(performance.now() - startMs).to.be.below(2 * SOON_MS);
        expect(one.daemon.server.listening).to.equal(false);
      });

      it(`J08 ${way}, three times under load: every served request is counted exactly`, async () => {
        const unlimited = await one.createToken(project.id);
        const capped = await one.createToken(project.id, { max_requests: 10_000 });
        const served = new Map([unlimited, capped].map(({ id }) => [id, 0]));
        for (let round = 0; round < 3; round++) {
          let isOver = false;
          const clients = [unlimited, capped, unlimited, capped].map(async (token) => {
            while (!isOver) {
              const status = await statusOf(token);
              expect(status).to.be.oneOf([200, 503]);
              if (status === 200) served.set(token.id, (served.get(token.id) ?? 0) + 1);
              await sleep(status === 200 ? CLIENT_PAUSE_MS : 20);
            }
          });
          const atFirst = several.provider.received.length;
          await eventually('there is load', () => several.provider.received.length > atFirst + 20);
          await takeAway(way);
          await eventually('the outage is noticed', () => one.daemon.admission.settling.failed > round);
          await bringBack(way);
          await isBackSoon('it is over', async () => {
            return (await one.manage('GET', '/health')).status === 200;
          });
          isOver = true;
          await Promise.all(clients);
        }
        const countOf = async (id: string) => (await other.token(id)).request_count;
        for (const [id, count] of served)
          await eventually('the count is settled', async () => (await countOf(id)) === count);
        expect(several.provider.received.length).to.equal([...served.values()].reduce((a, b) => a + b));
      });
    }

    it('a revocation by another instance during the outage takes effect as soon as the database is available; until then requests in flight continue', async () => {
      const [revoked, kept] = [await one.createToken(project.id), await one.createToken(project.id)];
      for (const token of [revoked, kept]) expect(await statusOf(token)).to.equal(200);
      const [cut, whole] = [await beginStream(revoked), await beginStream(kept)];
      let isOver = false;
      void cut.text.catch(() => 'cut').then(() => (isOver = true));
      await takeAway('is cut off');
      expect((await other.manage('DELETE', `/manage/tokens/${revoked.id}`)).status).to.equal(200);
      expect(await statusOf(revoked, other)).to.equal(401);
      expect(await statusOf(revoked), 'within TOKEN_STALE_LIMIT').to.equal(200);
      one.clock.advance(LIMIT_MS);
      await expectAway(revoked);
      expect(isOver, 'the stream has ended').to.equal(false);
      await bringBack('is cut off');
      await isBackSoon('the revocation takes effect', async () => (await statusOf(revoked)) === 401);
      expect(await cut.text.catch(() => 'cut')).to.equal('cut');
      expect(await statusOf(kept)).to.equal(200);
      whole.upstream.end();
      expect(await whole.text).to.equal('data: first\n\n');
    });

    it('F02 leased units are not lost in an outage during which no instance can send heartbeats', async () => {
      const token = await one.createToken(project.id, { max_requests: 100 });
      const admin = new Sequelize(several.databaseUrl, { logging: false });
      for (const daemon of several.daemons) expect(await statusOf(token, daemon)).to.equal(200);
      const units = () => several.daemons.map(({ daemon }) => daemon.admission.size.leasedUnits);
      // One hour passes on the database's clock.
      await admin.query('UPDATE instances SET heartbeat_at = heartbeat_at - 3600000');
      await admin.close();
      for (const held of units()) expect(held).to.be.above(0);
      relay.isSilent = true;
      await takeAway('is stopped');
      await eventually('both notice the outage', () =>
        several.daemons.every(({ logged }) => logged.join('').includes('cannot read changes made by other instances')),
      );
      for (const { clock } of several.daemons) clock.advance(40 * SECOND_MS);
      await bringBack('is stopped');
      const isHeardAgain = ({ logged }: TestDaemon) => logged.join('').includes('are visible again');
      await isBackSoon('the one is back', () => Promise.resolve(isHeardAgain(other)));
      relay.isSilent = false;
      await isBackSoon('the other, too', () => Promise.resolve(isHeardAgain(one)));
      for (let n = 2; n < 100; n++) expect(await statusOf(token, several.at(n % 2)), `request ${n}`).to.equal(200);
      for (const daemon of several.daemons) expect(await statusOf(token, daemon)).to.equal(429);
    });
  });
}
