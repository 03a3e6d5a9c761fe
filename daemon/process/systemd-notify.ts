/**
 * Sends messages to systemd with the program systemd-notify, one process per message, because Node does not support unix datagram sockets. A message
 * takes about ten milliseconds, and nothing waits for it. The environment of the program contains the socket, but no settings and so no secrets.
 */
import { spawn } from 'node:child_process';
import type { Log } from '../core/ports.js';

/** What systemd passes to a service that it supervises. */
export interface Supervision {
  socket: string;
  /** The PATH in which systemd-notify is searched. */
  path: string | undefined;
  /** The watchdog timeout; null if systemd has no watchdog for the service. */
  watchdogMs: number | null;
}

/** The fields of a message, as in sd_notify(3). */
export type NotifyMessage = Readonly<Record<string, string>>;

const NAMES = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID'] as const;
const TIMEOUT_MS = 10_000;
/** Fields of which only the latest value matters: a waiting message is updated instead of sending another one. */
const REPLACEABLE_FIELDS = new Set(['STATUS', 'WATCHDOG']);

/**
 * Reads and removes the variables, so that child processes do not use them.
 *
 * @returns null if systemd does not supervise this process.
 */
export function takeSupervision(env: Record<string, string | undefined>, pid: number): Supervision | null {
  const [socket, usec, watched] = NAMES.map((name) => env[name]);
  for (const name of NAMES) Reflect.deleteProperty(env, name);
  if (!socket) return null;
  const isWatched = usec !== undefined && /^[1-9]\d*$/.test(usec) && (watched === undefined || watched === String(pid));
  return { socket, path: env.PATH, watchdogMs: isWatched ? Number(usec) / 1000 : null };
}

/** Queue of messages to systemd, which are sent one after the other. */
export class SystemdNotify {
  readonly #supervision: Supervision;
  readonly #log: Log;
  readonly #waiting: NotifyMessage[] = [];
  #isSending = false;
  #isFailing = false;

  constructor(supervision: Supervision, log: Log) {
    this.#supervision = supervision;
    this.#log = log;
  }

  readonly notify = (message: NotifyMessage): void => {
    const last = this.#waiting.at(-1);
    if (last && isReplaceable(last) && isReplaceable(message))
      this.#waiting[this.#waiting.length - 1] = { ...last, ...message };
    else this.#waiting.push(message);
    this.#sendNext();
  };

  #sendNext(): void {
    const message = this.#isSending ? undefined : this.#waiting.shift();
    if (!message) return;
    this.#isSending = true;
    this.#send(message, (failure) => {
      this.#isSending = false;
      if (failure !== null && !this.#isFailing) this.#log.warn('cannot notify systemd', { failure });
      this.#isFailing = failure !== null;
      this.#sendNext();
    });
  }

  /** @param done is called once, with the failure or null. */
  #send(message: NotifyMessage, done: (failure: string | null) => void): void {
    const { socket, path } = this.#supervision;
    const fields = Object.entries(message).map(([name, value]) => `${name}=${value}`);
    const child = spawn('systemd-notify', fields, {
      env: { NOTIFY_SOCKET: socket, ...(path !== undefined && { PATH: path }) },
      stdio: 'ignore',
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    child.unref(); // The daemon may end before it.
    child.once('error', (error: NodeJS.ErrnoException) => {
      done(error.code ?? error.message);
    });
    child.once('exit', (code, signal) => {
      done(code === 0 ? null : `systemd-notify exited with ${code ?? signal ?? 'an unknown status'}`);
    });
  }
}

const isReplaceable = (message: NotifyMessage) => Object.keys(message).every((name) => REPLACEABLE_FIELDS.has(name));
