/**
 * The way to systemd: systemd-notify, a process of its own for each message, because Node has no datagram sockets of the unix kind. It
 * takes some ten milliseconds, is waited for by nobody, and knows nothing but the socket: no setting, and so no secret, is in its environment.
 */
import { spawn } from 'node:child_process';
import type { Log } from '../core/ports.js';

/** What systemd says to a service that it supervises. */
export interface Supervision {
  socket: string;
  /** Where systemd-notify is looked for. */
  path: string | undefined;
  /** Within which something must be heard of the service; null where nobody watches. */
  watchdogMs: number | null;
}

/** As sd_notify(3) has them. */
export type Message = Readonly<Record<string, string>>;

const NAMES = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID'] as const;
const GIVE_UP_MS = 10_000;
/** What says how things are: the latest is all that counts. */
const IS_OF_NOW = new Set(['STATUS', 'WATCHDOG']);

/**
 * Takes it out of the environment, so that nobody who is started from here takes it to be meant for him.
 *
 * @returns null where systemd does not want to be told.
 */
export function takeSupervision(env: Record<string, string | undefined>, pid: number): Supervision | null {
  const [socket, usec, watched] = NAMES.map((name) => env[name]);
  for (const name of NAMES) Reflect.deleteProperty(env, name);
  if (!socket) return null;
  const isWatched = usec !== undefined && /^[1-9]\d*$/.test(usec) && (watched === undefined || watched === String(pid));
  return { socket, path: env.PATH, watchdogMs: isWatched ? Number(usec) / 1000 : null };
}

/** Sends one message after the other, in the order in which they were said. */
export class SystemdNotify {
  readonly #supervision: Supervision;
  readonly #log: Log;
  readonly #waiting: Message[] = [];
  #isSending = false;
  #isFailing = false;

  constructor(supervision: Supervision, log: Log) {
    this.#supervision = supervision;
    this.#log = log;
  }

  readonly tell = (message: Message): void => {
    const last = this.#waiting.at(-1);
    if (last && isOfNow(last) && isOfNow(message)) this.#waiting[this.#waiting.length - 1] = { ...last, ...message };
    else this.#waiting.push(message);
    this.#sendNext();
  };

  #sendNext(): void {
    const message = this.#isSending ? undefined : this.#waiting.shift();
    if (!message) return;
    this.#isSending = true;
    this.#send(message, (failure) => {
      this.#isSending = false;
      if (failure !== null && !this.#isFailing) this.#log.warn('systemd cannot be told how things are', { failure });
      this.#isFailing = failure !== null;
      this.#sendNext();
    });
  }

  /** @param done is called once, with what went wrong if anything did. */
  #send(message: Message, done: (failure: string | null) => void): void {
    const { socket, path } = this.#supervision;
    const fields = Object.entries(message).map(([name, value]) => `${name}=${value}`);
    const child = spawn('systemd-notify', fields, {
      env: { NOTIFY_SOCKET: socket, ...(path !== undefined && { PATH: path }) },
      stdio: 'ignore',
      timeout: GIVE_UP_MS,
      killSignal: 'SIGKILL',
    });
    child.unref(); // The end of the daemon does not wait for it.
    child.once('error', (error: NodeJS.ErrnoException) => {
      done(error.code ?? error.message);
    });
    child.once('exit', (code, signal) => {
      done(code === 0 ? null : `systemd-notify ended with ${code ?? signal ?? 'nothing'}`);
    });
  }
}

const isOfNow = (message: Message) => Object.keys(message).every((name) => IS_OF_NOW.has(name));
