/** A virtual machine with a real systemd, in QEMU. What it writes to its disk is forgotten when it ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.js';
import { baseImage, makeDisk, PORT } from './image.js';

export interface Outcome {
  exitCode: number;
  /** Standard output and standard error. */
  output: string;
}

/** An emulated processor takes up to a minute to boot, and a busy machine longer. */
const BOOT_MS = 300_000;
const COMMAND_MS = 600_000;

/** The kernel checks its timer at its start, which fails on a busy machine. After a panic it starts again. */
const KERNEL = 'root=/dev/vda rw console=ttyS0 no_timer_check panic=1';

/** Node.js starts in a second on a processor, and in 30 to 60 seconds on an emulated one: too long for the units. */
const BE_PATIENT = `mkdir -p /etc/systemd/system/service.d
printf '[Service]\\nTimeoutStartSec=600\\n' > /etc/systemd/system/service.d/slow.conf
systemctl daemon-reload`;

export class Machine {
  /** How long each start took, until the machine accepted a command. */
  readonly bootMs: number[] = [];
  readonly #folder: string;
  readonly #process: ChildProcess;
  #port: Socket | null = null;
  #commands = 0;
  readonly #waiting = new Map<string, (outcome: Outcome) => void>();
  /** The ID of the current boot. */
  #boot = '';

  private constructor(folder: string, process: ChildProcess) {
    this.#folder = folder;
    this.#process = process;
  }

  /** @param files a folder, which the machine has as /mnt. */
  static async start(files: string): Promise<Machine> {
    const { disk, kernel, initrd } = baseImage();
    const folder = mkdtempSync(join(tmpdir(), 'llmp-vm-'));
    makeDisk(join(folder, 'files'), files, '256M');
    const socket = join(folder, 'port');
    const process = spawn(
      'qemu-system-x86_64',
      [
        // Not KVM: a machine that is itself virtual may offer it without being able to.
        ...['-accel', 'tcg,thread=multi', '-smp', '2', '-m', '2048'],
        ...['-nodefaults', '-display', 'none', '-serial', `file:${join(folder, 'console')}`],
        ...['-kernel', kernel, '-initrd', initrd, '-append', KERNEL],
        ...['-drive', `file=${disk},format=raw,if=virtio,snapshot=on`],
        ...['-drive', `file=${join(folder, 'files')},format=raw,if=virtio,readonly=on`],
        ...['-device', 'virtio-serial', '-device', `virtserialport,chardev=port,name=${PORT}`],
        ...['-chardev', `socket,id=port,path=${socket},server=on,wait=off`],
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    const machine = new Machine(folder, process);
    try {
      await eventually('QEMU listens', () => machine.#connect(socket), 30_000);
      await machine.#booted('');
      await machine.succeed('mount -o ro /dev/vdb /mnt');
      await machine.succeed(BE_PATIENT);
      return machine;
    } catch (error) {
      const console = machine.console();
      await machine.stop();
      throw new Error(`the machine did not start:\n${console.slice(-4_000)}`, { cause: error });
    }
  }

  async #connect(path: string): Promise<boolean> {
    if (this.#process.exitCode !== null) throw new Error(`QEMU ended with ${this.#process.exitCode}`);
    const port = connect(path);
    try {
      await once(port, 'connect');
    } catch {
      return false;
    }
    port.on('error', () => undefined);
    createInterface(port).on('line', (line) => {
      const [id = '', code = '', output = ''] = line.split(' ');
      if (id === 'ready') this.#boot = code;
      else this.#waiting.get(id)?.({ exitCode: Number(code), output: Buffer.from(output, 'base64').toString() });
    });
    this.#port = port;
    return true;
  }

  /** Waits until the machine accepts commands. @param before the ID of the boot before this one. */
  async #booted(before: string): Promise<void> {
    const begun = performance.now();
    await eventually('the machine has booted', () => this.#boot !== '' && this.#boot !== before, BOOT_MS);
    this.bootMs.push(Math.round(performance.now() - begun));
  }

  /** Runs a script of sh as root. */
  async run(script: string): Promise<Outcome> {
    const id = this.#send(script);
    const outcome = new Promise<Outcome>((resolve) => this.#waiting.set(id, resolve));
    const patience = new AbortController();
    try {
      const late = sleep(COMMAND_MS, undefined, { signal: patience.signal }).then(() => {
        throw new Error(`no answer from the machine to: ${script}\n${this.console().slice(-2_000)}`);
      });
      return await Promise.race([outcome, late]);
    } finally {
      patience.abort();
      this.#waiting.delete(id);
    }
  }

  /** @returns the output, without its last end of line. @throws with the output if the script fails. */
  async succeed(script: string): Promise<string> {
    const { exitCode, output } = await this.run(script);
    if (exitCode !== 0) throw new Error(`exit code ${exitCode} of: ${script}\n${output}`);
    return output;
  }

  async reboot(): Promise<void> {
    const before = this.#boot;
    this.#send('systemctl reboot');
    await this.#booted(before);
    await this.succeed('mount -o ro /dev/vdb /mnt');
  }

  /** @returns the ID of the command. */
  #send(script: string): string {
    const id = String(++this.#commands);
    this.#port?.write(`${id} ${Buffer.from(script).toString('base64')}\n`);
    return id;
  }

  console(): string {
    return readFileSync(join(this.#folder, 'console'), 'utf8');
  }

  async stop(): Promise<void> {
    this.#port?.destroy();
    if (this.#process.exitCode === null && this.#process.kill('SIGKILL')) await once(this.#process, 'exit');
    rmSync(this.#folder, { recursive: true });
  }
}
