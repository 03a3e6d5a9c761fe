/** A stand-in provider that misbehaves, in a process of its own: a raw socket server that follows a plan. */
import { createHash } from 'node:crypto';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { serve } from './child.js';
import { Flood } from './flood.js';
import type { ProviderPlan, ProviderReport } from './plans.js';

const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const NICENESS = 5;

function upgradeResponse(head: string): string {
  const key = /^sec-websocket-key: *(\S+)/im.exec(head)?.[1] ?? '';
  const accept = createHash('sha1')
    .update(key + WEBSOCKET_GUID)
    .digest('base64');
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
}

serve(NICENESS, async (plan: ProviderPlan) => {
  const report: ProviderReport = { requests: 0, sentBytes: 0 };
  const response = Buffer.concat([
    Buffer.from(plan.response ?? '', 'latin1'),
    Buffer.from(plan.bodyBase64 ?? '', 'base64'),
  ]);
  const { block = '', bytesPerSecond, connections: sockets = 1 } = plan;
  const flood = new Flood({ block, bytesPerSecond, sockets });
  /** Those that are flooded. */
  const open = new Set<Socket>();

  const answer = (socket: Socket, head: string) => {
    if (socket.destroyed) return;
    if (/^upgrade: *websocket/im.test(head)) socket.write(upgradeResponse(head));
    else if (response.length > 0) socket.write(response);
    if (block === '') {
      report.sentBytes += response.length;
      return;
    }
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      report.sentBytes += socket.bytesWritten;
    });
    flood.begin(socket);
  };

  const server = createServer({ noDelay: true }, (socket) => {
    let pending = '';
    socket.on('error', () => undefined);
    socket.on('data', (piece) => {
      pending += piece.toString('latin1');
      for (let end = pending.indexOf('\r\n\r\n'); end !== -1; end = pending.indexOf('\r\n\r\n')) {
        const head = pending.slice(0, end + 4);
        pending = pending.slice(end + 4);
        report.requests += 1;
        if (plan.delayMs === undefined) answer(socket, head);
        else setTimeout(answer, plan.delayMs, socket, head);
        // One that answers goes on to look for requests; all other bytes are only thrown away.
        if (response.length > 0 && block === '') continue;
        socket.removeAllListeners('data');
        if (plan.reads) socket.resume();
        else socket.pause();
        return;
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 4_096, resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ready: { url },
    report: (): ProviderReport => {
      const unfinished = [...open].map(({ bytesWritten, writableLength }) => bytesWritten - writableLength);
      return { ...report, sentBytes: unfinished.reduce((sum, bytes) => sum + bytes, report.sentBytes) };
    },
  };
});
