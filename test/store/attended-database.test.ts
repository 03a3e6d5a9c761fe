/** Statements of a primary that take long, because a worker that does not respond may hold the locks. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { Log } from '../../daemon/core/ports.js';
import { Crew } from '../../daemon/store/ipc/crew.js';
import { AttendedDatabase } from '../../daemon/store/sql/attended-database.js';
import type { Database } from '../../daemon/store/sql/database.js';
import { TestClock } from '../support/clock.js';

const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** A primary with workers that reply when the test says so, and with a database that is done when the test says so. */
function primary() {
  const clock = new TestClock({ standsStill: true });
  const crew = new Crew({ outer: null, clock, log: silent });
  let finish: () => void = () => undefined;
  const pending = new Promise<never[]>((resolve) => {
    finish = () => {
      resolve([]);
    };
  });
  const slow = { transact: () => pending, select: () => pending } as unknown as Database;
  const database = new AttendedDatabase(slow, clock, (isWaiting) => crew.endUnresponsive(isWaiting));
  const addWorker = (number: number) => {
    let receive: (batch: unknown) => void = () => undefined;
    const asked: number[] = [];
    let end: () => void = () => undefined;
    const reply = () => {
      for (const call of asked.splice(0)) receive([[2, call, '', undefined]]);
    };
    const worker = { isKilled: false, asked, replies: true, reply };
    const process = {
      number,
      pid: number,
      startedAtMs: 0,
      post: (batch: unknown) => {
        for (const [kind, call, name] of batch as [number, number, string][])
          if (kind === 1 && name === 'confirm') asked.push(call);
        if (worker.replies) setImmediate(reply);
      },
      onBatch: (listener: (batch: unknown) => void) => {
        receive = listener;
      },
      kill() {
        worker.isKilled = true;
        end();
      },
      ended: new Promise<void>((resolve) => {
        end = resolve;
      }),
    };
    void crew.add(process, {} as never).catch(() => undefined);
    receive([]);
    return worker;
  };
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 50) {
      clock.advance(50);
      await turn();
      await turn();
    }
  };
  return {
    database,
    addWorker,
    pass,
    finish: () => {
      finish();
    },
  };
}

describe('a primary whose statement takes long', () => {
  for (const how of ['transact', 'select'] as const) {
    it(`ends a worker that does not respond within two seconds (${how})`, async () => {
      const { database, addWorker, pass, finish } = primary();
      const [healthy, frozen] = [addWorker(1), addWorker(2)];
      frozen.replies = false;
      void (how === 'transact' ? database.transact(() => Promise.resolve()) : database.select('SELECT 1'));
      await pass(1_900);
      expect(frozen.isKilled).to.equal(false);
      await pass(150);
      expect([healthy.isKilled, frozen.isKilled]).to.deep.equal([false, true]);
      finish();
    });
  }

  it('leaves workers that respond late alone, however long it takes', async () => {
    const { database, addWorker, pass, finish } = primary();
    const busy = addWorker(1);
    busy.replies = false;
    void database.transact(() => Promise.resolve());
    for (let rounds = 0; rounds < 5; rounds++) {
      await pass(1_700);
      expect(busy.asked.length).to.be.at.least(1);
      busy.reply();
      await pass(100);
    }
    expect(busy.isKilled).to.equal(false);
    finish();
  });

  it('leaves a worker alone that has not responded when the statement is done', async () => {
    const { database, addWorker, pass, finish } = primary();
    const busy = addWorker(1);
    busy.replies = false;
    void database.transact(() => Promise.resolve());
    await pass(1_900);
    finish();
    await pass(3_000);
    expect(busy.isKilled).to.equal(false);
    expect(busy.asked).to.have.length(1);
  });
});
