/** Exchanges of JWTs for tokens. A worker has none, and does not load this. */
import { Exchanges } from '../core/exchanges.js';
import { documentsOf } from '../http/exchange/documents.js';
import { IssuerKeys } from '../http/exchange/issuer-keys.js';
import { jwtReader } from '../http/exchange/jwt-reader.js';
import type { BuildContext } from './context.js';
import type { Core } from './core.js';
import type { Storage } from './storage.js';

export function exchangesOf(
  { settings, clock, log, version }: BuildContext,
  { registry }: Core,
  { stores }: Storage,
): Exchanges {
  const { upstreamProxy: proxy, upstreamProxyBypass: proxyBypass } = settings;
  const readDocument = documentsOf({ clock, proxy, proxyBypass }, `llmp/${version}`);
  const keys = new IssuerKeys({ readDocument, folder: settings.jwksFolder ?? null, clock, log });
  return new Exchanges({ store: stores.records, registry, jwts: jwtReader(keys, clock), clock, log });
}
