/** A socket like that of systemd, which Node cannot make: a few lines of Python listen to it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';

/** Says why tests of it are skipped here; where everything must be there they fail instead. */
export const WITHOUT_NOTIFY =
  process.env.CI !== 'true' && ['python3', 'systemd-notify'].some((tool) => spawnSync(tool, ['--version']).error)
    ? ' (skipped: no systemd-notify or no python3 here)'
    : '';

// As systemd does it closes what a sender hands over to learn when its message was read.
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

export interface Told {
  fields: Readonly<Record<string, string>>;
  /** When it arrived, by a clock that only runs forward. */
  atMs: number;
}

export class NotifySocket {
  readonly path: string;
  /** In the order in which it was told. */
  readonly told: Told[] = [];
  readonly #listener: ChildProcess;

  private constructor(path: string) {
    this.path = path;
    const listener = spawn('python3', ['-c', LISTENS, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#listener = listener;
    createInterface(listener.stdout).on('line', (line) => {
      const { fields, atMs } = JSON.parse(line) as { fields: string[]; atMs: number };
      const pairs = fields.map((field) => [field.split('=', 1)[0] ?? '', field.slice(field.indexOf('=') + 1)] as const);
      if (!fields.includes('BARRIER=1')) this.told.push({ fields: Object.fromEntries(pairs), atMs });
    });
  }

  static async open(): Promise<NotifySocket> {
    const socket = new NotifySocket(join(temporaryFolder(), 'notify'));
    await eventually('the socket is there', () => socket.told.length === 1);
    socket.told.splice(0);
    return socket;
  }

  /** What was told under this name, beginning at `from`. */
  all(name: string, from = 0): string[] {
    return this.told.slice(from).flatMap(({ fields }) => fields[name] ?? []);
  }

  /** The same, whole, without what only says how it does: that may come at any time. */
  news(from: number): Told['fields'][] {
    const isNews = (name: string) => name !== 'STATUS' && name !== 'WATCHDOG';
    const all = this.told.slice(from).map(({ fields }) => fields);
    return all.filter((fields) => Object.keys(fields).some(isNews));
  }

  async hears(name: string, value: RegExp | string = /^/, from = 0): Promise<void> {
    const matches = (text: string) => (typeof value === 'string' ? text === value : value.test(text));
    await eventually(`${name}=${String(value)}`, () => this.all(name, from).some(matches), 30_000);
  }

  close(): void {
    this.#listener.kill('SIGKILL');
  }
}
