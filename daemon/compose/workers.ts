/** The workers of a primary: their processes, and their share of the limits of this machine. */
import { kilobytesPerWorker } from '../../config/checks.js';
import type { AllSettings, Live } from '../../config/settings.js';
import { policyOf } from '../core/rate-limit.js';
import { every } from '../core/timing.js';
import { checkListening } from '../process/listen.js';
import { listenDespiteOrphans } from '../process/orphaned-workers.js';
import { WorkerProcesses, type WorkerProcessesOptions } from '../process/worker-processes.js';
import type { PriceFile } from '../process/price-lists.js';
import type { Crew } from '../store/ipc/crew.js';
import type { PrimaryHealth } from '../store/ipc/protocol.js';
import { localRateWindows } from '../store/memory/rate-windows.js';
import type { BuildContext } from './context.js';
import type { Core } from './core.js';
import { AUDIT_FAILING, type Management } from './management.js';
import type { Storage } from './storage.js';
import type { Traffic } from './traffic.js';

/** What the log and the processes of workers need beyond the settings. */
export interface WorkersOptions {
  /** The texts of the settings in force, by name. */
  texts: () => Readonly<Record<string, string>>;
  isLogInJournal: boolean;
  /** Options of Node with which this process was started. */
  execArgv: readonly string[];
  /** Starts them in another way than as processes. */
  start?: (options: WorkerProcessesOptions) => Pick<WorkerProcesses, 'begin' | 'stopReplacing' | 'end' | 'failed'>;
}

export interface Workers {
  /** Rejects if workers keep ending. */
  failed: Promise<never>;
  /** Starts them. Resolves when all of them listen. @returns their address. @throws the error of listening. */
  begin(): Promise<string | null>;
  /** Passes on the settings that are in force now. */
  /** @param priceFile undefined if it was not read again. */
  reload(priceFile: PriceFile | null | undefined): void;
  /** Makes them finish their requests and end. */
  stop(): void;
  /** Resolves when all have ended. */
  ended(): Promise<void>;
}

/** For writing counts and closing, after requests in flight have ended. */
const CLOSING_MS = 10_000;
const TELL_EVERY_MS = 1_000;

export function createWorkers(
  context: BuildContext,
  crew: Crew,
  { stores: { ledger }, auditFiles, shared: { bus } }: Storage,
  { readiness, limits }: Core,
  { record }: Traffic,
  { server }: Management,
  { texts, isLogInJournal, execArgv, start = (options) => new WorkerProcesses(options) }: WorkersOptions,
): Workers {
  const { settings, live, clock, log } = context;
  const { workers: count, listenAddress, shutdownDelayMs, shutdownGraceMs } = settings;
  const windows = localRateWindows(clock);
  crew.serve({
    record,
    publish: (event) => bus?.publish({ kind: 'budget', event }),
    connection: (connection) => void server.emit('connection', connection),
    limits,
    take: (key, window) => windows[policyOf(key)].take(key, window),
  });
  const health = (): PrimaryHealth => ({
    degraded: auditFiles.isFailing ? [AUDIT_FAILING] : [],
    isBusFailing: bus && bus.isFailing,
    isDatabaseReady: readiness.isDatabaseReady,
    pendingMigrations: readiness.pendingMigrations,
    limits: limits.state,
  });
  /** With port 0: the port that the system chose, which stays when all workers are replaced. */
  let chosen: Record<string, string> = {};
  const share = () => ({ ...texts(), ...shareOf(settings, live, count), ...chosen });
  let prices = context.priceFile?.text ?? null;
  let listening = 0;
  let onAllListen: (address: string | null) => void = () => undefined;
  const allListen = new Promise<string | null>((resolve) => (onAllListen = resolve));
  const processes = start({
    count,
    execArgv,
    clock,
    log,
    onStarted(worker) {
      const instanceId = context.newId();
      const briefing = {
        texts: share(),
        prices,
        instanceId,
        daemonId: context.daemonId,
        isLogInJournal,
        health: health(),
      };
      crew.add(worker, briefing).then(
        (address) => {
          listening += 1;
          if (listening === count) onAllListen(address);
        },
        () => undefined, // It is replaced.
      );
      void worker.ended.then(() => retire(instanceId));
    },
  });
  // Its leases count as used, without waiting until the instance expires.
  const retire = (instanceId: string) =>
    ledger.retire(instanceId).catch((error: unknown) => {
      log.warn('cannot deregister a worker that has ended; the units it held count as used later', { error });
    });
  let told = '';
  let stopTelling: () => void = () => undefined;
  const tellHealth = () => {
    const now = health();
    const text = JSON.stringify(now);
    if (text !== told) crew.tell(now);
    told = text;
  };
  return {
    failed: processes.failed,
    async begin() {
      const address = await listenDespiteOrphans(context, () => checkListening(listenAddress));
      if ('port' in listenAddress && listenAddress.port === 0 && address) chosen = { LISTEN_ADDR: address };
      processes.begin();
      tellHealth();
      stopTelling = every(clock, TELL_EVERY_MS, tellHealth);
      return Promise.race([allListen, processes.failed]);
    },
    reload(priceFile) {
      if (priceFile !== undefined) prices = priceFile?.text ?? null;
      crew.reload({ texts: share(), prices });
    },
    stop() {
      stopTelling();
      processes.stopReplacing();
      crew.stop();
    },
    ended: () => processes.end(shutdownDelayMs + shutdownGraceMs + CLOSING_MS),
  };
}

/** The limits of a worker that are divided among all. */
function shareOf(
  { maxConnections, upstreamConnections }: Pick<AllSettings, 'maxConnections' | 'upstreamConnections'>,
  { current }: Live<'httpCacheMaxBytes'>,
  count: number,
) {
  return {
    MAX_CONNECTIONS: String(Math.floor(maxConnections / count)),
    UPSTREAM_CONNECTIONS: String(Math.floor(upstreamConnections / count)),
    HTTP_CACHE_MAX_BYTES: `${kilobytesPerWorker(current.httpCacheMaxBytes, count)}KB`,
    WORKERS: '1',
  };
}
