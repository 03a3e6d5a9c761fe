import { SettingsError } from '../../config/settings.js';
import type { MigrationStatus, Migrator } from '../../migrations/migrator.js';
import { SchemaTooNew } from '../../migrations/failures.js';
import { Backoff } from '../core/backoff.js';
import { every, withTimeout } from '../core/timing.js';
import { type Clock, type Log, StoreRefused, StoreUnavailable } from '../core/ports.js';
import { Refusal } from '../core/refusal.js';
import { SingleRun } from '../core/single-run.js';
import type { Readiness } from '../process/readiness.js';
import { withStoreErrors } from '../store/sql/failures.js';

const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 2_000;
const PING_EVERY_MS = 1_000;

export interface StartupOptions {
  migrator: Pick<Migrator, 'status' | 'refuseNewerSchema' | 'up'>;
  readiness: Readiness;
  /** Whether the database is a server that other instances use too: then startup waits for it, and another instance may migrate it. */
  isShared: boolean;
  autoMigrate: boolean;
  /** How long `begin` waits for a database that is unavailable, or that another instance migrates, which may take an hour. */
  firstTryMs: number;
  /** Checks that the database can store what llmp writes. @throws {StoreRefused} */
  checkDatabase: () => Promise<void>;
  /** Starts everything that needs the tables. */
  beginServing: () => Promise<void>;
  /** Called when it is ready, and changes can be made. */
  onServing: () => void;
  /** Closes all connections if the database does not respond. */
  ping: () => Promise<void>;
  /** Called if the configuration turns out to be wrong after `begin` returned. */
  onFatal: (error: SettingsError) => void;
  clock: Clock;
  log: Log;
}

/** Startup of the database side: waits for the database, checks or migrates its schema, and registers the instance. Retries until it succeeds. */
export class Startup {
  readonly #options: StartupOptions;
  readonly #backoff = new Backoff(FIRST_RETRY_MS, MAX_RETRY_MS);
  #isClosed = false;
  #cancelRetry: (() => void) | null = null;
  #lastWarning = '';
  readonly #attempt = new SingleRun();

  constructor(options: StartupOptions) {
    this.#options = options;
  }

  /**
   * Makes the first attempt. For a shared database, continues in the background after `firstTryMs`, or if it is unavailable. What it
   * refuses then, while somebody may still be setting it up, is repeated. @throws {SettingsError} @throws {StoreUnavailable}
   */
  async begin(): Promise<void> {
    const { isShared, firstTryMs, clock } = this.#options;
    const first = this.#tryNow();
    if (!isShared) return first;
    try {
      await withTimeout(clock, firstTryMs, first, () => undefined);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      if (error instanceof StoreRefused)
        throw error.isLasting ? new SettingsError([`DATABASE_URL: ${error.message}`]) : error;
      this.#warnOnce(error);
    }
    this.#scheduleRetry();
  }

  /** Migrates the schema, also with AUTO_MIGRATE=false. @throws {Refusal} if the schema needs a newer release. */
  async migrateUp(): Promise<MigrationStatus> {
    try {
      return await this.#migrate();
    } catch (error) {
      throw error instanceof SchemaTooNew ? new Refusal('schema_too_new', error.message) : error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry?.();
    await this.#attempt.current?.catch(() => undefined);
  }

  #tryNow(): Promise<void> {
    return this.#attempt.run(async () => {
      const { clock, ping } = this.#options;
      // Detects a dead connection, and then the attempt fails: migrations themselves have no timeout.
      const stopPinging = every(clock, PING_EVERY_MS, ping);
      try {
        await this.#prepareDatabase();
      } finally {
        stopPinging();
      }
    });
  }

  async #prepareDatabase(): Promise<void> {
    const { migrator, readiness, autoMigrate, checkDatabase } = this.#options;
    await checkDatabase();
    await refuseNewerSchema(migrator);
    if (autoMigrate) {
      await this.#migrate();
    } else {
      readiness.pendingMigrations = (await withStoreErrors(migrator.status())).pending;
      if (readiness.pendingMigrations.length === 0) await this.#serve();
    }
  }

  async #migrate(): Promise<MigrationStatus> {
    const report = await withStoreErrors(this.#options.migrator.up());
    await this.#serve();
    return report;
  }

  async #serve(): Promise<void> {
    const { readiness, beginServing, onServing } = this.#options;
    if (readiness.isDatabaseReady) return;
    await beginServing();
    readiness.pendingMigrations = [];
    readiness.isDatabaseReady = true;
    onServing();
  }

  #scheduleRetry(): void {
    const { isShared, readiness, clock, log, onFatal } = this.#options;
    if (!isShared || this.#isClosed || readiness.isDatabaseReady) return;
    this.#cancelRetry = clock.after(this.#backoff.next(), () => {
      this.#tryNow().then(
        () => {
          if (readiness.isDatabaseReady) log.info('database connected');
          this.#scheduleRetry();
        },
        (error: unknown) => {
          if (error instanceof SettingsError) {
            onFatal(error);
            return;
          }
          this.#warnOnce(error);
          this.#scheduleRetry();
        },
      );
    });
  }

  /** Logs a failure, unless it is the same as the last one. */
  #warnOnce(error: unknown): void {
    const failure = error instanceof Error ? error.message : String(error);
    if (failure === this.#lastWarning) return;
    this.#lastWarning = failure;
    if (error instanceof StoreRefused)
      this.#options.log.error('the database refuses llmp, retrying', { reason: error.what, advice: error.advice });
    else this.#options.log.warn('database unavailable, retrying', { error });
  }
}

async function refuseNewerSchema(migrator: StartupOptions['migrator']): Promise<void> {
  try {
    await withStoreErrors(migrator.refuseNewerSchema());
  } catch (error) {
    throw error instanceof SchemaTooNew ? new SettingsError([`DATABASE_URL: ${error.message}`]) : error;
  }
}
