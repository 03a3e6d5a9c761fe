/** The machines that a release is made for: Linux with glibc, on two architectures. */

export interface Target {
  /** The architecture as Node.js names it, also in the names of tarballs and of folders of native modules. */
  arch: 'x64' | 'arm64';
  /** As Debian and OCI name it. */
  debianArch: 'amd64' | 'arm64';
  /** As GNU names the system: the names of its compilers and of the folder of its libraries begin so. */
  triplet: string;
  /** What loads programs; its path is part of them. */
  loader: string;
  /** Runs programs of the target on another machine. */
  emulator: string;
}

export const TARGETS: readonly Target[] = [
  {
    arch: 'x64',
    debianArch: 'amd64',
    triplet: 'x86_64-linux-gnu',
    loader: 'lib64/ld-linux-x86-64.so.2',
    emulator: 'qemu-x86_64-static',
  },
  {
    arch: 'arm64',
    debianArch: 'arm64',
    triplet: 'aarch64-linux-gnu',
    loader: 'lib/ld-linux-aarch64.so.1',
    emulator: 'qemu-aarch64-static',
  },
];

/** Whether this machine runs programs of the target itself. */
export const isThisMachine = ({ arch }: Target) => process.platform === 'linux' && process.arch === arch;
