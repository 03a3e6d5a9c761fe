/** A fake terminal: what the terminal's code uses, provided by the test. */
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import type { Size, TerminalIo } from '../../console/terminal-io.js';
import { TestClock } from './clock.js';

const errorOf = (code: string) => Object.assign(new Error(code), { code });

class FakeProcess extends EventEmitter {
  readonly pid = 4242;
  readonly sent: string[] = [];
  /** Called for each signal that is sent. */
  onKill: (signal: NodeJS.Signals) => void = () => undefined;

  kill(pid: number, signal: NodeJS.Signals): void {
    this.sent.push(`${signal} to ${pid}`);
    this.onKill(signal);
  }
}

class FakeStdin extends PassThrough {
  readonly isTTY = true;
  isRaw = false;

  setRawMode(isRaw: boolean): this {
    this.isRaw = isRaw;
    return this;
  }
}

class FakeStream extends PassThrough {
  readonly isTTY = true;
  columns = 80;
  rows = 24;
  text = '';

  constructor() {
    super();
    this.on('data', (bytes: Buffer) => (this.text += bytes.toString()));
  }
}

export class FakeTerminal implements TerminalIo {
  env: NodeJS.ProcessEnv;
  readonly clock = new TestClock({ standsStill: true });
  readonly process = new FakeProcess();
  readonly stdin = new FakeStdin();
  readonly stdout = new FakeStream();
  readonly stderr = new FakeStream();
  isBlocking = true;
  /** The number of bytes that it accepts before it is full. */
  room = Infinity;
  /** Set once the terminal is gone. */
  goneWith: string | undefined;
  readonly exits: number[] = [];
  #written: Buffer = Buffer.alloc(0);

  constructor(
    env: NodeJS.ProcessEnv = { TERM: 'xterm-256color', LC_ALL: 'C.UTF-8' },
    size: Size = { columns: 80, rows: 24 },
  ) {
    this.env = env;
    Object.assign(this.stdout, size);
  }

  /** Everything that was written to the screen. */
  get written(): string {
    return this.#written.toString();
  }

  /** What was written since the last call. */
  take(): string {
    const { written } = this;
    this.#written = Buffer.alloc(0);
    return written;
  }

  write(bytes: Uint8Array): number {
    if (this.goneWith) throw errorOf(this.goneWith);
    if (this.room === 0) throw errorOf('EAGAIN');
    const taken = bytes.subarray(0, this.room);
    this.room -= taken.length;
    this.#written = Buffer.concat([this.#written, taken]);
    return taken.length;
  }

  setBlocking(isBlocking: boolean): void {
    this.isBlocking = isBlocking;
  }

  exit(code: number): void {
    this.exits.push(code);
  }

  resize(columns: number, rows: number): void {
    Object.assign(this.stdout, { columns, rows });
    this.stdout.emit('resize');
  }

  /** Lets work in progress finish, and time pass. */
  async passes(ms = 0): Promise<void> {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    this.clock.advance(ms);
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}
