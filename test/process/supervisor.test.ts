import { expect } from 'chai';
import { type HealthSummary, statusLine, Supervisor } from '../../daemon/process/supervisor.js';
import { type NotifyMessage, takeSupervision } from '../../daemon/process/systemd-notify.js';
import { TestClock } from '../support/clock.js';

const GOOD: HealthSummary = { missing: [], degraded: [], figures: ['0 requests/s'] };

describe('notifications to systemd', () => {
  let clock: TestClock;
  let told: NotifyMessage[];
  let health: HealthSummary;
  let supervisor: Supervisor;

  const begin = (watchdogMs: number | null = null) => {
    clock = new TestClock({ standsStill: true });
    told = [];
    health = GOOD;
    supervisor = new Supervisor({ notify: (message) => told.push(message), watchdogMs, clock });
  };
  const looked = () => new Promise((resolve) => setImmediate(resolve));
  const listen = async (first: HealthSummary = GOOD) => {
    health = first;
    supervisor.listening(() => Promise.resolve(health));
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

  it('report the start first, and extend its timeout until the process listens', async () => {
    await pass(60_000);
    expect(told[0]).to.deep.equal({ STATUS: 'starting' });
    expect(all('EXTEND_TIMEOUT_USEC')).to.deep.equal(Array(7).fill('30000000'));
    expect(all('READY')).to.be.empty;
    await listen();
    await pass(60_000);
    expect(all('EXTEND_TIMEOUT_USEC')).to.have.length(7);
  });

  it('report READY once, as soon as the daemon is ready', async () => {
    await listen({ ...GOOD, missing: ['database'] });
    await pass(5_000);
    expect(all('STATUS')).to.include('not ready (missing: database); 0 requests/s');
    expect(all('READY')).to.be.empty;
    health = GOOD;
    await pass(250);
    expect(told.at(-1)).to.deep.equal({ READY: '1', STATUS: 'ready; 0 requests/s' });
    await pass(60_000);
    expect(all('READY')).to.have.length(1);
  });

  it('report READY after 20 s even if the daemon is not ready', async () => {
    await listen({ ...GOOD, missing: ['database'] });
    await pass(19_500);
    expect(all('READY')).to.be.empty;
    await pass(1_000);
    expect(told.at(-1)).to.deep.equal({ READY: '1', STATUS: 'not ready (missing: database); 0 requests/s' });
  });

  it('report READY at once if only an operator can make the daemon ready', async () => {
    await listen({ ...GOOD, missing: ['pending migrations'] });
    expect(all('READY')).to.have.length(1);
  });

  it('report a changed status, every five seconds at most', async () => {
    await listen();
    const before = told.length;
    for (let n = 1; n <= 20; n++) {
      health = { ...GOOD, figures: [`${n} requests/s`] };
      await pass(500);
    }
    expect(told.length - before).to.be.within(1, 2);
    const then = told.length;
    await pass(60_000);
    expect(told.length - then).to.be.at.most(1);
  });

  it('reset the watchdog twice per timeout, even if reading the health hangs', async () => {
    begin(60_000);
    supervisor.listening(() => new Promise(() => undefined));
    await pass(300_000);
    expect(all('WATCHDOG')).to.have.length(11);
  });

  it('report a reload and its result', async () => {
    supervisor.reloading();
    supervisor.reloaded(true);
    expect(all('READY'), 'not before it is up').to.be.empty;
    await listen();
    supervisor.reloading();
    expect(told.at(-1)).to.have.property('MONOTONIC_USEC').which.matches(/^\d+$/);
    supervisor.reloaded(false);
    const failed = 'ready; 0 requests/s; the last reload failed, previous settings are in force';
    expect(told.at(-1)).to.deep.equal({ READY: '1', STATUS: failed });
    await pass(10_000);
    expect(told.at(-1)).to.have.property('STATUS', failed);
    supervisor.reloading();
    supervisor.reloaded(true);
    expect(told.at(-1)).to.deep.equal({ READY: '1', STATUS: 'ready; 0 requests/s' });
  });

  it('report the shutdown and its timeout once, and then only reset the watchdog', async () => {
    begin(60_000);
    await listen();
    supervisor.stopping(31_000);
    supervisor.stopping(31_000);
    expect(told.at(-1)).to.deep.equal({ STOPPING: '1', STATUS: 'stopping', EXTEND_TIMEOUT_USEC: '61000000' });
    const before = told.length;
    health = { ...GOOD, missing: ['draining'] };
    await pass(60_000);
    expect(told.slice(before)).to.deep.equal([{ WATCHDOG: '1' }, { WATCHDOG: '1' }]);
  });

  it('have a status line that names what is missing and what is degraded', () => {
    const all = { missing: ['database'], degraded: ['redis', 'audit_file'], figures: ['1 requests/s', '2 in flight'] };
    expect(statusLine(all)).to.equal(
      'not ready (missing: database); degraded (redis, audit file); 1 requests/s; 2 in flight',
    );
  });
});

describe('the variables of systemd', () => {
  const from = (env: Record<string, string>) => ({ taken: takeSupervision(env, 42), left: env });

  it('are removed from the environment, so that child processes do not use them', () => {
    expect(from({ PATH: '/bin', NOTIFY_SOCKET: '/n', WATCHDOG_USEC: '60000000', WATCHDOG_PID: '42' })).to.deep.equal({
      taken: { socket: '/n', path: '/bin', watchdogMs: 60_000 },
      left: { PATH: '/bin' },
    });
  });

  it('are ignored without a socket', () => {
    expect(from({ WATCHDOG_USEC: '60000000' })).to.deep.equal({ taken: null, left: {} });
  });

  it('set no watchdog for another process or without a timeout', () => {
    for (const env of [{ WATCHDOG_USEC: '60000000', WATCHDOG_PID: '43' }, { WATCHDOG_USEC: '0' }, {}]) {
      expect(from({ NOTIFY_SOCKET: '@n', ...env }).taken).to.have.property('watchdogMs', null);
    }
  });
});
