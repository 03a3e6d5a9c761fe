import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { canary, secretsIn } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type ListeningDaemon, spawnDaemon } from '../support/process.js';
import { json, type Provider, startProvider } from '../support/provider.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';

const LLMP = join(import.meta.dirname, '../../cli/main.js');
const MANAGEMENT_TOKEN = canary('management');
const UPSTREAM_KEY = canary('upstream');
const CLIENT_SECRET = canary('client');
const DISPATCHER_KEY = canary('dispatcher');

/** Daemon, dispatcher, Redis and files as an operator runs them, with every kind of record turned on. */
describe(`I: everything switched on${WITHOUT_REDIS}`, function () {
  this.timeout(60_000);
  let dir: string;
  let provider: Provider;
  let redis: TestRedis;
  let daemon: ListeningDaemon;
  let dispatcher: ChildProcess;
  let dispatched = '';
  let token: WireTokenCreated;
  const answers: string[] = [];

  before(async function () {
    if (WITHOUT_REDIS) this.skip();
    dir = temporaryFolder();
    provider = await startProvider();
    redis = await TestRedis.start();
    const shared = { REDIS_ADDR: redis.address };
    daemon = await spawnDaemon({
      ...shared,
      MANAGEMENT_TOKEN,
      DATABASE_URL: join(dir, 'llmp.db'),
      UPSTREAM_BASE_URL: provider.url,
      AUDIT_LOG_FILE: join(dir, 'audit.log'),
      HTTP_CACHE_ENABLED: 'true',
      ENABLE_METRICS: 'true',
      OBSERVABILITY_CAPTURE_BODIES: 'true',
      GLOBAL_RATE_LIMIT: '10000',
      IP_RATE_LIMIT: '10000',
      SHUTDOWN_DELAY: '0',
    });
    writeFileSync(join(dir, 'dispatcher-key'), DISPATCHER_KEY, { mode: 0o600 });
    dispatcher = spawn(process.execPath, ['--', LLMP, 'dispatcher'], {
      env: {
        ...shared,
        PATH: process.env.PATH,
        DISPATCHER_SERVICE: 'file',
        DISPATCHER_ENDPOINT: join(dir, 'events.jsonl'),
        DISPATCHER_API_KEY_FILE: join(dir, 'dispatcher-key'),
        DISPATCHER_LISTEN_ADDR: '127.0.0.1:0',
        LOG_LEVEL: 'debug',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const output of [dispatcher.stdout, dispatcher.stderr]) {
      output?.on('data', (piece: Buffer) => (dispatched += piece.toString()));
    }
    await play();
  });

  after(async () => {
    for (const child of [dispatcher, daemon.child]) {
      if (child.exitCode !== null) continue;
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    await redis.stop();
    await provider.stop();
  });

  const read = (name: string) => readFileSync(join(dir, name), 'latin1');
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(daemon.url + path, init);
    const answer = await response.text();
    answers.push(answer);
    return { status: response.status, answer };
  };
  const manage = async <T>(method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const { answer } = await ask(path, {
      method,
      headers: { authorization: `Bearer ${MANAGEMENT_TOKEN}`, 'content-type': 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    return JSON.parse(answer) as T;
  };

  /** Puts every secret wherever a client, an operator or a provider can put one. */
  async function play(): Promise<void> {
    const project = await manage<WireProject>('POST', '/manage/projects', { name: 'web', api_key: UPSTREAM_KEY });
    token = await manage<WireTokenCreated>('POST', '/manage/tokens', { project_id: project.id });
    answers.pop(); // The response that displays it.
    const secret = token.token;
    const credentials = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const careless = { ...credentials, cookie: `session=${CLIENT_SECRET}`, 'x-api-key': CLIENT_SECRET };
    const chat = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: `my key is ${secret}` }] });
    const post = { method: 'POST', headers: careless, body: chat };
    provider.answer = ({ headers }, res) => {
      const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
      json(res, 200, { model: 'gpt-4o', you_said: `key ${headers.authorization ?? ''}`, usage });
    };
    await fetch(`${daemon.url}/v1/chat/completions?api_key=${secret}`, post);
    await fetch(`${daemon.url}/v1/models`, { headers: careless });
    await fetch(`${daemon.url}/v1/models`, { headers: careless });
    provider.answer = (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const content of ['secret ', UPSTREAM_KEY.slice(0, 20), UPSTREAM_KEY.slice(20)]) {
        res.write(`data: ${JSON.stringify({ model: 'gpt-4o', choices: [{ index: 0, delta: { content } }] })}\n\n`);
      }
      res.end('data: [DONE]\n\n');
    };
    await (await fetch(`${daemon.url}/v1/chat/completions`, post)).text();
    provider.answer = (_req, res) => {
      json(res, 401, { error: { message: `Incorrect API key provided: ${UPSTREAM_KEY}` } });
    };
    await ask('/v1/chat/completions', post);
    provider.answer = undefined;
    await fetch(`${daemon.url}/v1/${secret}`, { headers: credentials }); // A provider may repeat it.
    await ask('/v1/models', { headers: { authorization: `Bearer ${CLIENT_SECRET}` } });
    await ask('/manage/projects', { headers: { authorization: `Bearer ${secret}` } });
    await manage('POST', '/manage/tokens/lookup', { token: secret });
    const cached = { method: 'GET', url: `/v1/models?key=${secret}` };
    await manage('POST', '/manage/cache/purge', cached);
    await manage('PATCH', `/manage/projects/${project.id}`, { api_key: UPSTREAM_KEY });
    const reason = { 'x-audit-reason': encodeURIComponent(`leaked: ${secret}`) };
    await manage('DELETE', `/manage/tokens/${token.id}`, undefined, reason);
    await ask('/v1/models', { headers: credentials });
  }

  /** Everything in Redis, as text. */
  async function inRedis(): Promise<string> {
    const { client } = redis;
    const found: string[] = [];
    for (const key of await client.keys('*')) {
      const asLatin1 = (value: unknown): string =>
        Buffer.isBuffer(value)
          ? value.toString('latin1')
          : Array.isArray(value)
            ? value.map(asLatin1).join('\n')
            : String(value);
      const [command, ...rest] = {
        string: ['GET', key],
        hash: ['HGETALL', key],
        zset: ['ZRANGE', key, '0', '-1'],
        set: ['SMEMBERS', key],
        list: ['LRANGE', key, '0', '-1'],
        stream: ['XRANGE', key, '-', '+'],
      }[await client.type(key)] ?? ['TYPE', key];
      found.push(key, asLatin1(await client.callBuffer(command ?? '', ...rest)));
    }
    return found.join('\n');
  }

  const expectClean = (what: string, text: string, holds: string) => {
    expect(text, `${what} contains its data`).to.include(holds);
    expect(secretsIn(text), `secrets in ${what}`).to.deep.equal([]);
  };

  it('I01 I13 events in Redis, with bodies, contain no secret, nor does anything else there', async () => {
    await eventually('the last event is published', async () =>
      (await inRedis()).includes('"status":401,"code":"unauthorized"'),
    );
    const all = await inRedis();
    expectClean('Redis', all, 'my key is');
    expectClean('Redis', all, token.id);
  });

  it('I01 what the dispatcher delivers and prints contains no secret', async () => {
    const path = 'events.jsonl';
    await eventually(
      'the events are delivered',
      () => readdirSync(dir).includes(path) && read(path).includes('token.revoked'),
    );
    expectClean('events at the backend', read(path), 'my key is');
    await eventually('it printed something', () => dispatched !== '');
    expect(secretsIn(dispatched)).to.deep.equal([]);
  });

  it('I01 neither audit file contains a secret', async () => {
    await eventually('the last use is written', () => read('audit-use.log').includes('"unauthorized"'));
    expectClean('the audit of uses', read('audit-use.log'), token.id);
    expectClean('the audit of changes', read('audit.log'), 'leaked: ');
  });

  it('I01 neither the database nor its journal contains a secret', async () => {
    await eventually('the usage is written', () => /gpt-4o/.test(read('llmp.db-wal') + read('llmp.db')));
    for (const name of ['llmp.db', 'llmp.db-wal', 'llmp.db-shm']) expect(secretsIn(read(name)), name).to.deep.equal([]);
  });

  it('I01 I14 no response of the management API, metric or log line contains a secret', async () => {
    for (const path of [
      '/manage/audit',
      '/manage/usage?by=token,model',
      '/manage/status',
      '/manage/cache',
      '/manage/tokens',
    ]) {
      await manage('GET', path);
    }
    const { answer: metrics } = await ask('/metrics');
    for (const told of [token.id, token.project_id, token.obfuscated, '/v1/', '127.0.0.1']) {
      expect(metrics, 'metrics').not.to.include(told);
    }
    expectClean('answers', answers.join('\n'), 'llmp_requests_total');
    expectClean('the log', daemon.logged.join('\n') + daemon.printed.stderr, 'request ended');
  });

  it('I01 no process has a secret on its command line', () => {
    const lines = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
        } catch {
          return ''; // It has ended meanwhile.
        }
      });
    const ours = lines.filter((line) => line.includes(LLMP));
    expect(ours).to.have.length.of.at.least(2);
    expect(secretsIn(ours.join('\n'))).to.deep.equal([]);
  });
});
