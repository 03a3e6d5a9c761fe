import { expect } from 'chai';
import { canary } from '../support/canaries.js';
import { daemonForSuite } from '../support/daemon.js';
import { auditOf, lastAuditOf } from '../support/management.js';
import { perTest } from '../support/per-test.js';
import { commandsAt } from './captured.js';
import { refuse, responds, startStandIn } from './stand-in.js';

describe('llmp cache', () => {
  describe('against a daemon whose cache is off', () => {
    const daemon = daemonForSuite();
    const { here } = commandsAt(daemon);

    it('purge reports that it is off, and exits with 0', async () => {
      for (const words of ['cache', 'manage cache']) {
        const { exitCode, out, err } = await here(`${words} purge --method GET --url /v1/models`);
        expect({ exitCode, out, err }).to.deep.equal({
          exitCode: 0,
          out: '',
          err: '0 responses purged: the cache is off.\n',
        });
      }
    });

    it('purge is audited as an action of the CLI, with its reason', async () => {
      await here('cache purge --method get --url /v1/models?a=1 --reason prices');
      const { action, actor, reason, count, details } = await lastAuditOf(daemon);
      expect({ action, actor, reason, count }).to.deep.equal({
        action: 'cache.purge',
        actor: 'cli',
        reason: 'prices',
        count: 0,
      });
      expect(JSON.parse(details ?? '')).to.deep.equal({ method: 'GET', url: '/v1/models?a=1' });
    });

    it('purge finds a project by name or a prefix of its ID', async () => {
      const { id, name } = await daemon.createProject({ name: 'web' });
      for (const given of [id, id.slice(0, 8), name]) {
        const { exitCode, out } = await here(`cache purge --project-id ${given} --yes --json`);
        expect(exitCode).to.equal(0);
        expect(JSON.parse(out)).to.include({ purged: id, purged_count: 0 });
        expect((await lastAuditOf(daemon)).project_id).to.equal(id);
      }
      expect((await here('cache purge --project-id nobody --yes')).exitCode).to.equal(4);
    });

    it('purge shows the error of the daemon for a path that is not normalized', async () => {
      const { exitCode, err } = await here('cache purge --method GET --url /v1/../manage');
      expect(exitCode).to.equal(1);
      expect(err).to.contain('llmp: url must be a path that is forwarded');
    });

    it('stats shows it, in every format', async () => {
      expect(await here('cache stats')).to.deep.equal({
        exitCode: 0,
        out: 'off\t0\t0\t0\t0\n',
        err: 'The cache is off. Enable it with HTTP_CACHE_ENABLED=true\n',
      });
      const { out, err } = await here('manage cache stats --json');
      expect(err).to.equal('');
      expect(JSON.parse(out)).to.deep.equal({ backend: 'off', entries: 0, bytes: 0, hits: 0, misses: 0 });
      expect((await here('cache stats -o csv -q')).out).to.equal(
        'backend,entries,bytes,hits,misses\r\noff,0,0,0,0\r\n',
      );
      expect((await here('cache stats -q')).err).to.equal('');
    });

    it('creates no audit record for a dry run', async () => {
      const before = (await auditOf(daemon)).length;
      const { err } = await here('cache purge --all --dry-run');
      expect(err).to.equal('0 responses would be purged: the cache is off. Nothing was changed.\n');
      expect(await auditOf(daemon)).to.have.lengthOf(before);
    });
  });

  describe('against a daemon that responds', () => {
    const daemon = perTest(() => startStandIn());
    const { here, json } = commandsAt(daemon);

    beforeEach(() => {
      daemon.answer = responds({ message: '3 responses purged', purged_count: 3 });
    });

    it('purge shows what was purged, and does not ask for a single path', async () => {
      const { exitCode, out, err } = await here('cache purge --method GET --url /v1/models', { terminal: 80 });
      expect({ exitCode, out, err }).to.deep.equal({ exitCode: 0, out: '', err: '3 responses purged.\n' });
      expect(daemon.asked.map(({ method, url }) => `${method} ${url}`)).to.deep.equal(['POST /manage/cache/purge']);
    });

    it('purge prints what was purged and how many as JSON', async () => {
      const purge = 'cache purge --method POST --url /v1/embeddings';
      expect(await json<object>(purge)).to.deep.equal({
        purged: 'POST /v1/embeddings',
        message: '3 responses purged',
        purged_count: 3,
      });
      expect((await here(`${purge} -o csv`)).out).to.equal('purged,purged_count\r\n"POST /v1/embeddings",3\r\n');
      expect((await here(`${purge} -o id`)).out).to.equal('POST /v1/embeddings\n');
      expect((await here(`${purge} -q`)).err).to.equal('');
    });

    for (const selection of ['--all', '--project-id 3fa91c2e-0000-4000-8000-000000000000']) {
      it(`purge ${selection.split(' ')[0]} asks on a terminal, and requires --yes otherwise`, async () => {
        const purge = `cache purge ${selection}`;
        const refused = await here(purge);
        expect(refused.exitCode).to.equal(2);
        expect(refused.err).to.contain('--yes');
        const no = await here(purge, { terminal: 80, answer: 'n\n' });
        expect(no.exitCode).to.equal(2);
        expect(no.err).to.contain('nothing was changed');
        expect(daemon.asked).to.deep.equal([]);
        expect((await here(purge, { terminal: 80, answer: 'y\n' })).exitCode).to.equal(0);
        expect((await here(`${purge} --yes`)).exitCode).to.equal(0);
        expect((await here(`${purge} -n`)).exitCode).to.equal(0);
        expect(daemon.asked).to.have.lengthOf(3);
      });
    }

    for (const [what, args, said] of [
      ['nothing', '', '--method and --url, --project-id, or --all'],
      ['a path without a method', '--url /v1/models', '--method GET'],
      ['a method without a path', '--method GET', '--url PATH'],
      ['a path and a project', '--method GET --url /v1/models --project-id web', 'exclude each other'],
      ['a project and everything', '--project-id web --all', 'exclude each other'],
      ['a path and everything', '--url /v1/models --all', 'exclude each other'],
      ['a method that is not cached', '--method DELETE --url /v1/models', 'GET or POST'],
      ['a word too many', '--all /v1/models', 'too many arguments'],
    ] as const) {
      it(`purge of ${what} is refused before anything is sent`, async () => {
        const { exitCode, err } = await here(`cache purge ${args} --yes`.replace('  ', ' '));
        expect(exitCode).to.equal(2);
        expect(err).to.contain(said);
        expect(daemon.asked).to.deep.equal([]);
      });
    }

    it('purge of a full URL explains --server, and does not repeat what may be a secret', async () => {
      const key = canary('upstream');
      const { exitCode, err } = await here(`cache purge --method GET --url http://host:8080/v1/models?key=${key}`);
      expect(exitCode).to.equal(2);
      expect(err).to.contain('not a full URL').and.to.contain('such as /v1/models').and.to.contain('--server');
      expect(err).not.to.contain(key);
      expect(daemon.asked).to.deep.equal([]);
    });

    it('exits with 8 if the cache is unreachable, and shows when to try again', async () => {
      daemon.answer = refuse(503, 'unavailable', 'temporarily unavailable', { 'retry-after': '1' });
      for (const args of ['cache purge --all --yes', 'cache stats']) {
        const { exitCode, out, err } = await here(args);
        expect({ exitCode, out }).to.deep.equal({ exitCode: 8, out: '' });
        expect(err).to.contain('temporarily unavailable').and.to.contain('Try again in 1 s');
      }
    });

    it('stats shows the hit ratio on a terminal', async () => {
      daemon.answer = responds({ backend: 'redis', entries: 12, bytes: 34567, hits: 1, misses: 2 });
      const { out, err } = await here('cache stats', { terminal: 80, env: { NO_COLOR: '1' } });
      expect(err).to.equal('');
      expect(out.split('\n').map((line) => line.replace(/ +/, ' '))).to.deep.equal([
        'backend redis',
        'entries 12',
        'bytes 34567',
        'hits 1 (33 %)',
        'misses 2',
        '',
      ]);
    });
  });
});
