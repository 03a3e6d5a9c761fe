/**
 * WebSocket upgrades on /v1. A handshake passes admission like any request (admit.ts). If the upstream agrees, the
 * two connections are joined until one of them ends (websocket-tunnel.ts), and each response on them is a use (websocket-uses.ts). Any
 * other response is forwarded, and the connection is closed. A RequestEnded is published for each response and for the connection.
 *
 * `Origin` is not checked: the check protects against pages that use credentials stored in the browser, and this proxy accepts none.
 * `Origin` is not forwarded either, since to the upstream this proxy is not a page.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Upgrade, type UpgradeOptions } from './upgrade.js';
import { IdleTimers } from './timeouts.js';

export interface Upgrades {
  /** @param early bytes that the client sent after its handshake. */
  handle(req: IncomingMessage, socket: Socket, early: Buffer): void;
  /** Number of connections that are open or in their handshake. */
  readonly inFlight: number;
  /** Ends all connections. */
  cutAll(): void;
}

export function createUpgrades(options: UpgradeOptions): Upgrades {
  const open = new Set<Upgrade>();
  const idleTimers = new IdleTimers(options.clock);
  return {
    handle(req, socket, early) {
      const upgrade = new Upgrade(options, req, socket, idleTimers, () => open.delete(upgrade));
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
