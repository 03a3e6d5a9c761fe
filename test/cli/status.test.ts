import { expect } from 'chai';
import { readShippedList } from '../../daemon/process/price-lists.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { llmp } from './captured.js';
import { answerJson, refuse, responds, type StandIn, startStandIn } from './stand-in.js';

const HOUR_MS = 3_600_000;

function shippedPrices() {
  const { source, date, sha256 } = readShippedList();
  return { source, date, sha256 };
}

describe('llmp status', () => {
  let stopping: (() => Promise<void>)[] = [];
  afterEach(async () => {
    await Promise.all(stopping.map((stop) => stop()));
    stopping = [];
  });

  async function withDaemon(settings: Record<string, string> = {}): Promise<TestDaemon> {
    const daemon = await startDaemon({ env: settings });
    stopping.push(() => daemon.stop());
    return daemon;
  }

  const at = ({ url }: { url: string }) => ({ LLMP_SERVER: url, MANAGEMENT_TOKEN });

  describe('of a daemon', () => {
    it('shows health, and the numbers of projects and tokens by state', async () => {
      const daemon = await withDaemon();
      const [on, off] = [await daemon.createProject(), await daemon.createProject()];
      await daemon.createToken(on.id, { duration_hours: 1 });
      const revoked = await daemon.createToken(on.id);
      for (let i = 0; i < 3; i++) await daemon.createToken(on.id);
      for (let i = 0; i < 2; i++) await daemon.createToken(off.id);
      await daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
      await daemon.manage('PATCH', `/manage/projects/${off.id}`, { is_active: false });
      daemon.clock.advance(HOUR_MS);

      const { exitCode, out, err } = await llmp('status --json', { env: at(daemon) });
      expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
      const { database, event_bus: bus, audit, uptime_s: uptime, ...shown } = JSON.parse(out) as Record<string, object>;
      // The clock also advances between the requests.
      expect(uptime).to.be.within(HOUR_MS / 1000, HOUR_MS / 1000 + 30);
      expect(database).to.include({ driver: 'sqlite', status: 'ok' });
      expect(bus).to.include({ kind: 'in-memory', status: 'ok', dropped: 0 });
      expect(audit).to.include({ failures: 0 });
      expect(shown).to.deep.equal({
        server: daemon.url,
        status: 'ready',
        missing: [],
        degraded: [],
        problems: [],
        checks: { database: 'ok', redis: 'off', event_bus: 'ok', memory: 'ok' },
        version: '0.1.0',
        projects: { active: 1, all: 2 },
        tokens: { active: 3, expired: 1, revoked: 1, rate_limited: 0, project_inactive: 2 },
        requests: { in_flight: 0, per_second: 0, errors_per_second: 0 },
        prices: { shipped: shippedPrices(), file: null },
        cache: { backend: 'off', hit_ratio: null },
        upstream: { p50_ms: null, p95_ms: null },
        workers: [],
      });
    });

    it('is one screen on a terminal', async () => {
      const daemon = await withDaemon();
      await daemon.createToken((await daemon.createProject()).id);
      const env = { ...at(daemon), LANG: 'C.UTF-8' };
      const { out } = await llmp('status --no-color', { env, terminal: 80 });
      expect(out).to.contain('● ready\n').and.to.contain('database ok').and.to.contain('1 ● active, 0 ○ expired');
      expect(out)
        .to.match(/^uptime +\d+s$/m)
        .and.not.to.match(/uptime_s|event_bus/);
      expect(out.trimEnd().split('\n').length).to.be.at.most(24);
      const ascii = await llmp('status --no-color', { env: { ...env, LLMP_ASCII: '1' }, terminal: 80 });
      // eslint-disable-next-line no-control-regex
      expect(ascii.out).to.match(/^[\x00-\x7f]*$/);
    });

    it('is the same screen when piped, and with -o table, without colors', async () => {
      const daemon = await withDaemon();
      const env = { ...at(daemon), LANG: 'C.UTF-8' };
      const nowMs = daemon.clock.now();
      const shownBy = async (args: string, terminal?: number) =>
        (await llmp(args, { env, nowMs, ...(terminal !== undefined && { terminal }) })).out.replace(/^uptime.*$/m, '');
      const screen = await shownBy('status --no-color', 80);
      for (const args of ['status', 'status -o table']) expect(await shownBy(args)).to.equal(screen);
      expect(await shownBy('status -o csv')).to.match(/^server,status,/);
    });

    it('exits with 9 if it is not ready, and shows what is missing', async () => {
      const daemon = await withDaemon({ AUTO_MIGRATE: 'false' });
      const { exitCode, out } = await llmp('status --json', { env: at(daemon) });
      expect(exitCode).to.equal(9);
      expect(JSON.parse(out)).to.deep.include({ status: 'not ready', missing: ['pending migrations'] });
    });

    it('needs no management token for the health alone', async () => {
      const { url } = await withDaemon();
      const { exitCode, out, err } = await llmp('status --json', { env: { LLMP_SERVER: url } });
      expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
      expect(JSON.parse(out)).to.include({ status: 'ready', projects: null, tokens: null });
      const { err: note } = await llmp('status', { env: { LLMP_SERVER: url } });
      expect(note).to.contain('no management token was given');
    });

    it('exits 3 with a wrong management token, and shows the health all the same', async () => {
      const { url } = await withDaemon();
      const env = { LLMP_SERVER: url, MANAGEMENT_TOKEN: canary('management') };
      const { exitCode, out, err } = await llmp('status', { env });
      expect(exitCode).to.equal(3);
      expect(out).to.contain('ready\n');
      expect(err).to.contain('refused the management token');
    });
  });

  it('exits with 6 when the daemon does not respond', async () => {
    const { exitCode, out, err } = await llmp('status', {
      env: { LLMP_SERVER: 'http://127.0.0.1:9', MANAGEMENT_TOKEN },
    });
    expect({ exitCode, out }).to.deep.equal({ exitCode: 6, out: '' });
    expect(err).to.contain('cannot reach the daemon at http://127.0.0.1:9');
  });

  describe('of what answers otherwise', () => {
    let daemon: StandIn;

    beforeEach(async () => {
      daemon = await startStandIn();
      stopping.push(() => daemon.stop());
    });

    const HEALTH = { status: 'ok', uptime_s: 1, checks: { database: 'ok' } };

    it('exits 8 when the management API of a ready daemon fails', async () => {
      daemon.answer = (req, res) => {
        if (req.url?.startsWith('/manage')) refuse(503, 'unavailable', 'temporarily unavailable')(req, res);
        else answerJson(res, 200, HEALTH);
      };
      const { exitCode, out, err } = await llmp('status --json', { env: at(daemon) });
      expect(exitCode).to.equal(8);
      expect(JSON.parse(out)).to.include({ status: 'ready', tokens: null });
      expect(JSON.parse(err)).to.include({ error: 'temporarily unavailable' });
    });

    it('shows degraded parts, and exits with 0', async () => {
      daemon.answer = (req, res) => {
        answerJson(res, 200, req.url === '/ready' ? { status: 'ready', degraded: ['redis'] } : HEALTH);
      };
      const { exitCode, out } = await llmp('status --json --no-input', { env: { LLMP_SERVER: daemon.url } });
      expect(exitCode).to.equal(0);
      expect(JSON.parse(out)).to.deep.include({ status: 'ready', degraded: ['redis'] });
    });

    it('sends no management token to the probes', async () => {
      daemon.answer = responds(HEALTH);
      await llmp('status', { env: at(daemon) });
      const probes = daemon.asked.filter(({ url }) => !url.startsWith('/manage'));
      expect(probes.map(({ url }) => url)).to.have.members(['/live', '/ready', '/health']);
      for (const { headers } of probes) expect(headers).not.to.have.property('authorization');
    });

    it('shows control characters from there as escapes', async () => {
      daemon.answer = (req, res) => {
        const hostile = 'x\u001b[2J\u009b31m';
        answerJson(
          res,
          503,
          req.url === '/ready'
            ? { status: hostile, missing: [hostile] }
            : { ...HEALTH, checks: { [hostile]: hostile } },
        );
      };
      for (const situation of [{ terminal: 80 }, {}]) {
        const { exitCode, out } = await llmp('status --no-color', {
          env: { LLMP_SERVER: daemon.url },
          ...situation,
          answer: '\u0003',
        });
        expect(exitCode).to.equal(9);
        // eslint-disable-next-line no-control-regex
        expect(out).not.to.match(/[\u001b\u009b]/);
        expect(out).to.contain('1b[2J');
      }
    });

    for (const [what, answer] of [
      ['a web page', (_req, res) => res.end('<html>')],
      ['JSON of another kind', responds({ hello: 1 })],
      ['another service that knows no such path', responds({ status: 404 }, 404)],
    ] as [string, StandIn['answer']][]) {
      it(`exits 6 for ${what}: what answers is not llmp`, async () => {
        daemon.answer = answer;
        const { exitCode, err } = await llmp('status', { env: at(daemon) });
        expect(exitCode).to.equal(6);
        expect(err).to.contain('not llmp');
      });
    }
  });
});
