/** From a daemon that is composed to one that serves: the database answers, its schema is right, the instance is enrolled. */
import { SettingsError } from '../../config/settings.js';
import { type MigrationStatus, type Migrator, SchemaTooNew } from '../../migrations/migrator.js';
import { inTime } from '../core/in-time.js';
import { type Clock, type Log, StoreUnavailable } from '../core/ports.js';
import { Refusal } from '../core/refusal.js';
import { SingleRun } from '../core/single-run.js';
import type { Readiness } from './readiness.js';
import { explained } from '../store/sql/failures.js';

const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 2_000;
const PING_EVERY_MS = 1_000;

export interface ComingUpOptions {
  migrator: Migrator;
  readiness: Readiness;
  /** Whether a database that is away is waited for, and others may bring its schema up to date. */
  isShared: boolean;
  autoMigrate: boolean;
  /** How long `begin` waits for a database that is away, or that another instance migrates, maybe for an hour. */
  firstTryMs: number;
  /** Everything that needs the tables to be there. */
  beginServing: () => Promise<void>;
  /** Gives up all connections when the database does not answer. */
  ping: () => Promise<void>;
  /** Told when the configuration turns out to be wrong after all. */
  onHopeless: (error: SettingsError) => void;
  clock: Clock;
  log: Log;
}

export class ComingUp {
  readonly #options: ComingUpOptions;
  #retryMs = FIRST_RETRY_MS;
  #isClosed = false;
  #cancelRetry: (() => void) | null = null;
  #failure = '';
  readonly #trying = new SingleRun();

  constructor(options: ComingUpOptions) {
    this.#options = options;
  }

  /** Tries for a while, and goes on trying where it may be a matter of time. @throws {SettingsError} @throws {StoreUnavailable} */
  async begin(): Promise<void> {
    const { isShared, firstTryMs, clock } = this.#options;
    const first = this.#try();
    if (!isShared) return first;
    try {
      await inTime(clock, firstTryMs, first, () => undefined);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#complain(error);
    }
    this.#tryLater();
  }

  /** Brings the schema up to date, whether or not that was left to an operator. @throws {Refusal} when it is for newer builds. */
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
    await this.#trying.current?.catch(() => undefined);
  }

  #try(): Promise<void> {
    return this.#trying.run(async () => {
      const stopPinging = this.#ping();
      try {
        await this.#comeUp();
      } finally {
        stopPinging();
      }
    });
  }

  /** Migrations wait for as long as it takes, on a connection that may have ceased to lead anywhere. */
  #ping(): () => void {
    const { clock, ping } = this.#options;
    let cancel: () => void = () => undefined;
    const again = () => {
      cancel = clock.after(PING_EVERY_MS, () => {
        ping().catch(() => undefined); // Whoever waits is told.
        again();
      });
    };
    again();
    return () => {
      cancel();
    };
  }

  async #comeUp(): Promise<void> {
    const { migrator, readiness, autoMigrate } = this.#options;
    await refuseForeignSchema(migrator);
    if (autoMigrate) {
      await this.#migrate();
    } else {
      readiness.pendingMigrations = (await explained(migrator.status())).pending;
      if (readiness.pendingMigrations.length === 0) await this.#serve();
    }
  }

  async #migrate(): Promise<MigrationStatus> {
    const report = await explained(this.#options.migrator.up());
    await this.#serve();
    return report;
  }

  async #serve(): Promise<void> {
    const { readiness, beginServing } = this.#options;
    if (readiness.isDatabaseReady) return;
    await beginServing();
    readiness.pendingMigrations = [];
    readiness.isDatabaseReady = true;
  }

  #tryLater(): void {
    const { isShared, readiness, clock, log, onHopeless } = this.#options;
    if (!isShared || this.#isClosed || readiness.isDatabaseReady) return;
    this.#cancelRetry = clock.after(this.#retryMs, () => {
      this.#retryMs = Math.min(2 * this.#retryMs, LONGEST_RETRY_MS);
      this.#try().then(
        () => {
          if (readiness.isDatabaseReady) log.info('the database has come');
          this.#tryLater();
        },
        (error: unknown) => {
          if (error instanceof SettingsError) {
            onHopeless(error);
            return;
          }
          this.#complain(error);
          this.#tryLater();
        },
      );
    });
  }

  /** Once for each reason there is. */
  #complain(error: unknown): void {
    const failure = error instanceof Error ? error.message : String(error);
    if (failure === this.#failure) return;
    this.#failure = failure;
    this.#options.log.warn('the database is away, or not as it should be; the daemon serves when it is', { error });
  }
}

async function refuseForeignSchema(migrator: Migrator): Promise<void> {
  try {
    await explained(migrator.refuseNewerSchema());
  } catch (error) {
    throw error instanceof SchemaTooNew ? new SettingsError([`DATABASE_URL: ${error.message}`]) : error;
  }
}
