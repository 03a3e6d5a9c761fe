/** What operators see: status, metrics, migrations, the cache and the stream of events. */
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import type {
  WireCache,
  WireCachePurged,
  WireEvent,
  WireMigrations,
  WireProject,
  WireStatus,
  WireTokenCreated,
} from '../../../daemon/api/contract.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { Follower } from '../../support/follower.js';
import type { ContractContext } from './context.js';
import { stateOf, storedTokens } from './stored.js';

const EVENTS = 130;

export function behavesInOperation(given: ContractContext): void {
  describe('in operation', () => {
    let project: WireProject;
    let token: WireTokenCreated;
    before(async () => {
      const body = { name: 'in operation', api_key: UPSTREAM_KEY };
      project = await given.system.ask('POST', '/manage/projects', { body });
      token = await given.system.ask('POST', '/manage/tokens', { body: { project_id: project.id } });
    });

    it('each instance is ready and counts what exists', async () => {
      const drivers = { postgres: 'postgres', mysql: 'mysql', sqlite: 'sqlite' };
      const stored = await storedTokens(given.system);
      for (let at = 0; at < given.system.count; at++) {
        const status = await given.system.ask<WireStatus>('GET', '/manage/status', { at });
        expect(status).to.deep.include({ status: 'ready', missing: [], degraded: [] });
        expect(status.database).to.deep.include({
          driver: drivers[given.system.deployment.server ?? 'sqlite'],
          status: 'ok',
          pending_migrations: [],
        });
        expect(status.redis).to.equal(given.system.deployment.server ? 'ok' : 'off');
        const counts: Record<string, number> = {};
        for (const each of stored) counts[stateOf(each, Date.now())] = (counts[stateOf(each, Date.now())] ?? 0) + 1;
        // If counting takes long, it is not done for each request.
        await eventually('the tokens are counted', async () => {
          const { tokens } = await given.system.ask<WireStatus>('GET', '/manage/status', { at });
          return isDeepStrictEqual(tokens, counts);
        });
        expect(status.projects?.all).to.be.greaterThan(100);
        expect(typeof status.projects?.active).to.equal('number');
      }
    });

    it('every migration is applied, with a valid time', async () => {
      const { current, pending, applied } = await given.system.ask<WireMigrations>('GET', '/manage/migrations');
      expect(pending).to.deep.equal([]);
      expect(applied.at(-1)?.name).to.equal(current);
      const age = Date.now() - Date.parse(applied[0]?.applied_at ?? '');
      expect(age).to.be.within(0, 3_600_000);
      expect(await given.system.ask('POST', '/manage/migrations/up')).to.deep.include({ current, pending: [] });
    });

    it('metrics are numbers, and the instance that served a request counts it', async () => {
      const scraped = async () => {
        let sum = 0;
        for (let at = 0; at < given.system.count; at++) {
          const text = await given.system.ask<string>('GET', '/metrics', { at });
          for (const line of text.split('\n')) {
            if (line === '' || line.startsWith('#')) continue;
            const value = /(\S+)$/.exec(line)?.[1] ?? '';
            // The mean of no samples, after a scrape that was just before this one.
            if (line.startsWith('nodejs_eventloop_lag_') && value === 'Nan') continue;
            expect(value === '+Inf' || !Number.isNaN(Number(value)), line).to.equal(true);
            if (line.startsWith('llmp_requests_total')) sum += Number(value);
          }
        }
        return sum;
      };
      const before = await scraped();
      for (let n = 0; n < 6; n++) expect(await given.system.completion(token.token, 'm', n)).to.equal(200);
      await eventually('they are counted', async () => (await scraped()) === before + 6);
    });

    it('events of all instances reach every follower, and a later follower gets what it missed', async () => {
      const isShared = given.system.deployment.server !== null;
      const filter = { token_id: token.id };
      const followers = Array.from(
        { length: given.system.count },
        (_, at) =>
          new Follower<WireEvent>(given.system.instance(at).url, (client, options) => client.events(filter, options)),
      );
      // A stream begins with the next event: until each follower has received one, it may not have begun.
      await eventually('all follow', async () => {
        await given.system.completion(token.token, 'first');
        return followers.every(({ items }) => items.length > 0);
      });
      const ofLast = ({ items }: Follower<WireEvent>) =>
        items.filter((event) => event.kind === 'request.completed' && event.model === 'last');
      for (let n = 0; n < EVENTS; n++) await given.system.completion(token.token, 'last', n);
      for (const follower of followers) {
        await eventually('it receives everything', () => ofLast(follower).length >= EVENTS);
        const ids = ofLast(follower).map(({ id }) => id);
        expect(new Set(ids).size).to.equal(EVENTS);
      }
      const [follower] = followers;
      const behind = follower?.positions.at(-EVENTS - 1) ?? '';
      const wanted = follower?.items.slice(-EVENTS).map(({ id }) => id);
      const later = new Follower<WireEvent>(
        given.system.instance(isShared ? 1 : 0).url,
        (client, options) => client.events(filter, options),
        behind,
      );
      await eventually('it receives what it missed', () => later.items.length >= EVENTS);
      expect(later.items.map(({ id }) => id)).to.deep.equal(wanted);
      for (const each of [...followers, later]) await each.leave();
      for (let at = 0; at < given.system.count; at++) {
        const path = `/manage/events?token_id=${token.id}&model=last&since=1h&limit=1000`;
        const listed = await given.system.ask<WireEvent[]>('GET', path, { at });
        const own = followers[at];
        expect(listed.map(({ id }) => id).reverse()).to.deep.equal(own && ofLast(own).map(({ id }) => id));
      }
    });

    it('cached responses are served, counted and purged by every instance', async () => {
      const paths = Array.from({ length: 12 }, (_, n) => `/v1/models?page=${n}`);
      const cached = async (path: string, at: number) => {
        const response = await given.system.call(token.token, path, { at });
        await response.text();
        return response.headers.get('x-proxy-cache');
      };
      for (const path of paths) {
        for (let at = 0; at < 4; at++) {
          await eventually('it is in the cache', async () => (await cached(path, at)) === 'hit');
        }
      }
      const purge = (body: object) =>
        given.system.ask<WireCachePurged>('POST', '/manage/cache/purge', { body }).then((it) => it.purged_count);
      const entries = async (at: number) => (await given.system.ask<WireCache>('GET', '/manage/cache', { at })).entries;
      // Each worker has its own copy of what it has served.
      const { workers } = given.system.deployment;
      const isOf = (responses: number, counted: number) => {
        expect(counted).to.be.within(responses, responses * workers);
      };
      isOf(paths.length, await purge({ project_id: project.id, dry_run: true }));
      isOf(1, await purge({ method: 'GET', url: paths[0] }));
      isOf(paths.length - 1, await purge({ project_id: project.id }));
      expect(await purge({ project_id: project.id })).to.equal(0);
      await purge({ all: true });
      for (let at = 0; at < given.system.count; at++) expect(await entries(at)).to.equal(0);
      expect(await cached(paths[3] ?? '', 1)).to.equal('miss');
    });
  });
}
