import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from 'chai';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { type DispatcherProcess, launchDispatcher } from '../support/dispatcher-process.js';
import { DEAD, GROUP, idsOf, publish, STREAM } from '../support/events.js';
import { eventually } from '../support/eventually.js';
import { Receiver } from '../support/receiver.js';
import { freePort } from '../support/ports.js';
import { perTest } from '../support/per-test.js';
import { redisPerTest, WITHOUT_REDIS } from '../support/redis.js';

const SOMEWHERE = { REDIS_ADDR: '127.0.0.1:1' };

describe('llmp dispatcher does not start', function () {
  this.timeout(30_000);
  it('with an invalid setting: exits with 78 and names it', async () => {
    for (const options of [[], ['--check']]) {
      const { exit, printed } = launchDispatcher({}, ...options);
      expect(await exit).to.equal(78);
      expect(printed.stderr).to.include('REDIS_ADDR is required');
    }
  });

  it('on an address that is in use: exits with 69', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const { exit } = launchDispatcher({ ...SOMEWHERE, DISPATCHER_LISTEN_ADDR: `127.0.0.1:${port}` });
    expect(await exit).to.equal(69);
    server.close();
  });
});

describe(`llmp dispatcher${WITHOUT_REDIS}`, function () {
  this.timeout(60_000);
  const running: DispatcherProcess[] = [];
  const redis = redisPerTest(() => Promise.all(running.splice(0).map((it) => it.kill())));
  const receiver = perTest(() => Receiver.start());

  function start(env: Record<string, string> = {}, ...options: string[]): DispatcherProcess {
    const webhook = { DISPATCHER_SERVICE: 'webhook', DISPATCHER_ENDPOINT: receiver.url };
    const it = launchDispatcher({ REDIS_ADDR: redis.address, ...webhook, ...env }, ...options);
    running.push(it);
    return it;
  }
  const pending = async () => (await redis.client.xpending(STREAM, GROUP))[0] as number;
  const arrived = (ids: readonly string[]) => eventually('all events', () => receiver.hasAll(ids), 30_000);

  it('L11 on SIGTERM finishes and acknowledges deliveries in flight, reads no more, and exits with 0', async () => {
    let answerNow: () => void = () => undefined;
    const slow = new Promise<void>((resolve) => (answerNow = resolve));
    receiver.answer = () => slow.then(() => ({}));
    await publish(redis.client, idsOf('first', 100));
    const { child, exit, printed } = start();
    await eventually('a delivery in flight', () => receiver.posts.length > 0, 30_000);
    const sent = receiver.posts.flatMap(({ ids }) => ids);
    child.kill('SIGTERM');
    await eventually('draining', () => printed.stdout.includes('draining'));
    // A blocking read that was started before ends a moment later.
    await eventually('no blocking read', async () =>
      (await redis.client.info('clients')).includes('blocked_clients:0'),
    );
    await publish(redis.client, ['later']);
    answerNow();
    expect(await exit).to.equal(0);
    expect(receiver.posts).to.have.length(1);
    expect([...receiver.accepted.keys()]).to.have.members(sent);
    expect(await pending()).to.equal(0);
  });

  it('L11 on SIGTERM releases undelivered events to other dispatchers after SHUTDOWN_GRACE', async () => {
    receiver.answer = () => new Promise(() => undefined);
    await publish(redis.client, idsOf('event', 10));
    const { child, exit } = start({ SHUTDOWN_GRACE: '200ms' });
    await eventually('a delivery in flight', () => receiver.posts.length > 0, 30_000);
    child.kill('SIGTERM');
    expect(await exit).to.equal(0);
    expect(await pending()).to.equal(10);
    receiver.answer = () => ({});
    start({ DISPATCHER_CLAIM_IDLE: '1h' });
    await arrived(idsOf('event', 10));
  });

  it('L11 exits at once on a second signal', async () => {
    receiver.answer = () => new Promise(() => undefined);
    await publish(redis.client, ['event']);
    const { child, exit, printed } = start();
    await eventually('a delivery in flight', () => receiver.posts.length > 0, 30_000);
    child.kill('SIGTERM');
    await eventually('draining', () => printed.stdout.includes('draining'));
    await new Promise((resolve) => setTimeout(resolve, 300)); // A second signal within 200 ms counts as the same key press.
    child.kill('SIGTERM');
    expect(await exit).to.equal(143);
  });

  it('serves probes and metrics', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    start({ DISPATCHER_LISTEN_ADDR: url.slice('http://'.length) });
    await publish(redis.client, idsOf('event', 3));
    await arrived(idsOf('event', 3));
    expect(await (await fetch(`${url}/live`)).json()).to.deep.equal({ status: 'ok' });
    await eventually('ready', async () => (await fetch(`${url}/ready`)).status === 200);
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).to.match(/^llmp_dispatcher_delivered_total 3$/m);
    for (const name of ['lag_events', 'retried_total', 'dead_total', 'paused', 'trimmed_total{state="unread"}']) {
      expect(text).to.include(`\nllmp_dispatcher_${name} `);
    }
    expect(text.split('\n').filter((line) => line.startsWith('llmp_')).length).to.be.below(40);
    expect((await fetch(`${url}/elsewhere`)).status).to.equal(404);
    expect((await fetch(`${url}/live`, { method: 'POST' })).status).to.equal(405);
    await redis.kill();
    await eventually('not ready', async () => (await fetch(`${url}/ready`)).status === 503);
    expect(await (await fetch(`${url}/ready`)).json()).to.deep.include({ missing: ['redis'] });
  });

  it('reads its settings from a file, and reopens its events file on SIGHUP', async () => {
    const dir = temporaryFolder();
    const [events, envFile] = [join(dir, 'events.jsonl'), join(dir, 'llmp.env')];
    writeFileSync(
      envFile,
      `REDIS_ADDR=${redis.address}\nDISPATCHER_ENDPOINT=${events}\nDISPATCHER_LISTEN_ADDR=127.0.0.1:0\n`,
    );
    const it = launchDispatcher({}, '--env-file', envFile);
    running.push(it);
    const has = (path: string, id: string) => () =>
      existsSync(path) && readFileSync(path, 'utf8').includes(`"id":"${id}"`);
    await publish(redis.client, ['one']);
    await eventually('the first event in the file', has(events, 'one'), 30_000);
    renameSync(events, `${events}.1`);
    it.child.kill('SIGHUP');
    await eventually('the file is reopened', () => it.printed.stdout.includes('files reopened'));
    await publish(redis.client, ['two']);
    await eventually('the second event in the new file', has(events, 'two'));
    expect(has(`${events}.1`, 'two')()).to.equal(false);
  });

  describe('--once', () => {
    it('delivers all events, including those that other dispatchers left, and exits with 0', async () => {
      const ids = idsOf('event', 250);
      await publish(redis.client, ids);
      await redis.client.xgroup('CREATE', STREAM, GROUP, '0');
      await redis.client.xreadgroup('GROUP', GROUP, 'died', 'COUNT', 20, 'STREAMS', STREAM, '>');
      await new Promise((resolve) => setTimeout(resolve, 50));
      const { exit } = start({ DISPATCHER_CLAIM_IDLE: '20ms' }, '--once');
      expect(await exit).to.equal(0);
      expect([...receiver.accepted.keys()]).to.have.members(ids);
      expect(await pending()).to.equal(0);
      expect(await start({}, '--once').exit, 'with nothing to do').to.equal(0);
    });

    it('exits with 69 if the backend accepts nothing for SHUTDOWN_GRACE, and with 77 if it refuses the key', async () => {
      await publish(redis.client, idsOf('event', 3));
      receiver.answer = () => ({ status: 503 });
      expect(await start({ SHUTDOWN_GRACE: '300ms' }, '--once').exit).to.equal(69);
      receiver.answer = () => ({ status: 401 });
      expect(await start({ DISPATCHER_API_KEY: canary('password') }, '--once').exit).to.equal(77);
      receiver.answer = () => ({});
      expect(await start({}, '--once').exit).to.equal(0);
      expect([...receiver.accepted.keys()]).to.have.members(idsOf('event', 3));
    });
  });

  it('--replay-dead moves dead letters back to the stream unchanged, and exits', async () => {
    receiver.answer = ({ ids }) => ({ status: ids.some((id) => id.startsWith('bad')) ? 422 : 200 });
    await publish(redis.client, ['good', 'bad-1', 'bad-2']);
    expect(await start({}, '--once').exit).to.equal(0);
    expect(await redis.client.xlen(DEAD)).to.equal(2);
    const replay = start({}, '--replay-dead');
    expect(await replay.exit).to.equal(0);
    expect(replay.printed.stdout).to.include('"count":2');
    expect(await redis.client.xlen(DEAD)).to.equal(0);
    receiver.answer = () => ({});
    expect(await start({}, '--once').exit).to.equal(0);
    expect(receiver.hasAll(['good', 'bad-1', 'bad-2'])).to.equal(true);
    expect(receiver.accepted.get('good')).to.equal(1);
    const entries = (await redis.client.xrange(STREAM, '-', '+')).slice(3);
    expect(entries.map(([, fields]) => fields.length)).to.deep.equal([2, 2]);
  });
});
