import { expect } from 'chai';
import { once } from 'node:events';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { createServer as createNetServer } from 'node:net';
import { join } from 'node:path';
import { loadSettings, SettingsError } from '../../../config/settings.js';
import type { WireProject } from '../../../daemon/api/contract.js';
import { daemonForSuite, MANAGEMENT_TOKEN, startDaemon, temporaryFolder } from '../../support/daemon.js';
import { perSuite } from '../../support/per-test.js';
import { startProvider } from '../../support/provider.js';
import { head, RawClient } from '../../support/raw.js';

const AUTHORIZED = { authorization: `Bearer ${MANAGEMENT_TOKEN}` };

describe('with MANAGEMENT_LISTEN_ADDR', () => {
  const provider = perSuite(startProvider);
  const daemon = daemonForSuite(() => ({ upstream: provider.url, env: { MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0' } }));
  let project: WireProject;

  before(async () => {
    project = await daemon.createProject();
  });

  it('/manage is served there', async () => {
    expect(daemon.managementUrl).not.to.equal(daemon.url);
    expect((await daemon.manage('GET', `/manage/projects/${project.id}`)).body).to.deep.equal(project);
  });

  for (const path of ['/manage', '/manage/projects', '/manage/openapi.json', '/manage/nothing']) {
    it(`${path} is not found on the public listener, with or without the management token`, async () => {
      for (const headers of [AUTHORIZED, {}]) {
        const answer = await fetch(daemon.url + path, { headers });
        expect(answer.status).to.equal(404);
        expect(answer.headers.get('content-type')).to.equal('application/json; charset=utf-8');
        expect(await answer.json()).to.include({ error: 'no such path', code: 'not_found' });
      }
    });
  }

  it('/v1 is served on the public listener only', async () => {
    const { token } = await daemon.createToken(project.id);
    expect((await daemon.call(token)).status).to.equal(200);
    for (const path of ['/v1', '/v1/models', '/v1?x=1']) {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const answer = await fetch(daemon.managementUrl + path, { method: 'POST', headers, body: '{}' });
      expect(answer.status).to.equal(404);
      expect(await answer.json()).to.include({ code: 'not_found' });
      expect(answer.headers.get('x-proxy-cache')).to.equal(null);
    }
    expect(provider.received).to.have.length(1);
  });

  it('the health endpoints are served on both, since a monitor may reach only one', async () => {
    for (const url of [daemon.url, daemon.managementUrl]) {
      for (const path of ['/live', '/ready', '/health']) expect((await fetch(url + path)).status).to.equal(200);
    }
  });

  it('unparsable requests are refused there in JSON too', async () => {
    const client = await RawClient.to(daemon.managementUrl);
    client.send('GET nothing\r\n\r\n');
    expect((await client.response()).status).to.equal(400);
    client.destroy();
  });

  describe('on draining', () => {
    it('/ready reports it on both; then both listeners close', async () => {
      const env = { MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0', SHUTDOWN_DELAY: '10s' };
      const own = await startDaemon({ env });
      const stopped = own.daemon.stop();
      for (const url of [own.url, own.managementUrl]) {
        const ready = await fetch(`${url}/ready`);
        expect({ status: ready.status, connection: ready.headers.get('connection') }).to.deep.equal({
          status: 503,
          connection: 'close',
        });
      }
      own.clock.advance(10_000);
      await own.stop();
      await stopped;
      expect([own.daemon.server.listening, own.daemon.managementServer?.listening]).to.deep.equal([false, false]);
      for (const url of [own.url, own.managementUrl]) {
        expect(await fetch(url).catch((error: unknown) => error)).to.be.an('error');
      }
    });

    it('an idle connection on either listener does not delay it', async () => {
      const own = await startDaemon({ env: { MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0', SHUTDOWN_GRACE: '1h' } });
      const clients = [];
      for (const url of [own.url, own.managementUrl]) {
        const client = await RawClient.to(url);
        clients.push(client);
        client.send(head('GET /live', null));
        expect((await client.response()).status).to.equal(200);
      }
      await own.daemon.stop();
      for (const client of clients) client.destroy();
    });
  });

  describe('as a unix socket', () => {
    const ask = (socketPath: string, path: string) =>
      new Promise<number>((resolve, reject) => {
        request({ socketPath, path, headers: { host: 'llmp', ...AUTHORIZED } }, (response) => {
          response.resume().on('end', () => {
            resolve(response.statusCode ?? 0);
          });
        })
          .on('error', reject)
          .end();
      });

    it('/manage is served there, for owner and group, and the socket is removed when the daemon stops', async () => {
      const path = join(temporaryFolder(), 'manage.sock');
      const own = await startDaemon({ env: { MANAGEMENT_LISTEN_ADDR: `unix:${path}` } });
      expect(await ask(path, '/manage/projects')).to.equal(200);
      expect(await ask(path, '/v1/models')).to.equal(404);
      expect((await fetch(`${own.url}/manage/projects`, { headers: AUTHORIZED })).status).to.equal(404);
      expect(statSync(path).mode & 0o777).to.equal(0o660);
      await own.stop();
      expect(existsSync(path)).to.equal(false);
    });

    const OCCUPIED: Record<string, (path: string) => void> = {
      'a file': (path) => {
        writeFileSync(path, 'precious');
      },
      'a link to a file': (path) => {
        writeFileSync(`${path}.txt`, 'precious');
        symlinkSync(`${path}.txt`, path);
      },
      'a folder': (path) => {
        mkdirSync(path);
      },
      'a link to nothing': (path) => {
        symlinkSync(`${path}.none`, path);
      },
    };
    for (const name of ['LISTEN_ADDR', 'MANAGEMENT_LISTEN_ADDR']) {
      for (const [what, occupy] of Object.entries(OCCUPIED)) {
        it(`${what} at ${name} is not touched, and the daemon does not start`, async () => {
          const path = join(temporaryFolder(), 'manage.sock');
          occupy(path);
          const before = lstatSync(path);
          const error = await startDaemon({ env: { [name]: `unix:${path}` } }).catch((failure: unknown) => failure);
          expect(error).to.include({ code: 'EADDRINUSE' });
          expect((error as Error).message).to.include(`${path} exists and is not a socket`);
          expect(lstatSync(path).ino).to.equal(before.ino);
          if (what === 'a file') expect(readFileSync(path, 'utf8')).to.equal('precious');
        });
      }
    }

    it('a socket without a listening process is replaced, one with a listening process is not', async () => {
      const path = join(temporaryFolder(), 'manage.sock');
      // Node removes the socket of a server that it closes; a second hard link to it remains.
      const dead = createNetServer().listen(path);
      await once(dead, 'listening');
      linkSync(path, `${path}.kept`);
      const startedThere = () => startDaemon({ env: { MANAGEMENT_LISTEN_ADDR: `unix:${path}` } });
      expect(await startedThere().catch((failure: unknown) => failure)).to.include({ code: 'EADDRINUSE' });
      expect(lstatSync(path).isSocket()).to.equal(true);
      dead.close();
      await once(dead, 'close');
      renameSync(`${path}.kept`, path);
      const own = await startedThere();
      expect(await ask(path, '/manage/projects')).to.equal(200);
      await own.stop();
    });

    it('no listener stays open when the other address is in use', async () => {
      const path = join(temporaryFolder(), 'manage.sock');
      const env = { MANAGEMENT_LISTEN_ADDR: `unix:${path}`, LISTEN_ADDR: new URL(daemon.url).host };
      const error = await startDaemon({ env }).catch((failure: unknown) => failure);
      expect(error).to.include({ code: 'EADDRINUSE' });
      expect(await ask(path, '/live').catch((failure: unknown) => failure)).to.be.an('error');
    });
  });

  describe('the address', () => {
    const load = (listen: string, management?: string) =>
      loadSettings({
        MANAGEMENT_TOKEN,
        LISTEN_ADDR: listen,
        ...(management !== undefined && { MANAGEMENT_LISTEN_ADDR: management }),
      });

    it('is unset by default', () => {
      expect(load(':8080').settings.managementListenAddress).to.equal(undefined);
    });

    for (const [listen, management] of [
      ['127.0.0.1:8080', '127.0.0.1:8080'],
      [':8080', '127.0.0.1:8080'],
      ['127.0.0.1:8080', ':8080'],
      ['0.0.0.0:8080', '10.0.0.1:8080'],
      ['[::1]:8080', '[::]:8080'],
      ['unix:/run/llmp.sock', 'unix:/run/llmp.sock'],
      ['unix:/run/llmp.sock', 'unix:/run/../run/llmp.sock'],
    ] as const) {
      it(`${management} is rejected with LISTEN_ADDR=${listen}`, () => {
        expect(() => load(listen, management))
          .to.throw(SettingsError)
          .with.property('problems')
          .that.deep.equals(['MANAGEMENT_LISTEN_ADDR must differ from LISTEN_ADDR']);
      });
    }

    for (const [listen, management] of [
      ['127.0.0.1:8080', '127.0.0.1:8081'],
      ['127.0.0.1:8080', '127.0.0.2:8080'],
      ['127.0.0.1:0', '127.0.0.1:0'],
      ['unix:/run/llmp.sock', 'unix:/run/manage.sock'],
      [':8080', 'unix:/run/manage.sock'],
    ] as const) {
      it(`${management} is accepted with LISTEN_ADDR=${listen}`, () => {
        expect(load(listen, management).settings.managementListenAddress).to.be.an('object');
      });
    }
  });
});
