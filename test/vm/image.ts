/** The disk of the virtual machine: a small Debian 12 with systemd, without llmp. It is made once, and never changed. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Debian 13's kernel crashes in an emulated processor, so the machine has Debian 12. */
const SUITE = 'bookworm';
const PACKAGES = [
  'systemd',
  'systemd-sysv',
  'udev',
  'dbus',
  'linux-image-cloud-amd64',
  'logrotate',
  'libstdc++6',
  'passwd',
  'procps',
];
const SIZE = '2G';

/** The name of the serial port over which the machine gets commands. */
export const PORT = 'llmp';

/**
 * Runs each command that arrives on the port, and writes its exit code and its output: lines of an ID, a script in base64; an ID, an exit
 * code, an output in base64.
 */
const AGENT = `#!/bin/sh
until [ -e /dev/virtio-ports/${PORT} ]; do sleep 0.1; done
exec 3<>/dev/virtio-ports/${PORT}
echo "ready $(cat /proc/sys/kernel/random/boot_id)" >&3
while read -r id script <&3; do
  out=$(printf %s "$script" | base64 -d | sh 2>&1 3>&-)
  echo "$id $? $(printf %s "$out" | base64 -w 0)" >&3
done
`;

const AGENT_UNIT = `[Unit]
Description=runs the commands of the test
[Service]
ExecStart=/usr/local/sbin/agent
StandardInput=null
[Install]
WantedBy=multi-user.target
`;

export interface Image {
  /** An ext4 file system, without partitions. */
  disk: string;
  kernel: string;
  initrd: string;
}

/** @returns the image, which is made if there is none: that takes minutes, and needs root and a mirror of Debian. */
export function baseImage(): Image {
  const key = createHash('sha256')
    .update(JSON.stringify([SUITE, PACKAGES, SIZE, AGENT, AGENT_UNIT]))
    .digest('hex');
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const folder = join(cache, 'llmp', `vm-${key.slice(0, 16)}`);
  if (!existsSync(folder)) makeImage(folder);
  return { disk: join(folder, 'disk'), kernel: join(folder, 'kernel'), initrd: join(folder, 'initrd') };
}

function makeImage(folder: string): void {
  const work = mkdtempSync(join(tmpdir(), 'llmp-vm-image-'));
  try {
    const root = join(work, 'root');
    run('mmdebstrap', ['--quiet', '--mode=root', '--variant=minbase', `--include=${PACKAGES.join(',')}`, SUITE, root]);
    put(join(root, 'usr/local/sbin/agent'), AGENT, 0o755);
    put(join(root, 'etc/systemd/system/agent.service'), AGENT_UNIT);
    put(join(root, 'etc/hostname'), 'llmp-test\n');
    put(join(root, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost\n');
    put(join(root, 'etc/fstab'), '/dev/vda / ext4 defaults 0 1\n');
    run('systemctl', [`--root=${root}`, 'enable', 'agent.service']);
    run('systemctl', [
      `--root=${root}`,
      'mask',
      'apt-daily.timer',
      'apt-daily-upgrade.timer',
      'logrotate.timer',
      'getty@tty1.service',
    ]);
    const made = `${folder}.${process.pid}`;
    mkdirSync(made, { recursive: true });
    const boot = join(root, 'boot');
    const inBoot = (beginning: string) =>
      join(boot, readdirSync(boot).find((name) => name.startsWith(beginning)) ?? '');
    copyFileSync(inBoot('vmlinuz-'), join(made, 'kernel'));
    copyFileSync(inBoot('initrd.img-'), join(made, 'initrd'));
    makeDisk(join(made, 'disk'), root, SIZE);
    renameSync(made, folder);
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** Writes an ext4 file system with the content of a folder. */
export function makeDisk(path: string, content: string, size: string): void {
  run('mke2fs', ['-q', '-t', 'ext4', '-d', content, path, size]);
}

function put(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, mode);
}

function run(program: string, args: readonly string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, LC_ALL: 'C' } });
}
