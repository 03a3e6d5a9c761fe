/** The terminal UI with 100,000 tokens: how soon it starts, how soon it reacts to a key, what it writes and uses. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAIN } from '../../cli/processes.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder } from '../../support/daemon.js';
import { makeTokens } from '../../support/many-tokens.js';
import { spawnDaemon } from '../../support/process.js';
import { type Figure, median } from '../figures.js';
import { Failure } from '../processes.js';
import type { Bench, Report } from '../run.js';

const TOKENS = 100_000;
const PROJECTS = 12;
const STARTS = 7;
const KEYS = 300;
const IDLE_MS = 20_000;
const WITHIN_MS = 10_000;
const SIZE = { columns: 160, rows: 50 };

/** The end of a frame. */
const FRAME_END = '\x1b[?2026l';

export async function tui(_: Bench): Promise<Report> {
  const dir = temporaryFolder();
  const made = await startDaemon({ dir });
  for (let n = 0; n < PROJECTS; n++) await made.createProject();
  await made.stop();
  await makeTokens(join(dir, 'llmp.db'), TOKENS);
  const daemon = await spawnDaemon({ MANAGEMENT_TOKEN, DATABASE_URL: `sqlite:${join(dir, 'llmp.db')}` });
  try {
    const starts: Start[] = [];
    for (let n = 0; n < STARTS; n++) starts.push(await startOnce(daemon.url));
    const figures: Figure[] = [
      {
        what: 'start to the first frame',
        value: median(starts.map(({ frameMs }) => frameMs)) / 1000,
        unit: 's',
        goal: { atMost: 0.6 },
      },
      { what: '… to the first tokens', value: median(starts.map(({ rowsMs }) => rowsMs)) / 1000, unit: 's' },
    ];
    return { figures: [...figures, ...(await sessionFigures(daemon.url))] };
  } finally {
    daemon.child.kill('SIGTERM');
    await daemon.exit;
  }
}

interface Start {
  frameMs: number;
  rowsMs: number;
}

async function startOnce(server: string): Promise<Start> {
  const terminal = new Pty(server);
  const frameMs = await terminal.until((text) => text.includes(FRAME_END) && text.includes('llmp'));
  const rowsMs = await terminal.until((text) => text.includes('CI job'));
  await terminal.close();
  return { frameMs, rowsMs };
}

/** An operator who moves, jumps, filters and sorts, and then does nothing. */
async function sessionFigures(server: string): Promise<Figure[]> {
  const terminal = new Pty(server);
  await terminal.until((text) => text.includes('CI job'));
  await sleep(1_000);
  const walk = await terminal.keyLatencies(Array.from({ length: KEYS }, (_, n) => (n % 10 === 9 ? 'k' : 'j')));
  const leaps = await terminal.keyLatencies(
    Array.from(
      { length: KEYS / 3 },
      (_, n) => ['\x04', '\x04', '\x04', 'G', '\x15', '\x15', 'k', 'k', 'g', 'S'][n % 10] ?? 'j',
    ),
  );
  for (let n = 0; n < 400; n++) {
    terminal.write('\x04');
    await sleep(25);
  }
  await sleep(2_000);
  const before = terminal.bytes;
  await sleep(IDLE_MS);
  const idle = ((terminal.bytes - before) * 1000) / IDLE_MS;
  const text = terminal.text;
  const mostMb = terminal.mostMemoryMb();
  await terminal.close();
  return [
    { what: 'key to frame, one row, p50', value: quantile(walk, 0.5), unit: 'ms' },
    { what: '… p95', value: quantile(walk, 0.95), unit: 'ms', goal: { atMost: 50 } },
    { what: 'key to frame, pages and ends, p95', value: quantile(leaps, 0.95), unit: 'ms', goal: { atMost: 50 } },
    { what: 'written while no key is pressed', value: idle / 1000, unit: 'kB/s', goal: { atMost: 2 } },
    {
      what: 'clearings of the screen after the first frame',
      value: text.split('\x1b[2J').length - 3,
      unit: '',
      goal: { atMost: 0 },
    },
    { what: 'highest memory', value: mostMb, unit: 'MB', goal: { atMost: 150 } },
  ];
}

const quantile = (values: readonly number[], part: number): number =>
  [...values].sort((one, other) => one - other)[Math.ceil(values.length * part) - 1] ?? NaN;

/** The program at a terminal that reads as fast as the program writes. */
class Pty {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #startMs = performance.now();
  #heard: (() => void) | null = null;
  text = '';

  constructor(server: string) {
    const run = `stty cols ${SIZE.columns} rows ${SIZE.rows}; exec "$NODE" -- "$MAIN" tui`;
    this.#child = spawn('script', ['-qefc', run, '/dev/null'], {
      env: {
        PATH: process.env.PATH,
        TERM: 'xterm-256color',
        LC_ALL: 'C.UTF-8',
        HOME: temporaryFolder(),
        LLMP_SERVER: server,
        MANAGEMENT_TOKEN,
        NODE: process.execPath,
        MAIN,
      },
    });
    this.#child.on('error', (error) => {
      throw new Failure(`tui needs \`script\`: ${error.message}`);
    });
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.text += text;
      this.#heard?.();
    });
  }

  get bytes(): number {
    return Buffer.byteLength(this.text);
  }

  write(keys: string): void {
    this.#child.stdin.write(keys);
  }

  /** @returns when it was visible, in milliseconds from the start. */
  until(isThere: (text: string) => boolean, from = 0): Promise<number> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Failure(`the terminal UI did not show what was expected: ${this.text.slice(-500)}`));
      }, WITHIN_MS);
      const look = () => {
        if (!isThere(this.text.slice(from))) return;
        clearTimeout(timer);
        this.#heard = null;
        resolve(performance.now() - this.#startMs);
      };
      this.#heard = look;
      look();
    });
  }

  /** @returns milliseconds from each key to the end of the frame with the cursor in another place. */
  async keyLatencies(keys: readonly string[]): Promise<number[]> {
    const all: number[] = [];
    for (const key of keys) {
      // A random pause, so that keys are not in step with any timer.
      await sleep(40 + Math.random() * 80);
      const from = this.text.length;
      const sentMs = performance.now() - this.#startMs;
      this.write(key);
      all.push((await this.until((text) => text.includes('>') && text.includes(FRAME_END), from)) - sentMs);
    }
    return all;
  }

  mostMemoryMb(): number {
    const childOf = (pid: number) =>
      Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);
    const status = readFileSync(`/proc/${childOf(this.#child.pid ?? 0)}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }

  async close(): Promise<void> {
    const over = new Promise((resolve) => this.#child.once('close', resolve));
    this.write('q');
    await over;
  }
}
