/** The load balancers of docs/operate, with their shipped example configurations, and the settings that these require of two instances. */
import { join } from 'node:path';
import { temporaryFolder } from './daemon.js';
import { HaProxy, WITHOUT_HAPROXY } from './haproxy.js';
import { Nginx, WITHOUT_NGINX } from './nginx.js';
import { freePort } from './ports.js';

export interface Front {
  url: string;
  complaints: string;
  /** Whether it sends requests to the instance with this index. An operator waits for that before the next restart. */
  sendsTo(index: number): boolean;
  stop(): Promise<void>;
}

export interface FrontKind {
  name: string;
  /** Says why its tests are skipped here. */
  without: string;
  /** @returns the settings of each instance, and what starts the front, by default on a free port. */
  instances: () => Promise<{
    env: [Record<string, string>, Record<string, string>];
    start: (port?: number) => Promise<Front>;
  }>;
}

export const FRONTS: readonly FrontKind[] = [
  {
    name: 'nginx',
    without: WITHOUT_NGINX,
    instances: () => {
      const dir = temporaryFolder();
      const sockets = [join(dir, '1.sock'), join(dir, '2.sock')] as const;
      const settings = (socket: string) => ({
        LISTEN_ADDR: `unix:${socket}`,
        MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0',
        SHUTDOWN_DELAY: '1s',
      });
      return Promise.resolve({
        env: [settings(sockets[0]), settings(sockets[1])],
        start: (port) => Nginx.start(sockets, port),
      });
    },
  },
  {
    name: 'HAProxy',
    without: WITHOUT_HAPROXY,
    instances: async () => {
      const dir = temporaryFolder();
      const one = { socket: join(dir, '1.sock'), managementPort: await freePort() };
      const other = { socket: join(dir, '2.sock'), managementPort: await freePort() };
      const settings = ({ socket, managementPort }: typeof one) => ({
        LISTEN_ADDR: `unix:${socket}`,
        MANAGEMENT_LISTEN_ADDR: `127.0.0.1:${managementPort}`,
        SHUTDOWN_DELAY: '2s',
      });
      return { env: [settings(one), settings(other)], start: (port) => HaProxy.start([one, other], port) };
    },
  },
];
