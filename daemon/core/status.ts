import type { EventBusKind, PartState } from '../api/vocabulary.js';
import type { Counted } from './population.js';
import type { CacheStore } from './ports.js';
import type { PulseReport } from './pulse.js';

export type PartStatus = Exclude<PartState, 'off'>;

/** Where events go. */
export interface BusStatus {
  kind: EventBusKind;
  status: PartState;
  /** Waiting here to be published. */
  buffered: number;
  /** Since this instance started, as the next. */
  published: number;
  dropped: number;
  /** Published, and not yet taken by a dispatcher; null where nobody can say. */
  lag: number | null;
}

export interface AuditStatus {
  /** Of the files; `off` where none is written. */
  status: PartState;
  /** Since this instance started, as the next. */
  records: number;
  failures: number;
  /** Lines of uses there was no room for while their file took none. */
  usesDropped: number;
}

/** Of one instance, all that a dashboard shows of it at a glance. */
export interface StatusReport {
  version: string;
  instanceId: string;
  startedAtMs: number;
  uptimeMs: number;
  /** What it lacks to do its work; empty when it is ready. */
  missing: string[];
  /** What it does without for now. */
  degraded: string[];
  database: {
    driver: string;
    status: PartStatus;
    /** The last migration applied; null where there is none, or it cannot be said. */
    schema: string | null;
    pendingMigrations: readonly string[];
  };
  redis: PartStatus | 'off';
  bus: BusStatus;
  audit: AuditStatus;
  /** Null when the database does not say. */
  population: Counted | null;
  inFlight: number;
  pulse: PulseReport;
  cache: CacheStore['backend'] | 'off';
}
