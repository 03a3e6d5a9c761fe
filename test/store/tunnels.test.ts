/** Connections through the channel between a worker and its primary. */
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { Channel, type Port } from '../../daemon/store/ipc/channel.js';
import type { OfPrimary, OfWorker, TunnelPiece } from '../../daemon/store/ipc/protocol.js';
import { PrimaryLink } from '../../daemon/store/ipc/primary-link.js';
import { Tunnels } from '../../daemon/store/ipc/tunnel.js';

/** The other side has stopped: the operating system takes nothing more. */
function stoppedPort() {
  const batches: unknown[][] = [];
  const taken: (() => void)[] = [];
  const port: Port = {
    post: (batch, onTaken) => {
      batches.push(batch as unknown[]);
      if (onTaken) taken.push(onTaken);
    },
    onBatch: () => undefined,
  };
  return { port, batches, taken };
}

/** A channel that records the pieces, and whose other side has room when the test says so. */
function recorded() {
  const pieces: (number | null)[] = [];
  const replies: (() => void)[] = [];
  const channel = {
    callLarge: (_name: 'tunnel', { bytes }: TunnelPiece) => {
      pieces.push(bytes && bytes.length);
      return { reply: new Promise<void>((resolve) => replies.push(resolve)), withdraw: () => undefined };
    },
    send: () => undefined,
    handle: () => undefined,
  };
  return { tunnels: new Tunnels(channel), pieces, replies };
}

describe('the channel between a worker and its primary', () => {
  it('bodies that wait do not hold up other messages', async () => {
    const { port, batches, taken } = stoppedPort();
    const channel = new Channel<OfPrimary, OfWorker>(port);
    for (let id = 0; id < 100; id++) channel.callLarge('tunnel', { id, bytes: new Uint8Array(16_384) });
    await turn();
    const bodies = batches.length;
    expect(bodies).to.be.within(1, 16);
    channel.send('tunnelClosed', 5);
    await turn();
    expect(batches.slice(bodies)).to.deep.equal([[[0, 0, 'tunnelClosed', 5]]]);
    taken.shift()?.();
    await turn();
    expect(batches).to.have.length(bodies + 2);
  });

  it('what is sent before a body arrives before it', async () => {
    const { port, batches } = stoppedPort();
    const channel = new Channel<OfPrimary, OfWorker>(port);
    channel.callLarge('tunnel', { id: 1, bytes: null });
    channel.send('open', { id: 1, ends: {} });
    await turn();
    expect(batches.flat().map((message) => (message as unknown[])[2])).to.deep.equal(['open', 'tunnel']);
  });

  it('bodies of connections that have closed do not wait', async () => {
    const { port, batches, taken } = stoppedPort();
    const link = new PrimaryLink(port);
    const open = Array.from({ length: 50 }, () => link.connect({}));
    for (const tunnel of open) tunnel?.write('x');
    await turn();
    for (const tunnel of open) tunnel?.destroy();
    await turn();
    for (let at = 0; at < taken.length; at++) {
      taken[at]?.();
      await turn();
    }
    const sent = batches.flat().filter((message) => (message as unknown[])[2] === 'tunnel');
    expect(sent).to.have.length.within(1, 16);
  });

  it('a primary that takes no connections is not sent more and more of them', () => {
    const { port } = stoppedPort();
    const link = new PrimaryLink(port);
    let opened = 0;
    for (let clients = 0; clients < 2_000; clients++) {
      const tunnel = link.connect({});
      if (tunnel) opened += 1;
      tunnel?.destroy();
    }
    expect(opened).to.equal(1_000);
  });
});

describe('a tunnel', () => {
  it('small writes are one message, large ones are sent in pieces', async () => {
    const { tunnels, pieces, replies } = recorded();
    const tunnel = tunnels.open(1, {});
    tunnel.write('a');
    for (let writes = 0; writes < 5_000; writes++) tunnel.write('b');
    tunnel.end(Buffer.alloc(40_000));
    const finished = once(tunnel, 'finish');
    while (pieces.at(-1) !== null) {
      replies.shift()?.();
      await turn();
    }
    replies.shift()?.();
    await finished;
    expect(pieces).to.deep.equal([1, 16_384, 16_384, 12_232, null]);
    expect(tunnel.takenBytes).to.equal(45_001);
  });

  it('while the other side has no room, nothing more is sent', async () => {
    const { tunnels, pieces } = recorded();
    const tunnel = tunnels.open(1, {});
    tunnel.write(Buffer.alloc(1_000_000));
    for (let turns = 0; turns < 10; turns++) await turn();
    expect(pieces).to.deep.equal([16_384]);
    expect(tunnel.writableLength).to.equal(1_000_000);
    expect(tunnel.takenBytes).to.equal(0);
  });
});
