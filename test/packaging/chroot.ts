/** A fresh Debian in a folder, with nothing but apt, and programs that run in it. */
import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';

export type Suite = 'bookworm' | 'trixie';

export interface Ended {
  exitCode: number | null;
  output: string;
}

export class Chroot {
  readonly root: string;

  private constructor(root: string) {
    this.root = root;
  }

  /** Unpacks a root of a release of Debian, which is made and stored if there is none. */
  static open(suite: Suite): Chroot {
    const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'llmp');
    const archive = join(cache, `${suite}.tar`);
    if (!existsSync(archive)) {
      mkdirSync(cache, { recursive: true });
      const made = `${archive}.${process.pid}.tar`;
      execFileSync('mmdebstrap', ['--quiet', '--mode=root', '--variant=minbase', suite, made], {
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      renameSync(made, archive);
    }
    const root = mkdtempSync(join(tmpdir(), 'llmp-chroot-'));
    execFileSync('tar', ['-C', root, '--numeric-owner', '-xpf', archive]);
    copyFileSync('/etc/resolv.conf', join(root, 'etc/resolv.conf'));
    return new Chroot(root);
  }

  /** Copies a file to the folder /root. @returns its path in the root. */
  add(path: string): string {
    copyFileSync(path, join(this.root, 'root', basename(path)));
    return `/root/${basename(path)}`;
  }

  /** Runs a script of sh as root, with a /proc of its own. */
  async run(script: string, env: Record<string, string> = {}): Promise<Ended> {
    const child = this.start(script, env);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += String(data)));
    const [exitCode] = (await once(child, 'close')) as [number | null];
    return { exitCode, output };
  }

  /** @returns the output. @throws with the output if the script fails. */
  async succeed(script: string, env?: Record<string, string>): Promise<string> {
    const { exitCode, output } = await this.run(script, env);
    if (exitCode !== 0) throw new Error(`exit code ${exitCode} of: ${script}\n${output}`);
    return output;
  }

  /** Starts a script. When the process is killed, everything that it started ends too. */
  start(script: string, env: Record<string, string> = {}): ChildProcessByStdio<null, Readable, Readable> {
    return spawn('unshare', this.#arguments(script), {
      env: { ...ENVIRONMENT, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  #arguments(script: string): string[] {
    const namespaces = ['--mount', '--pid', '--fork', '--kill-child', `--mount-proc=${join(this.root, 'proc')}`];
    return [...namespaces, 'chroot', this.root, 'sh', '-ec', script];
  }

  remove(): void {
    rmSync(this.root, { recursive: true });
  }
}

const ENVIRONMENT = {
  PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  LC_ALL: 'C',
  DEBIAN_FRONTEND: 'noninteractive',
};
