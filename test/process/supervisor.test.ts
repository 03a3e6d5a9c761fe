import { expect } from 'chai';
import { type Sight, statusLine, Supervisor } from '../../daemon/process/supervisor.js';
import { type Message, takeSupervision } from '../../daemon/process/systemd-notify.js';
import { TestClock } from '../support/clock.js';

const GOOD: Sight = { missing: [], degraded: [], figures: ['0 requests/s'] };

describe('what systemd is told', () => {
  let clock: TestClock;
  let told: Message[];
  let sight: Sight;
  let supervisor: Supervisor;

  const begin = (watchdogMs: number | null = null) => {
    clock = new TestClock({ standsStill: true });
    told = [];
    sight = GOOD;
    supervisor = new Supervisor({ tell: (message) => told.push(message), watchdogMs, clock });
  };
  const looked = () => new Promise((resolve) => setImmediate(resolve));
  const listen = async (first: Sight = GOOD) => {
    sight = first;
    supervisor.listening(() => Promise.resolve(sight));
    await looked();
  };
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 250) {
      clock.advance(250);
      await looked();
    }
  };
  const all = (name: string) => told.flatMap((message) => message[name] ?? []);

  beforeEach(() => {
    begin();
  });

  it('at first is that it starts, and takes its time as long as it does', async () => {
    await pass(60_000);
    expect(told[0]).to.deep.equal({ STATUS: 'starting' });
    expect(all('EXTEND_TIMEOUT_USEC')).to.deep.equal(Array(7).fill('30000000'));
    expect(all('READY')).to.be.empty;
    await listen();
    await pass(60_000);
    expect(all('EXTEND_TIMEOUT_USEC')).to.have.length(7);
  });

  it('is that it is up as soon as it is ready, once', async () => {
    await listen({ ...GOOD, missing: ['database'] });
    await pass(5_000);
    expect(all('STATUS')).to.include('not ready, for want of database; 0 requests/s');
    expect(all('READY')).to.be.empty;
    sight = GOOD;
    await pass(250);
    expect(told.at(-1)).to.deep.equal({ READY: '1', STATUS: 'ready; 0 requests/s' });
    await pass(60_000);
    expect(all('READY')).to.have.length(1);
  });

  it('is that it is up all the same when what it lacks does not come', async () => {
    await listen({ ...GOOD, missing: ['database'] });
    await pass(19_500);
    expect(all('READY')).to.be.empty;
    await pass(1_000);
    expect(told.at(-1)).to.deep.equal({ READY: '1', STATUS: 'not ready, for want of database; 0 requests/s' });
  });

  it('is at once that it is up when only an operator can bring what it lacks', async () => {
    await listen({ ...GOOD, missing: ['pending migrations'] });
    expect(all('READY')).to.have.length(1);
  });

  it('is how it does, when that is something else, every five seconds at most', async () => {
    await listen();
    const before = told.length;
    for (let n = 1; n <= 20; n++) {
      sight = { ...GOOD, figures: [`${n} requests/s`] };
      await pass(500);
    }
    expect(told.length - before).to.be.within(1, 2);
    const then = told.length;
    await pass(60_000);
    expect(told.length - then).to.be.at.most(1);
  });

  it('is that it lives, twice as often as must be, whatever it sees', async () => {
    begin(60_000);
    supervisor.listening(() => new Promise(() => undefined));
    await pass(300_000);
    expect(all('WATCHDOG')).to.have.length(11);
  });

  it('is that it reloads, and how that went', async () => {
    supervisor.reloading();
    supervisor.reloaded(true);
    expect(all('READY'), 'not before it is up').to.be.empty;
    await listen();
    supervisor.reloading();
    expect(told.at(-1)).to.have.property('MONOTONIC_USEC').which.matches(/^\d+$/);
    supervisor.reloaded(false);
    const failed = 'ready; 0 requests/s; a reload failed, the settings are those from before';
    expect(told.at(-1)).to.deep.equal({ READY: '1', STATUS: failed });
    await pass(10_000);
    expect(told.at(-1)).to.have.property('STATUS', failed);
    supervisor.reloading();
    supervisor.reloaded(true);
    expect(told.at(-1)).to.deep.equal({ READY: '1', STATUS: 'ready; 0 requests/s' });
  });

  it('is that it stops, once, how long that may take, and then nothing but that it lives', async () => {
    begin(60_000);
    await listen();
    supervisor.stopping(31_000);
    supervisor.stopping(31_000);
    expect(told.at(-1)).to.deep.equal({ STOPPING: '1', STATUS: 'stopping', EXTEND_TIMEOUT_USEC: '61000000' });
    const before = told.length;
    sight = { ...GOOD, missing: ['draining'] };
    await pass(60_000);
    expect(told.slice(before)).to.deep.equal([{ WATCHDOG: '1' }, { WATCHDOG: '1' }]);
  });

  it('says in a line what is missing and what is done without', () => {
    const all = { missing: ['database'], degraded: ['redis', 'audit_file'], figures: ['1 requests/s', '2 in flight'] };
    expect(statusLine(all)).to.equal(
      'not ready, for want of database, without redis, audit file; 1 requests/s; 2 in flight',
    );
  });
});

describe('what systemd wants', () => {
  const from = (env: Record<string, string>) => ({ taken: takeSupervision(env, 42), left: env });

  it('is taken out of the environment, so that nobody else takes it to be meant for him', () => {
    expect(from({ PATH: '/bin', NOTIFY_SOCKET: '/n', WATCHDOG_USEC: '60000000', WATCHDOG_PID: '42' })).to.deep.equal({
      taken: { socket: '/n', path: '/bin', watchdogMs: 60_000 },
      left: { PATH: '/bin' },
    });
  });

  it('is nothing without a socket', () => {
    expect(from({ WATCHDOG_USEC: '60000000' })).to.deep.equal({ taken: null, left: {} });
  });

  it('is no watchdog that watches another process, or none', () => {
    for (const env of [{ WATCHDOG_USEC: '60000000', WATCHDOG_PID: '43' }, { WATCHDOG_USEC: '0' }, {}]) {
      expect(from({ NOTIFY_SOCKET: '@n', ...env }).taken).to.have.property('watchdogMs', null);
    }
  });
});
