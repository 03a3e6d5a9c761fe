/** One instance of llmp from its HTTP server to its store. Only the network, the upstream and the database are replaced. */
import { createServer, type Server } from 'node:http';
import { Limiter } from '../../../daemon/core/limiter.js';
import { MemoryLimits } from '../../../daemon/store/memory/limits.js';
import { type Loaded, loadSettings } from '../../../config/settings.js';
import { Admission } from '../../../daemon/core/admission.js';
import { ResponseCache } from '../../../daemon/core/cache/response-cache.js';
import { ContentReaders } from '../../../daemon/core/content/content-reader.js';
import { CacheManager } from '../../../daemon/core/cache/cache-manager.js';
import type { RequestEnded } from '../../../daemon/core/events.js';
import type { CacheStore, Log, RecordStore } from '../../../daemon/core/ports.js';
import { Scheduler } from '../../../daemon/http/scheduler.js';
import { MemoryLimit } from '../../../daemon/core/memory-limit.js';
import { createProxy } from '../../../daemon/http/proxy/proxy.js';
import { MANAGEMENT_TOKEN } from '../daemon.js';
import type { TestClock } from '../clock.js';
import { AuditSink } from '../record-store.js';
import type { Gates } from './gates.js';
import { GatedStore } from './store.js';
import type { Tables } from './tables.js';
import { DEFAULT_TTL_PATH, DEFAULT_TTL_SECONDS, type Upstream } from './upstream.js';

export const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

let loaded: Loaded | null = null;
export const loadedSettings = (): Loaded =>
  (loaded ??= loadSettings({
    MANAGEMENT_TOKEN,
    UPSTREAM_BASE_URL: 'http://upstream.test',
    HTTP_CACHE_ENABLED: 'true',
    HTTP_CACHE_DEFAULT_TTL: String(DEFAULT_TTL_SECONDS),
    HTTP_CACHE_DEFAULT_TTL_PATHS: DEFAULT_TTL_PATH,
  }));

export interface InstanceOptions {
  index: number;
  store: CacheStore;
  isGated: boolean;
  gates: Gates;
  tables: Tables;
  upstream: Upstream;
  clock: TestClock;
}

export class Instance {
  readonly index: number;
  readonly store: GatedStore;
  readonly admission: Admission;
  readonly cache: ResponseCache;
  readonly upkeep: CacheManager;
  readonly server: Server;
  readonly ended: RequestEnded[] = [];

  constructor({ index, store, isGated, gates, tables, upstream, clock }: InstanceOptions) {
    const { settings, reloadable } = loadedSettings();
    const live = { current: reloadable };
    const instanceId = `instance-${index}`;
    this.index = index;
    this.store = new GatedStore(store, gates, instanceId, isGated);
    this.admission = new Admission({
      limiter: new Limiter(new MemoryLimits({ clock, shares: null })),
      lookup: tables,
      ledger: tables,
      clock,
      log: silent,
      instanceId,
      staleLimitMs: 0,
    });
    const memory = new MemoryLimit({ heap: { isFull: false }, onDropped: null, maxBytes: () => Infinity });
    this.cache = new ResponseCache({ store: this.store, clock, live, memory });
    const sink = new AuditSink();
    const records = {
      project: () => Promise.resolve({}),
      change: sink.change.bind(sink),
      checkChangeable: () => undefined,
    } as unknown as RecordStore;
    this.upkeep = new CacheManager({ cache: this.cache, records, clock, log: silent });
    const proxy = createProxy({
      admission: this.admission,
      rateLimits: { countsAddresses: false, countAddress: () => undefined, countAuthenticated: () => undefined },
      addressOf: () => null,
      costs: { costOf: () => null },
      unreadResponses: { watch: () => undefined },
      memory,
      cache: this.cache,
      contents: new ContentReaders({ openDecoder: () => null, clock, maxCaptured: null }),
      upstreams: upstream.upstreamsOf(index),
      clock,
      live,
      maxRequestBytes: settings.maxRequestBytes,
      proxyPrefixes: settings.proxyPrefixes,
      isServing: () => true,
      loopMark: instanceId,
      scheduler: new Scheduler(clock),
      onEnded: (ended) => this.ended.push(ended),
    });
    this.server = createServer({ keepAliveTimeout: 0 }, (req, res) => {
      proxy.handle(req, res, false);
    });
  }
}
