import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import {
  type NewConnection,
  RedisUnavailable,
  RedisConnection,
  RedisErrorReply,
  type Script,
} from '../../daemon/store/redis/connection.js';
import { canary } from '../support/canaries.js';
import { TestClock } from '../support/clock.js';
import { recordingLog } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { perTest } from '../support/per-test.js';
import { redisPerTest, Relay, TestRedis, WITHOUT_REDIS } from '../support/redis.js';

const ECHO: Script = { name: 'testEcho', lua: 'return ARGV[1]' };
const LONGEST_DELAY_MS = 2_000;

interface Subject {
  connection: RedisConnection;
  clock: TestClock;
  logged: string[];
}

describe(`the connection to Redis${WITHOUT_REDIS}`, function () {
  const opened: RedisConnection[] = [];
  const redis = redisPerTest(() => {
    for (const connection of opened.splice(0)) connection.close();
  });
  const relay = perTest(() => Relay.to(redis.port));

  function subject(
    more: Parameters<TestRedis['at']>[0] = {},
    arrived?: (arrival: NewConnection) => Promise<void>,
    commandMs?: number,
  ): Subject {
    const clock = new TestClock();
    const { logged, log } = recordingLog();
    const address = redis.at({ port: relay.port, ...more });
    const connection = new RedisConnection({ address, clock, log, ...(commandMs !== undefined && { commandMs }) });
    if (arrived) connection.onConnect(arrived);
    opened.push(connection);
    return { connection, clock, logged };
  }

  /** A ready connection; a busy machine may need a second attempt. */
  async function open(...given: Parameters<typeof subject>): Promise<Subject> {
    const it = subject(...given);
    await it.connection.open();
    await comesBack(it);
    return it;
  }

  /** For tests of what Redis replies: a busy machine may take longer than a command may. */
  const openForReplies = (more: Parameters<TestRedis['at']>[0] = {}) => open(more, undefined, 5_000);

  async function comesBack({ connection, clock }: Subject): Promise<void> {
    await eventually('the breaker closes', () => {
      if (!connection.isReady) clock.advance(100);
      return connection.isReady;
    });
  }

  const echo = async ({ connection }: Subject, word = 'here') => String(await connection.run(ECHO, [word]));
  const failure = async (of: Promise<unknown>) =>
    of.then(
      () => null,
      (error: unknown) => error,
    );
  const disconnects = ({ connection }: Subject) => eventually('the breaker opens', () => connection.isDisconnected);

  /** Sends commands until the breaker opens. */
  async function noticed(it: Subject): Promise<void> {
    await eventually('the breaker opens', async () => {
      await failure(echo(it));
      return it.connection.isDisconnected;
    });
  }

  const lines = ({ logged }: Subject, message: string) =>
    logged.filter((line) => line.includes(`"message":"${message}"`));

  it('runs scripts, also after Redis has lost them', async () => {
    const it = await openForReplies();
    expect(await echo(it, 'one')).to.equal('one');
    await redis.client.script('FLUSH');
    expect(await echo(it, 'two')).to.equal('two');
  });

  it('uses the configured database', async () => {
    const it = await openForReplies({ database: 3 });
    await it.connection.run({ name: 'testSet', lua: "return redis.call('SET', 'which', 'third')" }, []);
    expect(await redis.client.get('which')).to.equal(null);
    await redis.client.select(3);
    expect(await redis.client.get('which')).to.equal('third');
  });

  it('is not used if its database does not exist', async () => {
    const it = subject({ database: 99 });
    await it.connection.open();
    expect(it.connection.isReady).to.equal(false);
  });

  it('K01 starts without Redis within a second, and connects when Redis is available', async () => {
    await redis.kill();
    const it = subject();
    const beganAt = performance.now();
    await it.connection.open();
    expect(performance.now() - beganAt).to.be.below(1000);
    expect(await failure(echo(it))).to.be.instanceOf(RedisUnavailable);
    await redis.begin();
    await comesBack(it);
    expect(await echo(it)).to.equal('here');
  });

  it('K03 closes a connection without responses, and destroys its socket', async () => {
    const it = await open();
    const before = relay.connections;
    relay.isSilent = true;
    await noticed(it);
    await eventually('the socket is closed', () => relay.open === 0);
    const beganAt = performance.now();
    for (let i = 0; i < 1000; i++) expect(await failure(echo(it))).to.be.instanceOf(RedisUnavailable);
    expect(performance.now() - beganAt, 'a thousand commands while the breaker is open').to.be.below(500);
    expect(lines(it, 'Redis unavailable, retrying')).to.have.length(1);
    relay.isSilent = false;
    await comesBack(it);
    expect(relay.connections).to.be.above(before);
    expect(await echo(it)).to.equal('here');
    expect(lines(it, 'Redis connected again')).to.have.length(1);
  });

  it('K03 does not use a server that accepts connections but never replies', async () => {
    relay.isSilent = true;
    const it = subject();
    await it.connection.open();
    for (let i = 0; i < 3; i++) {
      it.clock.advance(LONGEST_DELAY_MS);
      await eventually('the attempt has ended', () => relay.open === 0);
      expect(it.connection.isReady).to.equal(false);
    }
  });

  it('K04 is not used while each reply takes 200 ms', async () => {
    const it = await open();
    relay.delayMs = 200;
    await noticed(it);
    it.clock.advance(LONGEST_DELAY_MS);
    await sleep(100);
    expect(it.connection.isReady).to.equal(false);
    relay.delayMs = 0;
    await comesBack(it);
  });

  it('keeps a connection that was slow for a moment and replies again', async () => {
    // Ten times the usual limit, so that a busy machine does not make the moment too long.
    const it = await open({}, undefined, 500);
    const { connections } = relay;
    redis.freeze();
    const [failed] = await Promise.all([
      Promise.all([failure(echo(it)), failure(echo(it)), failure(echo(it))]),
      sleep(650).then(() => {
        redis.resume();
      }),
    ]);
    for (const error of failed) expect(error).to.be.instanceOf(RedisUnavailable);
    await eventually('the connection is used again', () => it.connection.isReady);
    expect(relay.connections).to.equal(connections);
    expect(lines(it, 'Redis unavailable, retrying')).to.be.empty;
  });

  it('opens the breaker at once when the connection ends', async () => {
    const it = await open();
    relay.reset();
    await disconnects(it);
    await comesBack(it);
    expect(await echo(it)).to.equal('here');
  });

  it('retries with growing delays, up to two seconds, and never in step with others', async () => {
    await redis.kill();
    const it = subject();
    await it.connection.open();
    const waits: number[] = [];
    for (let i = 0; i < 9; i++) {
      const { connections } = relay;
      let waited = 0;
      while (relay.connections === connections) {
        it.clock.advance(10);
        waited += 10;
        await new Promise(setImmediate);
        if (waited > 5_000) throw new Error('no more tries');
      }
      waits.push(waited);
      await eventually('the attempt has ended', () => relay.open === 0 && it.clock.pending > 0);
    }
    expect(Math.max(...waits)).to.be.at.most(LONGEST_DELAY_MS + 500);
    expect(waits.at(-1)).to.be.at.least(LONGEST_DELAY_MS / 2 - 10);
    expect(waits[0]).to.be.below(500);
  });

  it('is ready only after all listeners have finished, and not if one fails', async () => {
    let mayArrive = false;
    const runIds: (string | null)[] = [];
    const arrived = async ({ run, runId }: NewConnection) => {
      runIds.push(runId);
      await run(ECHO, ['first']);
      if (!mayArrive) throw new Error('not yet');
    };
    const it = subject({}, arrived);
    await it.connection.open();
    expect(it.connection.isReady).to.equal(false);
    mayArrive = true;
    await comesBack(it);
    expect(runIds[0]).to.match(/^[0-9a-f]{40}$/);
  });

  it('treats an error reply as a reply, not as an outage', async () => {
    const it = await openForReplies();
    const wrong: Script = {
      name: 'testWrong',
      lua: "redis.call('SET', 'a', 'b') return redis.call('LPUSH', 'a', 'b')",
    };
    for (let i = 0; i < 10; i++) {
      expect(await failure(it.connection.run(wrong, [])))
        .to.be.instanceOf(RedisErrorReply)
        .and.include({ code: 'WRONGTYPE' });
    }
    expect(it.connection.isReady).to.equal(true);
    expect(lines(it, 'Redis rejects commands')).to.have.length(1);
  });

  it('K05 disconnects from a server that became a replica, and reconnects when it accepts writes', async () => {
    const it = await open();
    await redis.client.replicaof('127.0.0.1', 1);
    await eventually('the breaker opens', async () => {
      await failure(it.connection.run({ name: 'testSet', lua: "return redis.call('SET', 'a', 'b')" }, []));
      return it.connection.isDisconnected;
    });
    it.clock.advance(LONGEST_DELAY_MS);
    await sleep(50);
    expect(it.connection.isReady).to.equal(false);
    await redis.client.replicaof('NO', 'ONE');
    await comesBack(it);
  });

  it('K09 treats full memory as a reply: existing data can be read', async () => {
    const it = await openForReplies();
    await redis.client.config('SET', 'maxmemory', '1');
    const write: Script = { name: 'testWrite', lua: "return redis.call('SET', 'a', 'b')" };
    expect(await failure(it.connection.run(write, [])))
      .to.be.instanceOf(RedisErrorReply)
      .and.include({ code: 'OOM' });
    expect(await echo(it)).to.equal('here');
  });

  it('K15 logs that its credentials are refused, without revealing them, and retries rarely', async () => {
    const password = canary('password');
    await redis.client.config('SET', 'requirepass', canary('password'));
    const it = subject({ password });
    await it.connection.open();
    const [line] = lines(it, 'Redis unavailable, retrying');
    expect(line).to.include('WRONGPASS').and.not.include(password);
    const { connections } = relay;
    it.clock.advance(4_000);
    await sleep(20);
    expect(relay.connections).to.equal(connections);
  });

  it('K15 logs in, also as a named user', async () => {
    const password = canary('password');
    await redis.client.acl('SETUSER', 'llmp', 'on', `>${password}`, '~llmp:*', '+@all', '-@dangerous');
    const it = await openForReplies({ username: 'llmp', password });
    expect(await echo(it)).to.equal('here');
  });

  it('K15 uses TLS if configured, and not with a server that does not support it', async () => {
    const it = subject({ isEncrypted: true });
    await it.connection.open();
    expect(it.connection.isReady).to.equal(false);
    expect(lines(it, 'Redis unavailable, retrying')).to.have.length(1);
  });

  it('K17 returns each command its own reply, and late replies to no one', async () => {
    const it = await open();
    redis.freeze();
    const late = failure(echo(it, 'late'));
    expect(await late).to.be.instanceOf(RedisUnavailable);
    redis.resume();
    const words = Array.from({ length: 100 }, (_, i) => `word ${i}`);
    // A busy machine may be late again; then there is no reply, but never that of another command.
    const replies = await Promise.allSettled(words.map((word) => echo(it, word)));
    const wrong = replies.filter((reply, i) => reply.status === 'fulfilled' && reply.value !== words[i]);
    expect(wrong).to.deep.equal([]);
    await comesBack(it);
  });
});
