import { expect } from 'chai';
import { MANAGEMENT_API, FailedAttempts } from '../../../daemon/core/failed-attempts.js';
import type { Clock } from '../../../daemon/core/ports.js';
import { TestClock } from '../../support/clock.js';
import { MANAGEMENT_TOKEN, recordingLog, startDaemon, type TestDaemon } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { type AuditRow, auditOf, problemOf, rawRequest, write } from '../../support/management.js';
import { AuditSink } from '../../support/record-store.js';

const MINUTE_MS = 60_000;

describe('wrong management credentials', () => {
  describe('at the API', () => {
    let daemon: TestDaemon;

    beforeEach(async () => {
      daemon = await startDaemon();
    });
    afterEach(() => daemon.stop());

    const guess = (secret = 'wrong-guess', headers: Record<string, string> = {}, localAddress = '127.0.0.1') =>
      rawRequest(daemon, {
        path: '/manage/projects',
        headers: { authorization: `Bearer ${secret}`, ...headers },
        localAddress,
      });
    const guesses = async (count: number) => {
      for (let i = 0; i < count; i++) problemOf(await guess(), 401, 'management_token_refused');
    };
    const denied = async (count: number): Promise<AuditRow[]> => {
      let rows: AuditRow[] = [];
      await eventually(`${count} records of wrong credentials`, async () => {
        rows = (await auditOf(daemon)).filter(({ action }) => action === 'management.denied');
        return rows.length >= count;
      });
      expect(rows).to.have.length(count);
      return rows;
    };

    it('H10 get 401 ten times a minute from one address, then 429 with Retry-After', async () => {
      await guesses(10);
      daemon.clock.advance(20_000);
      const answer = await guess();
      expect(problemOf(answer, 429, 'too_many_attempts')).to.equal('too many wrong management tokens');
      const seconds = Number(answer.headers.get('retry-after'));
      expect(seconds).to.be.within(35, 40);
      daemon.clock.advance(seconds * 1000);
      problemOf(await guess(), 401, 'management_token_refused');
    });

    it('H10 never block the right one, from the same address and in the same minute', async () => {
      await guesses(10);
      problemOf(await guess(), 429, 'too_many_attempts');
      expect((await guess(MANAGEMENT_TOKEN)).status).to.equal(200);
      problemOf(await guess(), 429, 'too_many_attempts');
    });

    it('H10 from one address do not slow down another', async () => {
      await guesses(10);
      problemOf(await guess(), 429, 'too_many_attempts');
      problemOf(await guess('wrong-guess', {}, '127.0.0.2'), 401, 'management_token_refused');
    });

    it('H10 do not include missing ones, which always get 401 and are not recorded', async () => {
      for (let i = 0; i < 12; i++) {
        const answer = await rawRequest(daemon, { path: '/manage/projects', headers: { authorization: undefined } });
        problemOf(answer, 401, 'management_token_refused');
      }
      await guesses(1);
      await denied(1);
    });

    it('H10 are recorded with address and request ID, without the credential, and without trusting their headers', async () => {
      const headers = { 'x-request-id': 'the-attempt', 'x-llmp-actor': 'cli', 'x-llmp-client-ip': '203.0.113.7' };
      await guess('presented-value', { ...headers, 'x-audit-reason': 'forged' }, '127.0.0.2');
      const [row] = await denied(1);
      expect(row).to.include({
        actor: 'management',
        outcome: 'denied',
        client_ip: '127.0.0.2',
        request_id: 'the-attempt',
        reason: null,
        count: null,
        details: null,
      });
      expect(JSON.stringify([row, daemon.logged])).not.to.include('presented-value');
    });

    it('H10 above that limit are recorded as one count per minute and address', async () => {
      await guesses(10);
      for (let i = 0; i < 7; i++) await guess();
      await denied(10);
      daemon.clock.advance(MINUTE_MS);
      const summary = (await denied(11)).at(-1);
      expect(summary).to.include({ outcome: 'denied', client_ip: '127.0.0.1', request_id: null, count: 7 });
    });

    it('H10 that are only counted so far are recorded when the daemon stops', async () => {
      await guesses(10);
      for (let i = 0; i < 3; i++) await guess();
      await daemon.stop();
      daemon = await startDaemon({ dir: daemon.dir });
      expect((await denied(11)).at(-1)).to.include({ count: 3 });
    });

    it('H10 are refused even if they cannot be recorded, and recorded once that is possible again', async () => {
      await write(daemon, "CREATE TRIGGER no_audit BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END");
      await guesses(2);
      await eventually('the failure is logged', () =>
        daemon.logged.some((line) => line.includes('cannot write audit records of failed')),
      );
      await write(daemon, 'DROP TRIGGER no_audit');
      daemon.clock.advance(MINUTE_MS);
      await denied(2);
    });

    it('H10 do not wait for the database', async () => {
      const { records } = daemon.daemon.stores;
      const change = records.change.bind(records);
      let release: () => void = () => undefined;
      const isReleased = new Promise<void>((resolve) => (release = resolve));
      records.change = async (work) => {
        await isReleased;
        return change(work);
      };
      await guesses(3);
      expect(await denied(0)).to.be.empty;
      release();
      await denied(3);
    });

    it('H10 are refused before the table for their records exists', async () => {
      const own = await startDaemon({ env: { AUTO_MIGRATE: 'false' } });
      const answer = await own.manage('GET', '/manage/migrations', undefined, { authorization: 'Bearer wrong' });
      problemOf(answer, 401, 'management_token_refused');
      await own.stop();
    });
  });

  describe('in a flood', () => {
    let clock: TestClock;
    let sink: AuditSink;
    let timers: number;
    let attempts: FailedAttempts;

    beforeEach(() => {
      clock = new TestClock({ standsStill: true });
      sink = new AuditSink();
      timers = 0;
      const counting: Clock = {
        now: () => clock.now(),
        monotonic: () => clock.monotonic(),
        after(ms, action) {
          timers++;
          const cancel = clock.after(ms, () => {
            timers--;
            action();
          });
          return () => {
            timers--;
            cancel();
          };
        },
      };
      attempts = new FailedAttempts({ surface: MANAGEMENT_API, store: sink, clock: counting, log: recordingLog().log });
    });

    const settled = () => new Promise((resolve) => setImmediate(resolve));
    const kindOf = (ip: string | null) => attempts.refuse(ip, 'request').kind;
    const exhaust = (ip: string | null) => {
      for (let i = 0; i < 10; i++) kindOf(ip);
    };

    for (const [one, same, other] of [
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::1', '2001:db8:1:3::1'],
      ['2001:db8::1', '2001:0db8:0:0:ffff::', '2001:db8:0:1::1'],
      ['::1', '::2', '0:0:0:1::1'],
      ['fe80::1%eth0', 'fe80::2%eth1', 'fe80:0:0:1::1'],
      ['203.0.113.7', '203.0.113.7', '203.0.113.8'],
      ['64:ff9b::203.0.113.7', '64:ff9b::1', '64:ff9a::1'],
      ['203.0.113.7', '::ffff:203.0.113.7', '::ffff:203.0.113.8'],
      ['203.0.113.7', '::FFFF:cb00:7107', '::ffff:cb00:7108'],
      ['::ffff:203.0.113.7', '0:0:0:0:0:ffff:203.0.113.7', '0::ffff:203.0.113.8'],
    ] as const) {
      it(`those from ${one} and ${same} count as one address, those from ${other} as another`, () => {
        exhaust(one);
        expect([kindOf(same), kindOf(other)]).to.deep.equal(['too_many_attempts', 'management_token_refused']);
      });
    }

    it('those over a Unix socket have no address, but a limit too', async () => {
      exhaust(null);
      expect(kindOf(null)).to.equal('too_many_attempts');
      await attempts.close();
      expect(sink.records.map(({ clientIp, count }) => [clientIp, count])).to.deep.equal([
        ...Array<unknown>(10).fill([null, null]),
        [null, 1],
      ]);
    });

    it('at most ten get 401 in any minute, whenever it begins', () => {
      let answered: number[] = [];
      for (let seconds = 0; seconds < 600; seconds++) {
        if (kindOf('203.0.113.7') === 'management_token_refused') answered.push(seconds);
        answered = answered.filter((at) => at > seconds - 60);
        expect(answered.length).to.be.at.most(10);
        clock.advance(1000);
      }
      expect(answered).not.to.be.empty;
    });

    it('each one is in exactly one record or count', async () => {
      for (let i = 0; i < 5_000; i++) {
        kindOf(`198.51.${Math.floor(i / 5) % 40}.${i % 5}`);
        if (i % 50 === 0) clock.advance(1_700);
        if (i % 400 === 0) await settled();
      }
      await attempts.close();
      const total = sink.records.reduce((sum, { count }) => sum + (count ?? 1), 0);
      expect(total).to.equal(5_000);
    });

    it('remembered addresses, records and transactions per minute are limited', async () => {
      for (let i = 0; i < 20_000; i++) {
        kindOf(`10.${i % 7}.${Math.floor(i / 7) % 250}.1`);
        if (i % 1000 === 0) await settled();
      }
      expect(attempts.size).to.be.at.most(257);
      clock.advance(MINUTE_MS);
      await settled();
      expect(sink.records.length).to.be.within(100, 100 + 257);
      expect(sink.transactions.length).to.be.at.most(101);
      const others = sink.records.filter(({ count, clientIp }) => count !== null && clientIp === null);
      expect(others, 'the record of all others').to.have.length(1);
    });

    it('addresses above the limit share one rate limit', () => {
      for (let i = 0; i < 256; i++) kindOf(`10.0.0.${i}`);
      for (let i = 0; i < 10; i++) expect(kindOf(`10.0.1.${i}`)).to.equal('management_token_refused');
      expect(kindOf('10.0.2.1')).to.equal('too_many_attempts');
      expect(kindOf('10.0.0.1')).to.equal('management_token_refused');
    });

    it('while one transaction runs, further records are batched', async () => {
      let commit: () => void = () => undefined;
      sink.held = new Promise((resolve) => (commit = resolve));
      exhaust('203.0.113.7');
      await settled();
      commit();
      await settled();
      expect(sink.transactions.map((records) => records.length)).to.deep.equal([1, 9]);
    });

    it('up to a thousand records that cannot be written are kept until they can', async () => {
      sink.held = Promise.reject(new Error('the database is unavailable'));
      sink.held.catch(() => undefined);
      for (let minute = 0; minute < 20; minute++) {
        for (let i = 0; i < 2_000; i++) kindOf(`10.0.${i % 20}.${i % 10}`);
        await settled();
        clock.advance(MINUTE_MS);
        await settled();
      }
      expect(sink.records).to.be.empty;
      sink.held = Promise.resolve();
      clock.advance(MINUTE_MS);
      await settled();
      expect(sink.records).to.have.length(1_000);
    });

    it('no address and no timer remains after a minute without attempts', async () => {
      for (let i = 0; i < 300; i++) exhaust(`10.0.${i % 2}.${i}`);
      expect(timers).to.equal(1);
      clock.advance(MINUTE_MS);
      await settled();
      clock.advance(MINUTE_MS);
      await settled();
      expect({ timers, size: attempts.size }).to.deep.equal({ timers: 0, size: 0 });
      expect(kindOf('10.0.0.0')).to.equal('management_token_refused');
    });

    it('nothing remains when the daemon stops', async () => {
      exhaust('203.0.113.7');
      await attempts.close();
      expect(timers).to.equal(0);
      expect(sink.records).to.have.length(10);
    });
  });
});
