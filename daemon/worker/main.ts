/** The program of a worker: serves /v1 as one of several processes, for the primary that started it (compose/crew.ts). */
import { setFlagsFromString } from 'node:v8';
import { secretsOf } from '../../config/settings.js';
import { readVersion } from '../../config/version.js';
import { realClock } from '../process/clock.js';
import { nextCrash } from '../process/ending.js';
import { createLog } from '../process/log.js';
import { growYoungGeneration, V8_FLAGS } from '../process/v8.js';
import { PrimaryLink } from '../store/ipc/primary-link.js';
import type { WorkerOptions } from './run.js';

for (const flag of V8_FLAGS) setFlagsFromString(flag);
const { runWorker } = await import('./run.js');
// The primary gets these signals too, and decides. A terminal and systemd send them to all processes.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
// Nothing serves requests without the primary: it is the one that changes are made in. A regular exit would wait for Node's threads, and some of them
// may wait for the database.
process.once('disconnect', () => {
  process.kill(process.pid, 'SIGKILL');
});
process.stdout.on('error', () => undefined);

const options: WorkerOptions = {
  clock: realClock,
  version: readVersion(),
  createLog: (loaded, isLogInJournal) =>
    createLog({
      level: loaded.reloadable.logLevel,
      format: loaded.settings.logFormat,
      secrets: secretsOf(loaded),
      stream: process.stdout,
      isInJournal: isLogInJournal,
    }),
  crash: (log) => nextCrash(log, (code) => process.exit(code)),
  onListening() {
    growYoungGeneration(realClock);
  },
};
const link = new PrimaryLink({
  post: (batch, onTaken) => {
    if (process.connected) process.send?.(batch, undefined, undefined, () => onTaken?.());
  },
  onBatch: (listener) => {
    process.on('message', listener);
  },
});
link.channel.handle('begin', (briefing) => {
  void runWorker(link, briefing, options).then((code) => process.exit(code));
});

// Until now the primary has sent nothing.
link.channel.begin();
