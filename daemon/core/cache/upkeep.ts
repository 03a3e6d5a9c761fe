/**
 * The cache as its operators see it: what is in it, and its purge.
 *
 * **A purge is no part of a transaction.** It may have to wait for Redis, and meanwhile nobody else could write to
 * SQLite. So the project is looked up, then the answers are removed, and then the purge is recorded, with the count
 * that is known only by then. If that fails the operator is told 503, and the answers are gone all the same: to ask
 * again costs nothing. Recorded first, there could be records of purges that never were.
 */
import type { AuditSubject, Caller } from '../audit.js';
import type { ResponseCache } from './response-cache.js';
import { resourceOf } from './caching.js';
import { withoutSecrets } from '../masking.js';
import type { CacheSelection, CacheSize, Change, ChangeKind, Clock, Log, RecordStore } from '../ports.js';
import { checkChangeable, projectNotFound, reading, Refusal } from '../refusal.js';
import { Trail } from '../trail.js';
import type { CacheBackend } from '../../api/vocabulary.js';

// That a project is activated or not may be told of a change of its key as well.
const MAY_END_ANSWERS: ReadonlySet<ChangeKind> = new Set([
  'cache.purged',
  'project.updated',
  'project.activated',
  'project.deactivated',
]);

export interface CacheReport extends CacheSize {
  backend: CacheBackend;
  /** Requests since this instance started: those answered from the cache, and those that might have been. */
  hits: number;
  misses: number;
}

/** What an operator asks to be removed: as the store knows it, but a resource in its two parts. */
export type PurgeSelection =
  Exclude<CacheSelection, { kind: 'resource' }> | { kind: 'resource'; method: string; url: string };

export interface Purged {
  count: number;
  isCacheOff: boolean;
}

export interface CacheUpkeepOptions {
  /** Null when nothing is cached. */
  cache: Pick<ResponseCache, 'backend' | 'hits' | 'misses' | 'size' | 'count' | 'purge'> | null;
  records: Pick<RecordStore, 'project' | 'change' | 'checkChangeable'>;
  clock: Pick<Clock, 'now'>;
  log: Log;
}

export class CacheUpkeep {
  readonly #options: CacheUpkeepOptions;
  readonly #trail: Trail;

  constructor(options: CacheUpkeepOptions) {
    this.#options = options;
    this.#trail = new Trail(options.records, options.clock);
  }

  /** @throws {Refusal} `unavailable` when the cache cannot be asked. */
  async report(): Promise<CacheReport> {
    const { cache } = this.#options;
    if (!cache) return { backend: 'off', entries: 0, bytes: 0, hits: 0, misses: 0 };
    const size = await reading(cache.size());
    return { backend: cache.backend, ...size, hits: cache.hits, misses: cache.misses };
  }

  /** @throws {Refusal} `not_found` for a project there is not, `unavailable` when it is not known what was removed. */
  async purge(selection: PurgeSelection, caller: Caller): Promise<Purged> {
    const attempt = attemptOf(selection);
    checkChangeable(this.#options.records);
    const purged = await this.#removed(selection).catch(async (error: unknown) => {
      if (error instanceof Refusal) await this.#trail.refused(attempt, caller, error.message);
      throw error;
    });
    const change: Change = { kind: 'cache.purged', projectId: attempt.projectId ?? null, tokenId: null };
    await this.#trail.done({ ...attempt, count: purged.count }, caller, change);
    return purged;
  }

  /**
   * Another instance made a change. What it purged, and what it may have given another upstream key, goes from a cache of our own
   * too; with it, when only a resource was purged, all the rest: its URL, which may hold anything, is nothing to tell around.
   */
  heardOf({ kind, projectId }: Change): void {
    if (!MAY_END_ANSWERS.has(kind)) return;
    this.#dropOwn(projectId === null ? { kind: 'all' } : { kind: 'project', projectId });
  }

  /** Other instances may have purged anything. */
  lostTrack(): void {
    this.#dropOwn({ kind: 'all' });
  }

  /** What is shared has been purged by whoever made the change. */
  #dropOwn(selection: CacheSelection): void {
    if (this.#options.cache?.backend !== 'memory') return;
    this.#drop(selection);
  }

  /** What `purge` would remove. Leaves no record. @throws {Refusal} as `purge` does. */
  async rehearsePurge(selection: PurgeSelection): Promise<Purged> {
    await this.#checkProject(selection);
    const { cache } = this.#options;
    return { count: cache ? await reading(cache.count(storedAs(selection))) : 0, isCacheOff: !cache };
  }

  /**
   * Drops what is kept of a project whose upstream key is another now, as well as can be: nobody waits for it, and
   * nothing is served if it fails, for the key is part of an answer's place. But the former key may come back.
   */
  dropProject(projectId: string): void {
    this.#drop({ kind: 'project', projectId });
  }

  #drop(selection: CacheSelection): void {
    const { cache, log } = this.#options;
    cache?.purge(selection).catch((error: unknown) => {
      log.warn('answers that are out of date could not be purged', { ...selection, error });
    });
  }

  async #removed(selection: PurgeSelection): Promise<Purged> {
    await this.#checkProject(selection);
    const { cache } = this.#options;
    return { count: cache ? await reading(cache.purge(storedAs(selection))) : 0, isCacheOff: !cache };
  }

  async #checkProject(selection: PurgeSelection): Promise<void> {
    if (selection.kind !== 'project') return;
    if (!(await reading(this.#options.records.project(selection.projectId)))) throw projectNotFound();
  }
}

function storedAs(selection: PurgeSelection): CacheSelection {
  if (selection.kind !== 'resource') return selection;
  return { kind: 'resource', resource: resourceOf(selection.method, selection.url) };
}

function attemptOf(selection: PurgeSelection): AuditSubject {
  const action = 'cache.purge';
  if (selection.kind === 'project') return { action, projectId: selection.projectId };
  if (selection.kind === 'all') return { action, details: { all: true } };
  // A query may hold anything.
  return { action, details: { method: selection.method, url: withoutSecrets(selection.url) } };
}
