import { expect } from 'chai';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:https';
import { loadPart, loadSettings } from '../../../config/settings.js';
import { staged } from '../../faults/support/fault-fixture.js';
import { canary } from '../../support/canaries.js';
import { Authority } from '../../support/certificates.js';
import { ConnectProxy } from '../../support/connect-proxy.js';
import { MANAGEMENT_TOKEN } from '../../support/daemon.js';
import { frameOf } from '../../support/frames.js';
import { eventually } from '../../support/eventually.js';
import { overrideDns, trustAuthority } from '../../support/network-overrides.js';
import { head, WEBSOCKET } from '../../support/raw.js';
import { expectRefusal, UNREACHABLE } from '../../support/refusals.js';

const NAME = 'provider.test';
const DIRECT = 'llm.corp.test';

describe('a provider behind UPSTREAM_PROXY', () => {
  const authority = new Authority();
  const password = canary('password');
  let proxy: ConnectProxy;
  const env: Record<string, string> = {};
  const restores: (() => void)[] = [];

  before(async () => {
    proxy = await ConnectProxy.start();
    env.UPSTREAM_PROXY = `http://llmp:${password}@${proxy.address}`;
    env.UPSTREAM_CONNECT_TIMEOUT = '5s';
    env.UPSTREAM_PROXY_BYPASS = '*.corp.test';
    // Only the proxy knows the provider's name.
    restores.push(
      overrideDns((name) => (name === DIRECT ? '127.0.0.1' : null)),
      trustAuthority(authority.certificate),
    );
  });
  beforeEach(() => {
    proxy.begin();
  });
  after(() => {
    for (const restore of restores) restore();
    proxy.stop();
  });

  const upstreamUrl = (url: string) => url.replace('127.0.0.1', NAME);
  for (const [how, certificate] of Object.entries({ https: authority.issue({ name: NAME }), http: undefined })) {
    describe(`over ${how}`, () => {
      const { stage, it: staging } = staged({ env, upstreamUrl, ...(certificate && { certificate }) });
      const authorityOf = () => new URL(upstreamUrl(stage.upstream.url)).host;
      const tunnels = () => proxy.asked.map((tunnel) => tunnel.authority);

      staging("gets requests through a tunnel, which is opened with the proxy's credentials and reused", async () => {
        const client = await stage.client();
        for (const body of ['one', 'two'.repeat(50_000)]) {
          client.send(stage.post(body));
          const { status, text } = await client.response();
          expect({ status, text }).to.deep.equal({ status: 200, text: '{"ok":true}' });
        }
        expect(tunnels()).to.deep.equal([authorityOf()]);
        const basic = `Basic ${Buffer.from(`llmp:${password}`).toString('base64')}`;
        expect(proxy.asked[0]?.credentials).to.equal(basic);
        expect(stage.upstream.exchanges.map(({ isReused }) => isReused)).to.deep.equal([false, true]);
        expect(stage.upstream.exchanges.flatMap((exchange) => exchange.all('proxy-authorization'))).to.deep.equal([]);
        expect(stage.daemon.logged.join('')).not.to.contain(password).and.not.to.contain(basic);
      });

      staging('sends a long response unchanged', async () => {
        const body = Array.from({ length: 40_000 }, (_, n) => `line ${n}\n`).join('');
        stage.upstream.script = (exchange) => {
          exchange.respond(200, '', body);
        };
        expect((await stage.ask(stage.get())).text === body).to.equal(true);
      });

      staging('gets a WebSocket through a tunnel', async () => {
        stage.upstream.script = (exchange) => {
          exchange.switchProtocols();
          exchange.send('down');
        };
        const up = frameOf('up', { opcode: 2, isMasked: true });
        const handshake = Buffer.from(head('GET /v1/realtime', stage.secret, WEBSOCKET));
        const client = await stage.client(Buffer.concat([handshake, up]));
        expect((await client.response()).status).to.equal(101);
        await eventually(
          'bytes both ways',
          () => client.pending.toString() === 'down' && stage.upstream.exchanges[0]?.tunnelled.equals(up),
        );
        expect(tunnels()).to.deep.equal([authorityOf()]);
      });

      staging('is disconnected when the token is revoked', async () => {
        stage.upstream.script = (exchange) => {
          exchange.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: first\n\n');
        };
        const client = await stage.client(stage.get());
        await client.seen('data: first\n\n');
        const exchange = await stage.upstream.only();
        await stage.daemon.manage('PATCH', `/manage/tokens/${stage.token.id}`, { is_active: false });
        await exchange.closed();
        await eventually('the tunnel is closed', () => proxy.asked[0]?.socket.destroyed);
      });

      for (const [what, handshake] of Object.entries({ request: {}, WebSocket: WEBSOCKET })) {
        const asked = () => head('GET /v1/realtime', stage.secret, handshake);

        staging(`the client of a ${what} gets 502 if the proxy refuses`, async () => {
          proxy.response = `HTTP/1.1 407 Proxy Authentication Required\r\nX-Secret: ${password}\r\nContent-Length: 0\r\n\r\n`;
          expectRefusal(await stage.ask(asked()), UNREACHABLE);
          await eventually('the reason is in the log', () =>
            stage.daemon.logged.join('').includes(`responded with 407 to CONNECT ${authorityOf()}`),
          );
          expect(stage.upstream.exchanges).to.be.empty;
        });

        staging(`the client of a ${what} gets 502 if the proxy sends a response of its own in the tunnel`, async () => {
          proxy.early = 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nplanted';
          expectRefusal(await stage.ask(asked()), UNREACHABLE);
        });

        staging(`a ${what} waits for the proxy no longer than UPSTREAM_CONNECT_TIMEOUT`, async () => {
          proxy.response = null;
          const client = await stage.client(asked());
          await eventually('the proxy is asked', () => proxy.asked.length === 1);
          stage.daemon.clock.advance(5_000);
          expectRefusal(await client.response(), UNREACHABLE);
          await eventually('the connection to the proxy is closed', () => proxy.asked[0]?.socket.destroyed);
        });

        staging(`the client of a ${what} may leave while the tunnel is opened`, async () => {
          proxy.response = null;
          const client = await stage.client(asked());
          await eventually('the proxy is asked', () => proxy.asked.length === 1);
          client.destroy();
          await eventually('the connection to the proxy is closed', () => proxy.asked[0]?.socket.destroyed);
        });
      }

      staging('a tunnel that ends is no end of a response', async () => {
        stage.upstream.script = (exchange) => {
          exchange.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf');
          setTimeout(() => {
            exchange.socket.destroy();
          }, 20);
        };
        await stage.client(stage.get());
        expect(await stage.onlyRecord()).to.include({ outcome: 'truncated' });
      });

      it('keys are checked through it', async () => {
        await stage.begin();
        const checked = await stage.daemon.manage('POST', `/manage/projects/${stage.project.id}/check`);
        expect(checked.body).to.include({ result: 'accepted', status: 200 });
        expect(tunnels()).to.deep.equal([authorityOf()]);
      });
    });
  }

  for (const [where, host] of Object.entries({ 'on this machine': '127.0.0.1', 'of UPSTREAM_PROXY_BYPASS': DIRECT })) {
    describe(where, () => {
      const { stage, it: staging } = staged({ env, upstreamUrl: (url) => url.replace('127.0.0.1', host) });

      staging('is reached directly', async () => {
        expect((await stage.ask(stage.get())).status).to.equal(200);
        stage.upstream.script = (exchange) => {
          exchange.switchProtocols();
        };
        const client = await stage.client(head('GET /v1/realtime', stage.secret, WEBSOCKET));
        expect((await client.response()).status).to.equal(101);
        expect(proxy.asked).to.be.empty;
      });
    });
  }

  it('can have a proxy that speaks TLS', async () => {
    const { cert, key } = authority.issue({ name: 'localhost' });
    const secure = createTlsServer({ cert, key }).listen(0, '127.0.0.1');
    await once(secure, 'listening');
    const { tunnelsThrough } = await import('../../../daemon/http/proxy/upstream-tunnel.js');
    secure.on('connect', (_req, socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
    const url = new URL(`https://localhost:${(secure.address() as AddressInfo).port}`);
    await new Promise<void>((resolve, reject) => {
      tunnelsThrough(url)({ host: NAME, port: 443 }, (error, socket) => {
        socket?.destroy();
        if (error) reject(error);
        else resolve();
      });
    });
    secure.close();
  });
});

describe('a proxy in the environment', () => {
  const warningsOf = (env: Record<string, string>) => loadSettings({ MANAGEMENT_TOKEN, ...env }).warnings;

  for (const name of ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY', 'https_proxy']) {
    it(`${name} is warned about, without its value, unless UPSTREAM_PROXY is set`, () => {
      const given = { [name]: 'http://user:secret@proxy.test:3128' };
      expect(warningsOf(given)).to.deep.equal([
        `${name} is not used: to reach the provider through a proxy, set UPSTREAM_PROXY`,
      ]);
      expect(warningsOf({ ...given, UPSTREAM_PROXY: 'http://proxy.test:3128' })).to.deep.equal([]);
      expect(warningsOf({ [name]: '' })).to.deep.equal([]);
      expect(loadPart({ env: given }, ['dispatcherService', 'dispatcherEndpoint']).warnings).to.deep.equal([
        `${name} is not used: the dispatcher connects to its service directly`,
      ]);
      expect(loadPart({ env: given }, ['logLevel']).warnings).to.deep.equal([]);
    });
  }
});
