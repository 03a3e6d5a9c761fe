import type { EventBusKind, ComponentState } from '../api/vocabulary.js';
import type { PriceLists } from './cost/costs.js';
import type { CountedPopulation } from './population.js';
import type { CacheStore } from './ports.js';
import type { RecentTrafficReport } from './recent-traffic.js';

export type PartStatus = Exclude<ComponentState, 'off'>;

/** Status of the event bus. */
export interface BusStatus {
  kind: EventBusKind;
  status: ComponentState;
  /** Events buffered on this instance. */
  buffered: number;
  /** Since this instance started; so is `dropped`. */
  published: number;
  dropped: number;
  /** Published events not yet taken by a dispatcher; null if unknown. */
  lag: number | null;
}

export interface AuditStatus {
  /** Status of the audit files; `off` if none are written. */
  status: ComponentState;
  /** Since this instance started; so are the counts below. */
  records: number;
  failures: number;
  /** Use records dropped because their file could not be written and the buffer was full. */
  usesDropped: number;
}

/** Status of one instance, for dashboards. */
export interface StatusReport {
  version: string;
  instanceId: string;
  startedAtMs: number;
  uptimeMs: number;
  /** What is missing for readiness; empty when it is ready. */
  missing: string[];
  /** Optional parts that are currently unavailable. */
  degraded: string[];
  database: {
    driver: string;
    status: PartStatus;
    /** The last applied migration; null if there is none or it is unknown. */
    schema: string | null;
    pendingMigrations: readonly string[];
  };
  redis: PartStatus | 'off';
  bus: BusStatus;
  audit: AuditStatus;
  /** Null when the database is unavailable. */
  population: CountedPopulation | null;
  inFlight: number;
  traffic: RecentTrafficReport;
  cache: CacheStore['backend'] | 'off';
  prices: PriceLists;
  /** The processes that serve /v1; empty if this one does. */
  workers: WorkerReport[];
}

/** A process that serves /v1 for this instance. */
export interface WorkerReport {
  number: number;
  pid: number;
  startedAtMs: number;
  /** What it lacks to serve requests; empty when it is ready. */
  missing: readonly string[];
  inFlight: number;
}
