import { expect } from 'chai';
import { once } from 'node:events';
import { TestClock } from '../support/clock.js';
import { MANAGEMENT_TOKEN, startDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { perTest } from '../support/per-test.js';
import { llmp, type Situation } from './captured.js';
import { Running } from './running.js';
import { answerJson, refuse, type StandIn, startStandIn } from './stand-in.js';

const HEALTH = { status: 'ok', uptime_s: 1, checks: { database: 'ok' } };

/** The rows that a terminal shows after this output. */
function screenOf(written: string, columns: number): string[] {
  const rows = [''];
  let [row, column] = [0, 0];
  // eslint-disable-next-line no-control-regex
  for (const [, up, erase, break_, text] of written.matchAll(/\x1b\[(\d+)A|(\x1b\[J)|(\n)|([^\x1b\n])/g)) {
    if (up) row -= Number(up);
    if (row < 0) throw new Error('above the first row');
    if (erase) rows.splice(row, Infinity, (rows[row] ?? '').slice(0, column));
    if (break_ || (text && column === columns)) [row, column] = [row + 1, 0];
    rows[row] ??= '';
    if (text) rows[row] = (rows[row] ?? '').slice(0, column++) + text + (rows[row] ?? '').slice(column);
  }
  return rows;
}

describe('what is watched', () => {
  let running: Running | null = null;
  let next: () => void = () => undefined;
  let pauses: number[] = [];

  afterEach(async () => {
    await running?.press();
    running = null;
    pauses = [];
  });

  /** The clock does not advance between refreshes. */
  const pause = (ms: number, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      pauses.push(ms);
      next = resolve;
      signal.addEventListener('abort', () => {
        resolve();
      });
    });
  const shown = (times: number) => eventually(`it is shown ${times} times`, () => pauses.length === times);

  const watch = (url: string, args = '', situation?: Situation) => watchBy(`status --watch${args}`, url, situation);
  async function watchBy(line: string, url: string, situation: Situation = {}): Promise<Running> {
    const env = { LLMP_SERVER: url, MANAGEMENT_TOKEN, LANG: 'C.UTF-8', NO_COLOR: '1' };
    running = new Running(url, line, { pause, env, ...situation });
    await shown(1);
    return running;
  }
  async function refresh(): Promise<void> {
    const times = pauses.length;
    next();
    await shown(times + 1);
  }
  const linesOf = ({ out }: Running) =>
    out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  describe('by llmp status --watch, of a daemon', () => {
    // Its uptime is shown, and must not change between two readings.
    const daemon = perTest(() => startDaemon({ clock: new TestClock({ standsStill: true }) }));

    it('prints a line of JSON every two seconds until ^C, of which it says nothing', async () => {
      const watching = await watch(daemon.url);
      await daemon.createProject();
      daemon.clock.advance(3_000); // Counts are cached for a moment.
      await refresh();
      await refresh();
      expect(linesOf(watching).map(({ status, projects }) => [status, projects])).to.deep.equal([
        ['ready', { active: 0, all: 0 }],
        ['ready', { active: 1, all: 1 }],
        ['ready', { active: 1, all: 1 }],
      ]);
      expect(pauses).to.deep.equal([2_000, 2_000, 2_000]);
      const { exitCode, err } = await watching.press();
      expect({ exitCode, err }).to.deep.equal({ exitCode: 130, err: '' });
    });

    it('prints CSV with one line of titles when asked to', async () => {
      const watching = await watch(daemon.url, ' -o csv');
      await refresh();
      const [titles, first, second, end] = watching.out.split('\r\n');
      expect(titles).to.match(/^server,status,/);
      for (const line of [first, second]) expect(line).to.include(',ready,');
      expect(end).to.equal('');
    });

    for (const columns of [120, 40]) {
      it(`shows the same as \`status\` in the same place of a terminal of ${columns} columns`, async () => {
        const env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, LANG: 'C.UTF-8', NO_COLOR: '1' };
        const watching = await watch(daemon.url, '', { terminal: columns });
        await daemon.createToken((await daemon.createProject()).id);
        daemon.clock.advance(3_000);
        await refresh();
        await refresh();
        const { out } = await llmp('status', { env, terminal: columns });
        expect(out).to.include('1 ● active');
        expect(screenOf(watching.out, columns)).to.deep.equal(screenOf(out, columns));
      });
    }

    it('appends on a terminal that cannot move the cursor', async () => {
      const env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, TERM: 'dumb' };
      const watching = await watch(daemon.url, '', { terminal: 80, env });
      await refresh();
      expect(watching.out).not.to.include('\x1b');
      expect(watching.out.match(/^status /gm)).to.have.length(2);
    });
  });

  describe('by llmp status --watch, of one that fails', () => {
    const daemon = perTest(startStandIn);
    const answerWell: StandIn['answer'] = (req, res) => {
      if (req.url?.startsWith('/manage')) refuse(503, 'unavailable', 'temporarily unavailable')(req, res);
      else answerJson(res, 200, HEALTH);
    };
    const beAway: StandIn['answer'] = (_req, res) => {
      res.destroy();
    };

    beforeEach(() => {
      daemon.answer = answerWell;
    });

    it('continues while the daemon is unreachable, reports that once, and shows it again afterwards', async () => {
      const watching = await watch(daemon.url);
      daemon.answer = beAway;
      await refresh();
      await refresh();
      daemon.answer = answerWell;
      await refresh();
      expect(linesOf(watching).map(({ status, uptime_s: uptime }) => [status, uptime])).to.deep.equal([
        ['ready', 1],
        ['unreachable', null],
        ['unreachable', null],
        ['ready', 1],
      ]);
      expect(watching.err.match(/cannot reach the daemon/g)).to.have.length(1);
    });

    it('shows an error below the output on a terminal, until it is resolved', async () => {
      const watching = await watch(daemon.url, '', { terminal: 80 });
      const screen = () => screenOf(watching.out, 80).join('\n');
      expect(screen())
        .to.include('● ready')
        .and.to.match(/\nllmp: temporarily unavailable\n/);
      daemon.answer = beAway;
      await refresh();
      expect(screen())
        .to.include('✗ unreachable')
        .and.to.match(/\nllmp: cannot reach the daemon at .*\n {2}/);
      expect(screen()).not.to.include('temporarily');
      daemon.answer = answerWell;
      await refresh();
      expect(screen().match(/^status .*/gm)).to.deep.equal(['status    ● ready']);
      expect(screen()).not.to.include('cannot reach');
      expect(watching.err).to.equal('');
    });

    it('exits with 6 when the daemon does not respond at first', async () => {
      const env = { LLMP_SERVER: 'http://127.0.0.1:9' };
      const { exitCode, out } = await llmp('status --watch', { env, interrupted: new Promise(() => undefined) });
      expect({ exitCode, out }).to.deep.equal({ exitCode: 6, out: '' });
    });

    it('exits 3 when the management token is refused, and does not send it again', async () => {
      const rightly = daemon.answer;
      daemon.answer = (req, res) => {
        if (req.url?.startsWith('/manage')) refuse(401, 'unauthorized', 'no')(req, res);
        else rightly(req, res);
      };
      const env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN };
      const { exitCode, out, err } = await llmp('status --watch', { env, interrupted: new Promise(() => undefined) });
      expect(exitCode).to.equal(3);
      expect(out).to.include('"status":"ready"');
      expect(err).to.include('refused the management token');
      expect(daemon.asked.filter(({ url }) => url === '/manage/status')).to.have.length(1);
    });

    it('shows only the health without a management token, and reports that once', async () => {
      const watching = await watch(daemon.url, '', { env: { LLMP_SERVER: daemon.url } });
      await refresh();
      expect(linesOf(watching).map(({ status, tokens }) => [status, tokens])).to.deep.equal([
        ['ready', null],
        ['ready', null],
      ]);
      expect(watching.err).to.equal('Showing only the health, because no management token was given.\n');
    });

    for (const path of ['/health', '/manage/status']) {
      it(`ends at ^C also while it waits for ${path}, and leaves no open request`, async () => {
        const watching = await watch(daemon.url);
        const left = new Promise<void>((resolve) => {
          daemon.answer = (req, res) => {
            if (req.url !== path) answerWell(req, res);
            else
              void once(res, 'close').then(() => {
                resolve();
              });
          };
        });
        next();
        await eventually('it is asked', () => daemon.asked.filter(({ url }) => url === path).length === 2);
        expect((await watching.press()).exitCode).to.equal(130);
        await left;
      });
    }
  });

  describe('by llmp token list --watch', () => {
    const daemon = perTest(startDaemon);
    let projectId: string;

    beforeEach(async () => {
      projectId = (await daemon.createProject()).id;
    });

    it('redraws the list in place on a terminal, as many rows as fit', async () => {
      const first = await daemon.createToken(projectId, { name: 'first' });
      const watching = await watchBy('token list --watch --sort created_at', daemon.url, { terminal: 120 });
      const screen = () => screenOf(watching.out, 120);
      expect(screen().join('\n'))
        .to.match(/first .*● active/)
        .and.to.contain('1 of 1');
      await daemon.manage('PATCH', `/manage/tokens/${first.id}`, { is_active: false });
      daemon.clock.advance(1);
      for (let n = 0; n < 30; n++) await daemon.createToken(projectId);
      await refresh();
      expect(screen().join('\n'))
        .to.match(/first .*✗ revoked/)
        .and.to.contain('18 of 31');
      expect(screen().length).to.be.below(24);
      expect((await watching.press()).exitCode).to.equal(130);
    });

    it('otherwise prints a line for each new or changed token', async () => {
      const first = await daemon.createToken(projectId, { name: 'first' });
      const watching = await watchBy('token list --watch', daemon.url);
      await refresh();
      await daemon.manage('PATCH', `/manage/tokens/${first.id}`, { is_active: false });
      await daemon.createToken(projectId, { name: 'second' });
      await refresh();
      const lines = linesOf(watching).map(({ name, state }) => `${String(name)} ${String(state)}`);
      expect(lines[0]).to.equal('first active');
      expect(lines.slice(1).sort()).to.deep.equal(['first revoked', 'second active']);
    });

    it('stays on the screen while the daemon is unreachable, with the error below it', async () => {
      await daemon.createToken(projectId, { name: 'first' });
      const watching = await watchBy('token list --watch', daemon.url, { terminal: 120 });
      await daemon.stop();
      await refresh();
      const screen = screenOf(watching.out, 120).join('\n');
      expect(screen)
        .to.match(/first .*● active/)
        .and.to.match(/\nllmp: cannot reach the daemon/);
    });
  });
});
