import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { Socket } from 'node:net';
import { startDaemon } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { head, RawClient } from '../../support/raw.js';
import { Realtime } from '../../support/realtime.js';
import { TEST_WORKERS } from '../../support/test-workers.js';

/** Milliseconds until TCP probes the connection whose own end has this port and whose other end has that; null if it does not. */
function probedIn(ownPort: number, otherPort: number): number | null {
  const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, '0');
  const line = readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .map((each) => each.trim().split(/\s+/))
    .find(([, own = '', other = '']) => own.endsWith(`:${hex(ownPort)}`) && other.endsWith(`:${hex(otherPort)}`));
  const [kind, jiffies = ''] = line?.[5]?.split(':') ?? [];
  return kind === '02' ? parseInt(jiffies, 16) * 10 : null;
}

describe('TCP keep-alive', () => {
  let scene: ProxyFixture;
  const realtimes: Realtime[] = [];

  before(async function () {
    // The workers of the tests get their connections from the test.
    if (process.platform !== 'linux' || TEST_WORKERS !== undefined) this.skip();
    scene = await ProxyFixture.open();
  });
  after(async () => {
    for (const realtime of realtimes) realtime.close();
    await (scene as ProxyFixture | undefined)?.close();
  });

  const portOf = (url: string) => Number(new URL(url).port);
  const expectProbed = (what: string, own: number, other: number) =>
    eventually(`${what} is probed`, () => {
      const ms = probedIn(own, other);
      return ms !== null && ms > 30_000 && ms <= 60_000;
    });

  it('watches a client that waits for a response', async () => {
    const client: RawClient = await scene.beforeHeaders();
    await expectProbed("the client's connection", portOf(scene.daemon.url), client.socket.localPort ?? 0);
    client.destroy();
  });

  it('watches both ends of a WebSocket', async () => {
    const realtime = new Realtime(scene.provider);
    realtimes.push(realtime);
    const upstream = new Promise<Socket>((resolve) =>
      scene.provider.server.once('upgrade', (_req, socket) => {
        resolve(socket as Socket);
      }),
    );
    let accepted: Socket | undefined;
    scene.daemon.daemon.server.once('upgrade', (_req, socket) => {
      accepted = socket as Socket;
    });
    await realtime.begin(scene.daemon.url, scene.secret);
    await expectProbed("the client's connection", portOf(scene.daemon.url), accepted?.remotePort ?? 0);
    const { remotePort = 0 } = await upstream;
    await expectProbed("the provider's connection", remotePort, portOf(scene.provider.url));
    realtime.end();
  });
});

describe('an idle client connection', () => {
  for (const [given, seconds] of [
    [undefined, 75],
    ['620s', 620],
  ] as const) {
    it(`E10 stays open for ${seconds} s ${given === undefined ? 'by default' : 'with CLIENT_KEEP_ALIVE'}, and says so`, async () => {
      const daemon = await startDaemon({ env: given === undefined ? {} : { CLIENT_KEEP_ALIVE: given } });
      try {
        const client = await RawClient.to(daemon.url);
        let accepted: Socket | undefined;
        daemon.daemon.server.once('request', ({ socket }) => {
          accepted = socket;
        });
        client.send(head('GET /live', null));
        const response = await client.response();
        expect(response.header('keep-alive')).to.equal(`timeout=${seconds}`);
        await eventually('the connection is idle', () => (accepted?.timeout ?? 0) > 0);
        // Node adds a second for what is on its way.
        expect(accepted?.timeout).to.be.within(seconds * 1000, seconds * 1000 + 1000);
        client.destroy();
      } finally {
        await daemon.stop();
      }
    });
  }
});
