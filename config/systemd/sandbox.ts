/** What every unit of llmp has in common: how it is watched, and what it may do. */

/**
 * It tells systemd of itself by systemd-notify, a process of its own: hence NotifyAccess=all. Type=notify-reload is newer than many a
 * systemd. No restart mends a wrong configuration (78), a file that the user may not read or write (77), or a credential that systemd
 * cannot read (243).
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

/** Five starts within a minute that all fail are enough: somebody is to look. */
export const START_LIMIT = `StartLimitIntervalSec=60
StartLimitBurst=5
`;

/**
 * Without the file of a credential systemd fails with 243/CREDENTIALS and names nothing. With an empty one in its place the daemon
 * starts, says which setting is missing, and ends with 78.
 */
export const emptyUnlessLoaded = (credential: string) => `SetCredential=${credential}:\\n\n`;

export interface SandboxOptions {
  /** It is to listen on a port below 1024: that takes a capability, which counts for nothing in a namespace of users of its own. */
  needsLowPort?: boolean;
  protectHome?: 'yes' | 'read-only';
}

/** MemoryDenyWriteExecute= is not among these: V8 writes machine code and executes it. */
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
