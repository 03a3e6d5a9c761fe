import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { type Class, Slices } from '../../../daemon/http/server/slices.js';
import { TestClock } from '../../support/clock.js';

const TURNS = 5;
const LONGEST_REST_MS = 500;

describe('Work that can wait', () => {
  let clock: TestClock;
  let slices: Slices;
  let done: string[];
  beforeEach(() => {
    clock = new TestClock({ standsStill: true });
    slices = new Slices(clock);
    done = [];
  });

  /** @param ms how long each takes. */
  function add(when: Class, names: readonly string[], ms = 1): void {
    for (const name of names) {
      slices.add(() => {
        done.push(name);
        clock.advance(ms);
      }, when);
    }
  }

  async function turns(count = TURNS): Promise<void> {
    for (let i = 0; i < count; i++) await turn();
  }

  it('is done by its class, and in the order it came', async () => {
    add('late', ['pipelined 1', 'pipelined 2'], 0.1);
    add('usual', ['list', 'page']);
    add('urgent', ['probe']);
    await turns(8);
    expect(done).to.deep.equal(['probe', 'list', 'page', 'pipelined 1', 'pipelined 2']);
  });

  it('leaves the event loop to others after a millisecond', async () => {
    add('usual', ['1', '2', '3', '4', '5']);
    await turns(1);
    expect(done).to.deep.equal(['1']);
    await turns();
    expect(done).to.have.length(5);
  });

  it('rests longer than it works while others are served, if its clients have not waited for their answers (finding B1)', async () => {
    slices.othersAreServed();
    add('late', ['1', '2', '3'], 2);
    await turns();
    expect(done, 'a slice').to.deep.equal(['1']);
    clock.advance(90);
    await turns();
    expect(done, 'in the rest').to.deep.equal(['1']);
    clock.advance(LONGEST_REST_MS);
    slices.othersAreServed();
    await turns();
    expect(done, 'behind it').to.deep.equal(['1', '2']);
  });

  it('of others is done while that of such clients rests', async () => {
    slices.othersAreServed();
    add('late', ['pipelined 1', 'pipelined 2']);
    await turns();
    add('usual', ['list']);
    add('urgent', ['probe']);
    await turns();
    expect(done).to.deep.equal(['pipelined 1', 'probe', 'list']);
  });

  it('of the usual kind is done also while others ask for urgent work without end (finding B1)', async () => {
    let asked = 0;
    const askAgain = () => {
      clock.advance(1);
      asked += 1;
      if (asked < 20) slices.add(askAgain, 'urgent');
    };
    slices.add(askAgain, 'urgent');
    add('usual', ['list', 'page']);
    await turns();
    expect(done).to.deep.equal(['list', 'page']);
    await turns(20);
  });

  it('comes in time also when there is always something else to do', async () => {
    add('late', ['pipelined']);
    const until = clock.monotonic() + 2 * LONGEST_REST_MS;
    while (clock.monotonic() < until && !done.includes('pipelined')) {
      add('usual', ['list'], 5);
      await turn();
    }
    expect(done).to.include('pipelined');
  });

  it('does not rest when nobody else is served', async () => {
    add('late', ['1', '2', '3']);
    await turns();
    expect(done).to.deep.equal(['1', '2', '3']);
  });

  it('goes on after a task that fails', async () => {
    const failure = new Promise((resolve) => {
      const before = process.listeners('uncaughtException');
      process.removeAllListeners('uncaughtException');
      process.once('uncaughtException', (error) => {
        for (const listener of before) process.on('uncaughtException', listener);
        resolve(error);
      });
    });
    slices.add(() => {
      throw new Error('a task fails');
    }, 'usual');
    add('usual', ['the next']);
    expect(await failure).to.have.property('message', 'a task fails');
    await turns();
    expect(done).to.deep.equal(['the next']);
  });
});
