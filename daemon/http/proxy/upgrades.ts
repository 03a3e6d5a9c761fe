/**
 * WebSocket upgrades on /v1. A handshake goes the way of any request (admit.ts, spend.ts) and costs one use when it is forwarded. If
 * the upstream agrees, the two connections are one until either ends (joined.ts); any other answer passes through, and closes. There is
 * one RequestEnded, when the connection is over.
 *
 * `Origin` is not looked at: it guards against pages that use a credential the browser keeps, and here there is none.
 * Nor does the upstream get it, to whom we are no page.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Upgrade, type UpgradeOptions } from './upgrade.js';
import { Watches } from './watch.js';

export interface Upgrades {
  /** @param early what the client sent behind its handshake. */
  handle(req: IncomingMessage, socket: Socket, early: Buffer): void;
  /** How many are being joined or are connected. */
  readonly inFlight: number;
  /** Ends whatever is connected. */
  cutAll(): void;
}

export function createUpgrades(options: UpgradeOptions): Upgrades {
  const open = new Set<Upgrade>();
  const watches = new Watches(options.clock);
  return {
    handle(req, socket, early) {
      const upgrade = new Upgrade(options, req, socket, watches, () => open.delete(upgrade));
      open.add(upgrade);
      upgrade.run(early);
    },
    get inFlight() {
      return open.size;
    },
    cutAll() {
      for (const upgrade of open) upgrade.drain();
    },
  };
}
