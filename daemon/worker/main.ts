/** The program of a worker: serves /v1 as one of several processes, for the primary that started it (compose/crew.ts). */
import { setFlagsFromString } from 'node:v8';
import { loadSettings, secretsOf } from '../../config/settings.js';
import { readVersion } from '../../config/version.js';
import { startDaemon } from '../compose.js';
import { realClock } from '../process/clock.js';
import { nextCrash } from '../process/ending.js';
import { createLog } from '../process/log.js';
import { GROW_UNDER_LOAD, PRETENURING_OFF } from '../process/v8-flags.js';
import { PrimaryLink } from '../store/ipc/primary-link.js';
import type { Briefing, Texts } from '../store/ipc/protocol.js';

setFlagsFromString(PRETENURING_OFF);
// The primary gets these signals too, and decides. A terminal and systemd send them to all processes.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
// Nothing serves requests without the primary: it is the one that changes are made in.
process.once('disconnect', () => {
  process.exit(1);
});

const link = new PrimaryLink({
  post: (batch) => {
    if (process.connected) process.send?.(batch, undefined, undefined, () => undefined);
  },
  onBatch: (listener) => {
    process.on('message', listener);
  },
});
link.channel.handle('begin', (briefing) => {
  void run(briefing).then((code) => process.exit(code));
  return undefined;
});

// Until now the primary has sent nothing.
link.channel.begin();

async function run({ texts, instanceId, daemonId, isLogInJournal, cached, health }: Briefing): Promise<number> {
  link.cached.addAll(cached);
  link.health = health;
  const loaded = loadSettings(texts);
  const { settings, reloadable } = loaded;
  const { logFormat: format } = settings;
  const log = createLog({
    level: reloadable.logLevel,
    format,
    secrets: secretsOf(loaded),
    stream: process.stdout,
    isInJournal: isLogInJournal,
  });
  process.stdout.on('error', () => undefined);
  const crashed = nextCrash(log, (code) => process.exit(code));
  const stopped = new Promise<number>((resolve) => {
    link.channel.handle('stop', () => {
      resolve(0);
      return undefined;
    });
  });
  // Settings may be reloaded while it starts.
  let newest = texts;
  link.channel.handle('reload', (changed) => {
    newest = changed;
    return undefined;
  });
  try {
    const ids = { instanceId, daemonId };
    const daemon = await startDaemon({
      settings,
      reloadable,
      log,
      clock: realClock,
      version: readVersion(),
      link,
      ...ids,
    });
    const reload = (changed: Texts) => {
      const { reloadable: next } = loadSettings(changed);
      daemon.apply(next);
      log.level = next.logLevel;
      return undefined;
    };
    link.channel.handle('reload', reload);
    if (newest !== texts) reload(newest);
    setFlagsFromString(GROW_UNDER_LOAD);
    link.channel.send('listening', daemon.address);
    const code = await Promise.race([stopped, crashed, daemon.failed]);
    await daemon.stop();
    return code;
  } catch (error) {
    log.error('a worker cannot serve', { error });
    return 1;
  }
}
