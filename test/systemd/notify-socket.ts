/** Notification socket like that of systemd. A Python script listens on it, because Node does not support unix datagram sockets. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';

/** The reason why tests of the socket are skipped; empty if the tools are installed, and in CI, where they fail instead. */
export const WITHOUT_NOTIFY =
  process.env.CI !== 'true' && ['python3', 'systemd-notify'].some((tool) => spawnSync(tool, ['--version']).error)
    ? ' (skipped: systemd-notify or python3 is not installed)'
    : '';

// Like systemd it closes the descriptors of a message, which tells the sender that the message was read.
const LISTENS = `
import array, json, os, socket, sys, time
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(sys.argv[1])
print(json.dumps({"fields": [], "atMs": 0}), flush=True)
while True:
    data, handed, _, _ = listener.recvmsg(65536, socket.CMSG_SPACE(64))
    for level, kind, piece in handed:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors = array.array("i")
            descriptors.frombytes(piece[:len(piece) - len(piece) % descriptors.itemsize])
            for descriptor in descriptors: os.close(descriptor)
    print(json.dumps({"fields": data.decode().strip().split("\\n"), "atMs": time.monotonic() * 1000}), flush=True)
`;

export interface ReceivedMessage {
  fields: Readonly<Record<string, string>>;
  /** When it arrived, on a monotonic clock. */
  atMs: number;
}

export class NotifySocket {
  readonly path: string;
  /** The received messages in order. */
  readonly received: ReceivedMessage[] = [];
  readonly #listener: ChildProcess;

  private constructor(path: string) {
    this.path = path;
    const listener = spawn('python3', ['-c', LISTENS, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#listener = listener;
    createInterface(listener.stdout).on('line', (line) => {
      const { fields, atMs } = JSON.parse(line) as { fields: string[]; atMs: number };
      const pairs = fields.map((field) => [field.split('=', 1)[0] ?? '', field.slice(field.indexOf('=') + 1)] as const);
      if (!fields.includes('BARRIER=1')) this.received.push({ fields: Object.fromEntries(pairs), atMs });
    });
  }

  static async open(): Promise<NotifySocket> {
    const socket = new NotifySocket(join(temporaryFolder(), 'notify'));
    await eventually('the socket is open', () => socket.received.length === 1);
    socket.received.splice(0);
    return socket;
  }

  /** The values of a field in the messages from index `from` on. */
  all(name: string, from = 0): string[] {
    return this.received.slice(from).flatMap(({ fields }) => fields[name] ?? []);
  }

  /** Whole messages, without those that only have STATUS or WATCHDOG, which may arrive at any time. */
  withoutStatus(from: number): ReceivedMessage['fields'][] {
    const isRelevant = (name: string) => name !== 'STATUS' && name !== 'WATCHDOG';
    const all = this.received.slice(from).map(({ fields }) => fields);
    return all.filter((fields) => Object.keys(fields).some(isRelevant));
  }

  async waitFor(name: string, value: RegExp | string = /^/, from = 0): Promise<void> {
    const matches = (text: string) => (typeof value === 'string' ? text === value : value.test(text));
    await eventually(`${name}=${String(value)}`, () => this.all(name, from).some(matches), 30_000);
  }

  close(): void {
    this.#listener.kill('SIGKILL');
  }
}
