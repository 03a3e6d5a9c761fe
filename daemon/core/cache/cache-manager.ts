/**
 * Management of the response cache by operators: its size, and purges.
 *
 * **A purge is not part of a database transaction.** It may wait for Redis, and an open transaction would block all writes to SQLite
 * meanwhile. So the project is looked up, the responses are removed, and then the purge is recorded with the count, which is known
 * only then. If recording fails, the operator gets 503 although the responses are gone; repeating the purge is harmless. If it were
 * recorded first, there could be records of purges that never happened.
 */
import type { AuditSubject, Caller } from '../audit.js';
import { concernsAll, hasProject, isEverything } from '../authority.js';
import type { ResponseCache } from './response-cache.js';
import { resourceOf } from './caching.js';
import { withoutSecrets } from '../masking.js';
import type { CacheSelection, CacheSize, Change, ChangeKind, Clock, Log, RecordStore, Scope } from '../ports.js';
import { checkChangeable, projectNotFound, orUnavailable, Refusal } from '../refusal.js';
import { AuditWriter } from '../audit-writer.js';
import type { CacheBackend } from '../../api/vocabulary.js';

// Other instances see one kind per change: an update that (de)activates a project may also change its upstream key.
const MAY_END_ANSWERS: ReadonlySet<ChangeKind> = new Set([
  'cache.purged',
  'project.updated',
  'project.activated',
  'project.deactivated',
]);

export interface CacheReport extends CacheSize {
  backend: CacheBackend;
  /** Since this instance started: requests answered from the cache, and cacheable requests that were not. */
  hits: number;
  misses: number;
}

/** What an operator wants to purge: a `CacheSelection`, with a resource given as method and URL. */
export type PurgeSelection =
  Exclude<CacheSelection, { kind: 'resource' }> | { kind: 'resource'; method: string; url: string };

export interface PurgeResult {
  count: number;
  isCacheOff: boolean;
}

export interface CacheManagerOptions {
  /** Null when caching is off. */
  cache: Pick<ResponseCache, 'backend' | 'hits' | 'misses' | 'size' | 'count' | 'purge'> | null;
  records: Pick<RecordStore, 'project' | 'change' | 'checkChangeable'>;
  clock: Pick<Clock, 'now'>;
  log: Log;
}

export class CacheManager {
  readonly #options: CacheManagerOptions;
  readonly #audit: AuditWriter;

  constructor(options: CacheManagerOptions) {
    this.#options = options;
    this.#audit = new AuditWriter(options.records, options.clock);
  }

  /** @throws {Refusal} `unavailable` when the cache cannot be reached. */
  async report(): Promise<CacheReport> {
    const { cache } = this.#options;
    if (!cache) return { backend: 'off', entries: 0, bytes: 0, hits: 0, misses: 0 };
    const size = await orUnavailable(cache.size());
    return { backend: cache.backend, ...size, hits: cache.hits, misses: cache.misses };
  }

  /**
   * @throws {Refusal} `not_found` for an unknown project, `not_permitted` for what may be of others, `unavailable` when it is not known
   * what was removed.
   */
  async purge(selection: PurgeSelection, caller: Caller, scope: Scope): Promise<PurgeResult> {
    const attempt = attemptOf(selection);
    checkChangeable(this.#options.records);
    const purged = await this.#ofSelection(selection, 'purge', scope).catch(async (error: unknown) => {
      if (error instanceof Refusal) await this.#audit.recordRefusal(attempt, caller, error.message);
      throw error;
    });
    const change: Change = { kind: 'cache.purged', projectId: attempt.projectId ?? null, tokenId: null };
    await this.#audit.recordSuccess({ ...attempt, count: purged.count }, caller, change);
    return purged;
  }

  /**
   * Applies a change made by another instance. Removes from a cache in memory what that instance purged, or what may depend on a
   * replaced upstream key. After the purge of one resource everything is removed: its URL may contain secrets and is not published.
   */
  applyRemoteChange({ kind, projectId }: Change): void {
    if (!MAY_END_ANSWERS.has(kind)) return;
    this.#dropOwn(projectId === null ? { kind: 'all' } : { kind: 'project', projectId });
  }

  /** Changes may have been missed: other instances may have purged anything. */
  dropAll(): void {
    this.#dropOwn({ kind: 'all' });
  }

  /** A shared cache was already purged by the instance that made the change. */
  #dropOwn(selection: CacheSelection): void {
    if (this.#options.cache?.backend !== 'memory') return;
    this.#drop(selection);
  }

  /** What `purge` would remove. Writes no audit record. @throws {Refusal} as `purge` does. */
  previewPurge(selection: PurgeSelection, scope: Scope): Promise<PurgeResult> {
    return this.#ofSelection(selection, 'count', scope);
  }

  /**
   * Removes the entries of a project whose upstream key was replaced. Best effort, without waiting: the upstream key is part of the
   * cache key, so old entries are not served in any case, unless the former key is set again.
   */
  dropProject(projectId: string): void {
    this.#drop({ kind: 'project', projectId });
  }

  #drop(selection: CacheSelection): void {
    const { cache, log } = this.#options;
    cache?.purge(selection).catch((error: unknown) => {
      log.warn('cannot purge outdated responses from the cache', { ...selection, error });
    });
  }

  async #ofSelection(selection: PurgeSelection, what: 'count' | 'purge', scope: Scope): Promise<PurgeResult> {
    const { cache, records } = this.#options;
    if (selection.kind === 'project') {
      const isFound =
        hasProject(scope, selection.projectId) && (await orUnavailable(records.project(selection.projectId)));
      if (!isFound) throw projectNotFound();
    } else if (!isEverything(scope)) {
      throw concernsAll();
    }
    return { count: cache ? await orUnavailable(cache[what](cacheSelectionOf(selection))) : 0, isCacheOff: !cache };
  }
}

function cacheSelectionOf(selection: PurgeSelection): CacheSelection {
  if (selection.kind !== 'resource') return selection;
  return { kind: 'resource', resource: resourceOf(selection.method, selection.url) };
}

function attemptOf(selection: PurgeSelection): AuditSubject {
  const action = 'cache.purge';
  if (selection.kind === 'project') return { action, projectId: selection.projectId };
  if (selection.kind === 'all') return { action, details: { all: true } };
  // A query may contain secrets.
  return { action, details: { method: selection.method, url: withoutSecrets(selection.url) } };
}
