/** What a worker does from its briefing to its end. */
import { type Loaded, loadSettings } from '../../config/settings.js';
import { startDaemon, type ComposeOptions, type Daemon } from '../compose.js';
import type { AdjustableLog } from '../process/log.js';
import { priceFileOf } from '../process/price-lists.js';
import type { PrimaryLink } from '../store/ipc/primary-link.js';
import type { Briefing, Reloading } from '../store/ipc/protocol.js';

export interface WorkerOptions extends Pick<ComposeOptions, 'clock' | 'version' | 'onEnded' | 'databaseTimeouts'> {
  createLog: (loaded: Loaded, isLogInJournal: boolean) => AdjustableLog;
  /** Resolves with an exit code after an error that the process does not survive. */
  crash?: (log: AdjustableLog) => Promise<number>;
  onListening?: (daemon: Daemon) => void;
}

/** Runs until the primary stops it, or it fails. @returns the exit code of its process. */
export async function runWorker(link: PrimaryLink, briefing: Briefing, options: WorkerOptions): Promise<number> {
  const { texts, prices, instanceId, daemonId, isLogInJournal, cached, health } = briefing;
  const { createLog, crash, onListening, ...shared } = options;
  link.cached.addAll(cached);
  link.health = health;
  const loaded = loadSettings(texts);
  const { settings, reloadable } = loaded;
  const log = createLog(loaded, isLogInJournal);
  const crashed = crash ? [crash(log)] : [];
  const stopped = new Promise<number>((resolve) => {
    link.channel.handle('stop', () => {
      resolve(0);
    });
  });
  // Settings may be reloaded while it starts.
  let newest: Reloading = { texts, prices };
  link.channel.handle('reload', (changed) => {
    newest = changed;
  });
  try {
    const priceFile = prices === null ? null : priceFileOf(prices);
    const daemon = await startDaemon({ ...shared, settings, reloadable, priceFile, log, link, instanceId, daemonId });
    const reload = (changed: Reloading) => {
      const { reloadable: next } = loadSettings(changed.texts);
      daemon.apply(next, { prices: changed.prices === null ? null : priceFileOf(changed.prices) });
      log.level = next.logLevel;
    };
    link.channel.handle('reload', reload);
    if (newest.texts !== texts) reload(newest);
    onListening?.(daemon);
    link.channel.send('listening', daemon.address);
    const code = await Promise.race([stopped, ...crashed, daemon.failed]);
    await daemon.stop();
    return code;
  } catch (error) {
    log.error('a worker cannot serve', { error });
    return 1;
  }
}
