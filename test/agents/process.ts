/** An agent as a process, in a home directory of its own and without the variables of the user who runs the tests. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Agent } from './agents.js';
import type { SetUp } from './set-up.js';

export interface Ended {
  /** null if it was stopped. */
  code: number | null;
  /** Its standard output and error output. */
  output: string;
  /** By the clock of `performance.now()`. */
  endedAt: number;
  /** Its home directory; `WORK` in it is where it worked. */
  home: string;
}

/** The folder, in its home directory, in which an agent works. */
export const WORK = 'work';

export interface Start {
  agent: Agent;
  /** The folder with the agent's command. */
  bin: string;
  setUp: SetUp;
  /** Variables besides those of its home directory. */
  env: NodeJS.ProcessEnv;
  /** Stops the agent. */
  signal: AbortSignal;
  /** A program that starts it, with its arguments. */
  under?: readonly string[];
}

/** @returns when it has ended. Its home directory stays. */
export async function runAgent({ agent, bin, setUp, env, signal, under = [] }: Start): Promise<Ended> {
  const home = mkdtempSync(join(tmpdir(), 'llmp-agent-'));
  const folder = join(home, WORK);
  for (const each of [WORK, 'tmp']) mkdirSync(join(home, each));
  for (const [name, content] of Object.entries(setUp.files)) {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    writeFileSync(join(home, name), content);
  }
  const child = spawn('sh', ['-c', `${setUp.script}\nexec "$@"`, 'sh', ...under, ...agent.command], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own: some leave processes behind.
    detached: true,
    env: { ...homeVariables(home, bin), ...agent.quiet, ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (piece: string) => (output = (output + piece).slice(-1_000_000)));
  }
  const stop = () => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // All of them have ended.
    }
  };
  signal.addEventListener('abort', stop);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('exit', resolve);
  });
  const endedAt = performance.now();
  stop();
  return { code: signal.aborted ? null : (code ?? -1), output: withoutColours(output), endedAt, home };
}

function homeVariables(home: string, bin: string) {
  return {
    PATH: `${bin}:${process.env.PATH ?? ''}`,
    HOME: home,
    TMPDIR: join(home, 'tmp'),
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_DATA_HOME: join(home, '.local/share'),
    XDG_STATE_HOME: join(home, '.local/state'),
    XDG_CACHE_HOME: join(home, '.cache'),
    SHELL: '/bin/sh',
    TERM: 'dumb',
    NO_COLOR: '1',
    NO_PROXY: '127.0.0.1,localhost',
    no_proxy: '127.0.0.1,localhost',
  };
}

// eslint-disable-next-line no-control-regex
const withoutColours = (text: string) => text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '');
