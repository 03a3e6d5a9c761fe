/** Two instances behind nginx and behind HAProxy, with the shipped example configurations: forwarding, and a rolling restart under load. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Agent, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Fleet, type Member } from '../support/fleet.js';
import { type Front, FRONTS } from '../support/fronts.js';
import { ask, head } from '../support/raw.js';
import { Realtime } from '../support/realtime.js';

const ROUNDS = 2;
const CLIENTS = 8;
const kind: ServerKind = WITHOUT.postgres ? 'mysql' : 'postgres';

for (const { name, without, instances } of FRONTS) {
  describe(`M: two instances behind ${name}${without || WITHOUT[kind]}`, function () {
    this.timeout(120_000);
    let server: DatabaseServer;
    let fleet: Fleet;
    let front: Front;
    let project: WireProject;
    let token: WireTokenCreated;
    /** The folders of their audit files. */
    let folders: string[];

    before(async function () {
      if (without || WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
      folders = [temporaryFolder(), temporaryFolder()];
      const { env, start } = await instances();
      fleet = await Fleet.start(server, {
        count: 2,
        env: { TRUSTED_PROXIES: '127.0.0.1', SHUTDOWN_GRACE: '10s', ENABLE_METRICS: 'true' },
        envOf: (index) => ({ ...env[index], AUDIT_LOG_FILE: join(folders[index] ?? '', 'audit.log') }),
      });
      front = await start();
      project = await fleet.createProject();
    });
    beforeEach(async () => {
      token = await fleet.createToken(project.id, 0);
    });
    after(async () => {
      if (without || WITHOUT[kind]) return;
      await front.stop();
      await fleet.stop();
    });

    /** Sends a short request. @returns its status, or why it failed. */
    const short = (method: 'GET' | 'POST', agent: Agent | false): Promise<number | string> =>
      new Promise((resolve) => {
        const body = method === 'POST' ? JSON.stringify({ model: 'm', n: 1 }) : '';
        const headers = {
          authorization: `Bearer ${token.token}`,
          ...(body && { 'content-type': 'application/json', 'content-length': String(body.length) }),
        };
        const req = request(`${front.url}/v1/of/${token.id}`, { method, agent, headers }, (res) => {
          res.on('error', (error) => {
            resolve(String(error));
          });
          res.on('end', () => {
            resolve(res.complete ? (res.statusCode ?? 0) : 'cut');
          });
          res.resume();
        });
        req.on('error', (error) => {
          resolve(String(error));
        });
        req.end(body);
      });

    /** The lines in the file of uses of the instance with this index. */
    const linesOf = async (index: number) =>
      (await readFile(join(folders[index] ?? '', 'audit-use.log'), 'utf8')).split('\n').filter(Boolean);
    const restart = async (member: Member) => {
      await member.stop();
      await member.begin();
      await eventually('it is ready', async () => (await fetch(`${member.url}/ready`)).status === 200);
    };

    it('M01 M03 a rolling restart under load fails no short request and sends none twice', async () => {
      const state = { isOver: false };
      const answers = new Map<number | string, number>();
      const kept = new Agent({ keepAlive: true });
      const clients = Array.from({ length: CLIENTS }, async (_, index) => {
        for (let n = 0; !state.isOver; n++) {
          const answer = await short((n + index) % 2 ? 'GET' : 'POST', index < CLIENTS / 2 ? kept : false);
          answers.set(answer, (answers.get(answer) ?? 0) + 1);
        }
      });
      await eventually('there is load', () => fleet.reached(token.id) > 100);
      for (let round = 0; round < ROUNDS; round++)
        for (const [index, member] of fleet.members.entries()) {
          await restart(member);
          await eventually('the proxy uses it again', () => front.sendsTo(index));
        }
      state.isOver = true;
      await Promise.all(clients);
      kept.destroy();
      const count = answers.get(200) ?? 0;
      expect([...answers.keys()], JSON.stringify([...answers]) + front.complaints).to.deep.equal([200]);
      expect(count).to.be.above(500);
      expect(fleet.reached(token.id), 'at the provider').to.equal(count);
      await eventually('all are counted', async () => (await fleet.counted(token.id)).requestCount === count);
    });

    it('streams, parts of uploads and WebSockets are forwarded as they arrive', async () => {
      const { provider } = fleet;
      const shipped = provider.answer;
      let goOn = (): void => undefined;
      provider.answer = (_req, res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n');
        goOn = () => res.end('data: last\n\n');
      };
      const stream = await fetch(`${front.url}/v1/stream`, { headers: { authorization: `Bearer ${token.token}` } });
      const reader = stream.body!.getReader();
      expect(Buffer.from((await reader.read()).value ?? '').toString()).to.equal('data: first\n\n');
      goOn();
      expect(Buffer.from((await reader.read()).value ?? '').toString()).to.equal('data: last\n\n');
      expect((await reader.read()).done).to.equal(true);
      provider.answer = shipped;

      let reached = 0;
      const { onHead } = provider;
      provider.onHead = () => (reached += 1);
      const upload = request(`${front.url}/v1/upload`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token.token}` },
      });
      upload.write('the first.');
      await eventually('the provider has its beginning', () => reached === 1);
      provider.onHead = onHead;
      upload.end('the second');
      const [answer] = (await once(upload, 'response')) as [IncomingMessage];
      expect(answer.statusCode).to.equal(200);
      answer.resume();

      const realtime = new Realtime(provider);
      const { client, socket } = await realtime.begin(front.url, token.token);
      const heard = once(client, 'message');
      socket.send('hello');
      expect(String((await heard)[0])).to.equal('hello');
      client.close();
      await once(client, 'close');
    });

    it("the daemon sees the client's real address, whatever the client claims, and refuses bodies that are too large itself", async () => {
      const from = (fields: Record<string, string>, method = 'GET') =>
        ask(front.url, head(`${method} /v1/models`, token.token, { 'X-Forwarded-For': '203.0.113.9', ...fields }));
      expect((await from({})).status).to.equal(200);
      const uses = async () =>
        (await Promise.all(fleet.members.map((_, index) => linesOf(index))))
          .flat()
          .filter((line) => line.includes(token.id));
      await eventually('the use is recorded', async () => (await uses()).length === 1);
      expect((await uses())[0])
        .to.include('"127.0.0.1"')
        .and.not.to.include('203.0.113.9');
      expect((await from({ 'X-Long': 'x'.repeat(10_000) })).status).to.equal(200);
      const long = await from({ 'X-Long': 'x'.repeat(40_000) });
      expect({ status: long.status, code: long.json.code }).to.deep.equal({ status: 431, code: 'headers_too_large' });
      const large = await from({ 'Content-Length': '50000001' }, 'POST');
      expect({ status: large.status, code: large.json.code }).to.deep.equal({ status: 413, code: 'body_too_large' });
    });

    it('clients reach every default prefix, /token/self and /token/exchange, and nothing beside them', async () => {
      for (const target of [
        '/v1/models',
        '/v1beta/models',
        '/openai/models',
        '/ws/live',
        '/token/self',
        '/token/self?a=b',
      ]) {
        const answer = await ask(front.url, head(`GET ${target}`, null));
        expect([answer.status, answer.json.code], target).to.deep.equal([401, 'unauthorized']);
      }
      const exchange = await ask(front.url, head('GET /token/exchange', null));
      expect([exchange.status, exchange.json.code]).to.deep.equal([405, 'method_not_allowed']);
      for (const target of [
        '/token',
        '/token/',
        '/token/exchange/',
        '/token/self/',
        '/token/selfish',
        '/a/token/self',
        '/openaix/models',
      ]) {
        expect((await ask(front.url, head(`GET ${target}`, null))).json.code, target).to.equal('not_found');
      }
    });

    it('H17 paths for operators are not reachable through the proxy', async () => {
      const bearer = { Authorization: `Bearer ${MANAGEMENT_TOKEN}` };
      for (const target of [
        '/manage/projects',
        '/metrics',
        '/ready',
        '/v1/../manage/projects',
        '/v1/%2e%2e/manage/projects',
        '/manage/projects/..%2f..%2fv1/',
        '//manage/projects',
        '/token/self/../../manage/projects',
        '/token/self/%2e%2e/%2e%2e/manage/projects',
        '/openai/../manage/projects',
      ]) {
        const answer = await ask(front.url, head(`GET ${target}`, null, bearer));
        // For a path with dots the daemon responds 400 itself if the proxy does not resolve it.
        expect(answer.status, target).to.be.oneOf([400, 404]);
        expect(answer.text, target).not.to.include('fleet');
      }
    });
  });
}
