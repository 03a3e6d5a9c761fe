import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { ask, head } from '../support/raw.js';
import { expectRefusal, LOOP_DETECTED } from '../support/refusals.js';
import { ScriptedUpstream } from './support/upstream.js';

/** A forwarder to an address that is set later, after other parts know the forwarder's own address. */
class Way {
  leadsTo = '';
  connections = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => {
    this.connections += 1;
    const { hostname, port } = new URL(this.leadsTo);
    const onward = connect(Number(port), hostname);
    for (const end of [socket, onward]) {
      this.#sockets.add(end);
      end
        .on('error', () => undefined)
        .on('close', () => {
          socket.destroy();
          onward.destroy();
        });
    }
    socket.pipe(onward).pipe(socket);
  });

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** A token whose project's key is `key`. */
async function tokenFor(daemon: TestDaemon, key?: string): Promise<{ id: string; token: string; projectId: string }> {
  const project = await daemon.createProject(key === undefined ? {} : { api_key: key });
  return { ...(await daemon.createToken(project.id)), projectId: project.id };
}

describe('B: an upstream that leads back to the daemon', () => {
  const way = new Way();
  const provider = new ScriptedUpstream();
  let daemons: TestDaemon[];
  let url: string;
  before(async () => {
    url = await way.open();
    await provider.listen();
  });
  beforeEach(async () => {
    daemons = [];
    way.connections = 0;
    await provider.begin();
  });
  afterEach(() => Promise.all(daemons.map((daemon) => daemon.stop())));
  after(async () => {
    way.close();
    await provider.stop();
  });
  async function daemonOn(upstream: string): Promise<TestDaemon> {
    const daemon = await startDaemon({ upstream, env: { UPSTREAM_CONNECTIONS: '20' } });
    daemons.push(daemon);
    return daemon;
  }
  const endsOf = ({ ended }: TestDaemon) => ended.map(({ status, outcome }) => ({ status, outcome }));

  for (const request of ['GET /v1/models', 'POST /v1/chat/completions'] as const) {
    it(`B11 a loop is detected when the request first returns, and costs one use: ${request}`, async () => {
      const daemon = await daemonOn(url);
      way.leadsTo = daemon.url;
      // The worst case: the key is a valid token for the next round.
      const { id, token, projectId } = await tokenFor(daemon);
      await daemon.manage('PATCH', `/manage/projects/${projectId}`, { api_key: token });
      expectRefusal(await ask(daemon.url, head(request, token, { 'Content-Length': '0' })), LOOP_DETECTED);
      expect(way.connections).to.equal(1);
      expect(endsOf(daemon)).to.deep.equal([
        { status: 508, outcome: 'refused' },
        { status: 508, outcome: 'upstream_error' },
      ]);
      expect((await daemon.token(id)).request_count).to.equal(1);
    });
  }

  it('B11 a loop through another instance is detected, whatever Via the client sends', async () => {
    const second = await daemonOn(url);
    const first = await daemonOn(second.url);
    way.leadsTo = first.url;
    const onSecond = await tokenFor(second);
    const onFirst = await tokenFor(first, onSecond.token);
    await second.manage('PATCH', `/manage/projects/${onSecond.projectId}`, { api_key: onFirst.token });
    const answer = await ask(
      first.url,
      head('GET /v1/models', onFirst.token, { 'CDN-Loop': ['a', 'b; v=1'], Connection: 'CDN-Loop' }),
    );
    expect(answer.status).to.equal(508);
    expect(endsOf(first)).to.deep.equal([
      { status: 508, outcome: 'refused' },
      { status: 508, outcome: 'upstream_error' },
    ]);
    expect(endsOf(second)).to.deep.equal([{ status: 508, outcome: 'upstream_error' }]);
  });

  it('B11 two instances in a row are not a loop', async () => {
    const second = await daemonOn(provider.url);
    const first = await daemonOn(second.url);
    const onSecond = await tokenFor(second);
    const onFirst = await tokenFor(first, onSecond.token);
    const answer = await ask(first.url, head('GET /v1/models', onFirst.token, { 'CDN-Loop': ['a', 'b; v=1'] }));
    expect(answer).to.include({ status: 200, text: '{"ok":true}' });
    const [marks] = (await provider.only()).all('cdn-loop');
    expect(marks).to.match(/^a, b; v=1, llmp-[0-9a-f]{8}, llmp-[0-9a-f]{8}$/);
  });
});
