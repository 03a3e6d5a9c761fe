/** Parts that all units of llmp share: supervision and sandboxing. */

/**
 * NotifyAccess=all, because llmp runs systemd-notify as a child process. Not Type=notify-reload, which older releases of systemd do not support. A
 * restart does not fix an invalid configuration (78), a file that the user may not read or write (77), or a credential that systemd cannot
 * read (243).
 */
export const SUPERVISION = `Type=notify
NotifyAccess=all
KillMode=mixed
TimeoutStartSec=60
TimeoutStopSec=90
WatchdogSec=60
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=77 78 243
Environment=NODE_ENV=production
LimitNOFILE=65536
LimitCORE=0
TasksMax=256
UMask=0077
`;

/** After five failed starts within a minute an operator has to look. */
export const START_LIMIT = `StartLimitIntervalSec=60
StartLimitBurst=5
`;

/**
 * If the file of a credential is missing, systemd fails with 243/CREDENTIALS and does not name the file. With an empty default the daemon starts,
 * reports which setting is missing, and exits with 78.
 */
export const emptyUnlessLoaded = (credential: string) => `SetCredential=${credential}:\\n\n`;

export interface SandboxOptions {
  /** Listens on a port below 1024, which requires a capability. PrivateUsers= must be off then, because it would make the capability useless. */
  needsLowPort?: boolean;
  protectHome?: 'yes' | 'read-only';
}

/** Without MemoryDenyWriteExecute=, because V8 generates machine code and executes it. */
export function sandbox({ needsLowPort = false, protectHome = 'yes' }: SandboxOptions = {}): string {
  const capabilities = needsLowPort ? 'CAP_NET_BIND_SERVICE' : '';
  return `CapabilityBoundingSet=${capabilities}
AmbientCapabilities=${capabilities}
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
${needsLowPort ? '' : 'PrivateUsers=yes\n'}ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=${protectHome}
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProcSubset=pid
ProtectSystem=strict
KeyringMode=private
LockPersonality=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
`;
}
