/**
 * The upstreams of all projects. Each origin has its own connections and waiting requests, so a provider that hangs does not delay
 * requests to another.
 */
import type { UpstreamAuth } from '../../api/vocabulary.js';
import { isMetadataHost } from '../../../config/metadata-addresses.js';
import type { Settings } from '../../../config/settings.js';
import { isReachedDirectly } from '../../../config/urls.js';
import type { Clock } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import { rememberingLookup } from './dns-lookup.js';
import type { ParsingTurn } from './upstream-socket.js';
import { Forwarder, type ForwarderOptions } from './forwarder.js';
import { type ForwardUpgrade, upgradesAt } from './http-proxy.js';
import { connectWithin, type LiveTimeouts } from './upstream-connection.js';
import { type OpenTunnel, tunnelsThrough } from './upstream-tunnel.js';

/** What a project says of its upstream. */
export interface ProjectUpstream {
  /** Null: UPSTREAM_BASE_URL. */
  upstreamBaseUrl: string | null;
  upstreamAuth: UpstreamAuth;
}

export interface Upstream {
  /** Its host name. */
  readonly host: string;
  /** Shared by all upstreams of its origin. */
  readonly forwarder: Forwarder;
  readonly forwardUpgrade: ForwardUpgrade;
  /** @param target path and query of the client's request. @returns path and query of the upstream's. */
  pathOf(target: string): string;
}

/** Upstreams that are not in use are forgotten above this number. */
const MAX_IDLE_ORIGINS = 100;
/** Base URLs that are remembered. They are parsed again when needed. */
const MAX_BASE_URLS = 1000;

export type UpstreamSettings = Pick<
  Settings,
  'upstreamBaseUrl' | 'upstreamConnections' | 'upstreamProxy' | 'upstreamProxyBypass'
>;

export class Upstreams {
  readonly #options: Omit<ForwarderOptions, 'openTunnel'>;
  /** Null without UPSTREAM_PROXY. */
  readonly #openTunnel: OpenTunnel | null;
  readonly #proxyBypass: readonly string[];
  readonly #default: Upstream;
  readonly #byBaseUrl = new Map<string, Upstream>();
  readonly #forwarders = new Map<string, Forwarder>();

  constructor(settings: UpstreamSettings, live: LiveTimeouts, clock: Clock, turn: ParsingTurn) {
    const { upstreamConnections, upstreamProxy } = settings;
    const lookup = rememberingLookup(clock);
    this.#options = { upstreamConnections, live, clock, lookup, turn };
    this.#openTunnel = upstreamProxy ? tunnelsThrough(upstreamProxy, lookup) : null;
    this.#proxyBypass = settings.upstreamProxyBypass ?? [];
    this.#default = this.#at(settings.upstreamBaseUrl);
  }

  /** @param baseUrl null: UPSTREAM_BASE_URL. @throws if it is not a valid URL. @throws {Refusal} for a metadata address. */
  of(baseUrl: string | null): Upstream {
    if (baseUrl === null) return this.#default;
    let upstream = this.#byBaseUrl.get(baseUrl);
    if (!upstream) {
      this.#forgetIdle();
      if (this.#byBaseUrl.size >= MAX_BASE_URLS) this.#byBaseUrl.clear();
      const url = new URL(baseUrl);
      // It was checked when it was stored; the name of an address is not resolved, and so not checked again.
      if (isMetadataHost(url.hostname)) throw new Refusal('upstream_unreachable', 'upstream unreachable');
      upstream = this.#at(url);
      this.#byBaseUrl.set(baseUrl, upstream);
    }
    return upstream;
  }

  #at(url: URL): Upstream {
    const prefix = url.pathname.replace(/\/+$/, '');
    const { live, clock, lookup } = this.#options;
    const openTunnel = isReachedDirectly(url, this.#proxyBypass) ? null : this.#openTunnel;
    const connect = openTunnel && connectWithin(live, clock, lookup, openTunnel);
    return {
      host: url.hostname,
      forwarder: this.#forwarderOf(url.origin, openTunnel),
      forwardUpgrade: upgradesAt(url, lookup, connect),
      pathOf: prefix === '' ? (target) => target : (target) => prefixed(prefix, target),
    };
  }

  #forwarderOf(origin: string, openTunnel: OpenTunnel | null): Forwarder {
    let forwarder = this.#forwarders.get(origin);
    if (!forwarder) {
      forwarder = new Forwarder(origin, { ...this.#options, openTunnel });
      this.#forwarders.set(origin, forwarder);
    }
    return forwarder;
  }

  /** Base URLs come and go with the projects that name them. A forgotten forwarder works for requests that still have it. */
  #forgetIdle(): void {
    if (this.#forwarders.size < MAX_IDLE_ORIGINS) return;
    const idle = new Set<Forwarder>();
    for (const [origin, forwarder] of this.#forwarders) {
      if (!forwarder.isIdle || forwarder === this.#default.forwarder) continue;
      this.#forwarders.delete(origin);
      forwarder.discardConnections();
      idle.add(forwarder);
    }
    for (const [baseUrl, { forwarder }] of this.#byBaseUrl) if (idle.has(forwarder)) this.#byBaseUrl.delete(baseUrl);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#forwarders.values()].map((forwarder) => forwarder.close()));
  }
}

/**
 * Groq's own SDK requests `/openai/v1/…`, and OpenAI's SDK requests `/v1/…` of the same base URL `https://api.groq.com/openai`: so a
 * prefix that the client has sent is not repeated.
 */
const prefixed = (prefix: string, target: string) => (target.startsWith(`${prefix}/`) ? target : prefix + target);
