import { expect } from 'chai';
import { type ChildProcessByStdio, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createWriteStream, mkdirSync, readFileSync, symlinkSync, type WriteStream, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import type { WireUsageLine } from '../../daemon/api/contract.js';
import { MAIN } from '../cli/processes.js';
import { MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type ListeningDaemon, spawnDaemon } from '../support/process.js';
import { type Provider, startProvider } from '../support/provider.js';

const PAGE = resolve(import.meta.dirname, '../../../docs/quick-start.md');
const SHOWN_ADDRESS = '127.0.0.1:8080';
// The progress indicator of a command, which is removed again. It appears only when the machine is slow.
// eslint-disable-next-line no-control-regex
const WAITING = /\r[^\r\n]*\u001b\[K/g;
// Marks the end of a command's output, which never contains this character.
const END = '\u001e';

interface Step {
  command: string;
  output: string;
}

/** The block of docs/quick-start.md in which a line that begins with `$ ` is typed, and the following lines are its output. */
function recorded(): Step[] {
  const [, block = ''] = /```console\n([^]*?)```/.exec(readFileSync(PAGE, 'utf8')) ?? [];
  return block
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const [, command = '', output = ''] = /^((?:.*\\\n)*.*)\n([^]*)$/.exec(step) ?? [];
      return { command, output };
    });
}

/** What changes each time; the longest first, because an ID begins with its short form. */
const CHANGING = new RegExp(
  [
    /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/, // an id
    /\b[0-9a-f]{32}\b/, // of a request
    /\b[0-9a-f]{8}\b/, // the beginning of an id
    /sk-wt-\w{4}…\w{4}/, // as much of a secret as is shown
    /\d{4}-\d\d-\d\dT[\d:.]+Z/,
    /\d+s ago|\bnow\b/,
    /[^\s@]+@\S+ \(cli\)/, // user and host
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
);
const isTime = (text: string) => / ago$|Z$|^now$/.test(text);

/** Replaces recorded values by the current ones, the same for the same every time. */
class Translation {
  readonly #now = new Map<string, string>();

  /** @returns the text with every known value replaced. */
  toNow(text: string): string {
    return text.replace(CHANGING, (then) => this.#now.get(then) ?? then);
  }

  /** Learns which values correspond; times need only be times. */
  learn(then: string, now: string): void {
    const [before, after] = [then.match(CHANGING) ?? [], now.match(CHANGING) ?? []];
    before.forEach((word, index) => {
      const other = after[index];
      if (other === undefined) return;
      if (isTime(word) || !this.#now.has(word)) this.#now.set(word, other);
      // The short form of an ID corresponds to the short form of the other.
      if (word.length === 36 && !this.#now.has(word.slice(0, 8))) this.#now.set(word.slice(0, 8), other.slice(0, 8));
    });
  }
}

// Columns are as wide as their contents, which differ in width between runs.
const narrow = (text: string) =>
  text
    .split('\n')
    .map((line) => line.replace(/ {2,}/g, '  ').trimEnd())
    .join('\n');

describe('the recorded session in docs/quick-start.md', function () {
  this.timeout(60_000);
  let provider: Provider | undefined;
  let daemon: ListeningDaemon | undefined;
  let dir: string;
  let bash: ChildProcessByStdio<null, Readable, null> | undefined;
  let commands: WriteStream | undefined;
  let shown = '';
  /** The number of API calls. */
  let calls = 0;

  before(async function () {
    for (const tool of ['script', 'mkfifo', 'curl']) {
      if (spawnSync(tool, ['--version']).status === 0) continue;
      if (process.env.CI) throw new Error(`${tool} is missing`);
      this.skip();
    }
    provider = await startProvider();
    dir = temporaryFolder();
    daemon = await spawnDaemon({
      MANAGEMENT_TOKEN,
      UPSTREAM_BASE_URL: provider.url,
      DATABASE_URL: join(dir, 'llmp.db'),
      SHUTDOWN_DELAY: '0',
    });
    // A terminal, as for a user who pastes the commands. They run one by one, because each may use what the previous one has shown.
    const work = join(dir, 'work');
    mkdirSync(join(work, 'bin'), { recursive: true });
    symlinkSync(MAIN, join(work, 'bin', 'llmp'));
    writeFileSync(join(work, 'key.txt'), `${UPSTREAM_KEY}\n`);
    writeFileSync(join(work, 'management-token'), `${MANAGEMENT_TOKEN}\n`);
    const fifo = join(work, 'commands');
    execFileSync('mkfifo', [fifo]);
    bash = spawn('script', ['-qefc', `bash --norc '${fifo}'`, '/dev/null'], {
      cwd: work,
      env: {
        PATH: [join(work, 'bin'), process.env.PATH].join(delimiter),
        LLMP_SERVER: daemon.url,
        MANAGEMENT_TOKEN_FILE: join(work, 'management-token'),
        LANG: 'C.UTF-8',
        TERM: 'xterm',
        NO_COLOR: '1',
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    bash.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
    commands = createWriteStream(fifo);
  });

  after(async () => {
    commands?.end();
    bash?.kill();
    await daemon?.kill();
    await provider?.stop();
  });

  async function answerTo(command: string): Promise<string> {
    const url = daemon?.url ?? '';
    const address = new URL(url).host;
    if (command.startsWith('curl')) calls += 1;
    // Usage is counted with a delay.
    if (command.startsWith('llmp usage')) await eventually('it is counted', async () => (await counted(url)) === calls);
    shown = '';
    // Wide enough for all columns of the audit log, whatever the names of the user and the host are.
    commands?.write(`stty cols ${command.startsWith('llmp audit') ? 200 : 80}\n`);
    commands?.write(`${command.replaceAll(SHOWN_ADDRESS, address)}\nprintf '\\036'\n`);
    await eventually(command, () => shown.includes(END), 20_000);
    return shown
      .slice(0, shown.indexOf(END))
      .replaceAll('\r\n', '\n')
      .replaceAll(WAITING, '')
      .replaceAll(address, SHOWN_ADDRESS);
  }

  async function counted(url: string): Promise<number> {
    const headers = { authorization: `Bearer ${MANAGEMENT_TOKEN}` };
    const lines = (await (await fetch(`${url}/manage/usage`, { headers })).json()) as WireUsageLine[];
    return lines.reduce((sum, { requests }) => sum + requests, 0);
  }

  it('matches what the commands really print', async () => {
    const steps = recorded();
    const translation = new Translation();
    let [then, now] = ['', ''];
    for (const { command, output } of steps) {
      const answer = await answerTo(translation.toNow(command));
      translation.learn(output, answer);
      then += `$ ${translation.toNow(command)}\n${translation.toNow(output)}`;
      now += `$ ${translation.toNow(command)}\n${answer}`;
    }
    expect(narrow(now)).to.equal(narrow(then));
  });

  it('contains the whole life of a token', () => {
    const commandsIn = recorded()
      .map(({ command }) => command)
      .join('\n');
    for (const step of [
      'project create',
      'token generate',
      'curl',
      'token revoke',
      'token reactivate',
      'audit list',
      'usage',
    ]) {
      expect(commandsIn).to.contain(step);
    }
  });
});
