import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { figureTable, median, quantile } from './figures.js';
import { load, loadGenerators } from './load.js';
import { installed } from './machine.js';
import { parseOptions } from './options.js';
import { UsageError } from './usage-error.js';
import { Failure, Processes } from './processes.js';
import { eventually } from '../support/eventually.js';

const BENCH = join(import.meta.dirname, 'main.js');

interface Output {
  profile: string;
  rows: Record<string, unknown>[];
  figures: { what: string; value: number }[];
}

describe('npm run bench', function () {
  this.timeout(120_000);
  let child: ChildProcess;
  let output: string;
  let errors: string;

  /** In a separate process group, so that the test can check whether any of it is left. */
  function start(...args: string[]): Promise<unknown[]> {
    child = spawn(process.execPath, [BENCH, ...args], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    [output, errors] = ['', ''];
    child.stdout?.on('data', (piece: Buffer) => (output += piece.toString()));
    child.stderr?.on('data', (piece: Buffer) => (errors += piece.toString()));
    return once(child, 'close');
  }

  afterEach(() => {
    if (isAnythingLeft()) process.kill(-child.pid!, 'SIGKILL');
  });

  function isAnythingLeft(): boolean {
    try {
      return process.kill(-child.pid!, 0);
    } catch {
      return false;
    }
  }

  it('prints the figures of the daemon and its baselines, as a table and as JSON, and leaves no process running', async () => {
    const [code] = await start('--rounds', '1', '--seconds', '1', '--warm-up', '0');
    expect(code, errors).to.equal(0);
    const { profile, rows, figures } = JSON.parse(output.trim().split('\n').at(-1) ?? '') as Output;
    expect(profile).to.equal('throughput');
    for (const service of ['bare undici forwarder', 'llmp, unlimited token']) {
      const row = rows.find((each) => each.service === service);
      expect(row?.['requests/s']).to.be.above(0);
      expect(output).to.match(new RegExp(`^\\| ${service} +\\| \\d`, 'm'));
    }
    const [ratio] = figures;
    expect(ratio?.what).to.equal('requests/s against the forwarder');
    expect(ratio?.value).to.be.above(0);
    expect(isAnythingLeft()).to.equal(false);
  });

  it('measures the releases of Node.js whose paths are given', async () => {
    const [code] = await start(
      ...['runtimes', '--rounds', '1', '--seconds', '1', '--warm-up', '0', '--settle', '0'],
      ...['--node', process.execPath],
    );
    expect(code, errors).to.equal(0);
    const { rows, figures } = JSON.parse(output.trim().split('\n').at(-1) ?? '') as Output;
    const name = `llmp, Node ${process.versions.node}`;
    expect(rows.filter(({ service }) => service === name).map(({ workload }) => workload)).to.deep.equal([
      'chats',
      'hits',
    ]);
    for (const { what, value } of figures) expect(value, what).to.be.above(0);
    expect(isAnythingLeft()).to.equal(false);
  });

  it('ends everything it started when it is interrupted', async () => {
    const ended = start('capped', '--seconds', '60');
    await eventually('it is running', () => errors.includes('warming up'), 60_000);
    process.kill(-child.pid!, 'SIGINT'); // As a terminal does: to all of them.
    expect((await ended)[0], errors).to.equal(130);
    expect(isAnythingLeft()).to.equal(false);
  });

  for (const generator of loadGenerators) {
    const isThere = generator === 'autocannon' || installed(generator) !== null;
    (isThere ? it : it.skip)(`discards a run by ${generator} if a single response is an error`, async () => {
      let answers = 0;
      const server = createServer((_req, res) => {
        res.writeHead(++answers === 20 ? 503 : 200).end();
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const processes = new Processes();
      const { options } = parseOptions(['--load', generator]);
      const target = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, headers: {} };
      const cores = { measured: null, others: null };
      const run = () =>
        load({ processes, cores, options, node: process.execPath }, target, { connections: 2, seconds: 1 });
      const failure = await run().catch((error: unknown) => error);
      expect(failure)
        .to.be.instanceOf(Failure)
        .with.property('message')
        .that.matches(/^void: 1 failures/);
      expect((await run()).requests).to.be.above(0);
      server.close();
    });
  }

  it('explains its options when an option is invalid', async () => {
    expect(await start('faster')).to.deep.equal([2, null]);
    expect(errors).to.include('no profile faster').and.to.include('profiles: throughput, ');
    expect(() => parseOptions(['--rounds', '0'])).to.throw(UsageError, '--rounds is a whole number of at least 1');
    expect(() => parseOptions(['--round', '1'])).to.throw(UsageError, '--round');
  });
});

describe("a benchmark's figures", () => {
  it('are shown with their goals, reached or not, and unknown if nothing was measured', () => {
    const lines = figureTable([
      { what: 'a ratio', value: 0.7512, unit: '', goal: { atLeast: 0.75 } },
      { what: 'another', value: 0.7488, unit: '', goal: { atLeast: 0.75 } },
      { what: 'a time', value: 2.004, unit: 'ms', goal: { atMost: 2 } },
      { what: 'a size', value: NaN, unit: 'MB', goal: { atMost: 200 } },
      { what: 'a count', value: 14_123.4, unit: '' },
    ]).split('\n');
    const cells = lines.map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((each) => each.trim()),
    );
    expect(cells.slice(2)).to.deep.equal([
      ['a ratio', '0.751', '≥ 0.75', 'yes'],
      ['another', '0.749', '≥ 0.75', 'no'],
      ['a time', '2 ms', '≤ 2 ms', 'no'],
      ['a size', 'unknown', '≤ 200 MB', ''],
      ['a count', '14123', '', ''],
    ]);
    expect(new Set(lines.map((line) => line.length)).size).to.equal(1);
  });

  it('are medians and quantiles', () => {
    expect(median([3, 1, 2])).to.equal(2);
    expect(median([4, 1, 3, 2])).to.equal(2.5);
    expect(quantile([5, 4, 3, 2, 1], 0.5)).to.equal(3);
    expect(
      quantile(
        Array.from({ length: 200 }, (_, n) => n + 1),
        0.99,
      ),
    ).to.equal(198);
    expect(median([])).to.be.NaN;
  });
});
