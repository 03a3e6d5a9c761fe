import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { type Priority, Scheduler } from '../../daemon/http/scheduler.js';
import { TestClock } from '../support/clock.js';

const TURNS = 5;
const LONGEST_REST_MS = 500;

describe('the scheduler', () => {
  let clock: TestClock;
  let scheduler: Scheduler;
  let done: string[];
  beforeEach(() => {
    clock = new TestClock({ standsStill: true });
    scheduler = new Scheduler(clock);
    done = [];
  });

  /** @param ms duration of each task. */
  function add(when: Priority, names: readonly string[], ms = 1): void {
    for (const name of names) {
      scheduler.add(() => {
        done.push(name);
        clock.advance(ms);
      }, when);
    }
  }

  async function turns(count = TURNS): Promise<void> {
    for (let i = 0; i < count; i++) await turn();
  }

  it('runs tasks by priority, then in the order they were added', async () => {
    add('late', ['pipelined 1', 'pipelined 2'], 0.1);
    add('usual', ['list', 'page']);
    add('urgent', ['probe']);
    await turns(8);
    expect(done).to.deep.equal(['probe', 'list', 'page', 'pipelined 1', 'pipelined 2']);
  });

  it('yields the event loop after a millisecond', async () => {
    add('usual', ['1', '2', '3', '4', '5']);
    await turns(1);
    expect(done).to.deep.equal(['1']);
    await turns();
    expect(done).to.have.length(5);
  });

  it('pauses late work for longer than it runs while other requests are served', async () => {
    scheduler.noteOtherWork();
    add('late', ['1', '2', '3'], 2);
    await turns();
    expect(done, 'a slice').to.deep.equal(['1']);
    clock.advance(90);
    await turns();
    expect(done, 'in the rest').to.deep.equal(['1']);
    clock.advance(LONGEST_REST_MS);
    scheduler.noteOtherWork();
    await turns();
    expect(done, 'after it').to.deep.equal(['1', '2']);
  });

  it('runs other work while late work pauses', async () => {
    scheduler.noteOtherWork();
    add('late', ['pipelined 1', 'pipelined 2']);
    await turns();
    add('usual', ['list']);
    add('urgent', ['probe']);
    await turns();
    expect(done).to.deep.equal(['pipelined 1', 'probe', 'list']);
  });

  it('runs usual work even if urgent work never ends', async () => {
    let asked = 0;
    const askAgain = () => {
      clock.advance(1);
      asked += 1;
      if (asked < 20) scheduler.add(askAgain, 'urgent');
    };
    scheduler.add(askAgain, 'urgent');
    add('usual', ['list', 'page']);
    await turns();
    expect(done).to.deep.equal(['list', 'page']);
    await turns(20);
  });

  it('runs late work in time even if there is always other work', async () => {
    add('late', ['pipelined']);
    const until = clock.monotonic() + 2 * LONGEST_REST_MS;
    while (clock.monotonic() < until && !done.includes('pipelined')) {
      add('usual', ['list'], 5);
      await turn();
    }
    expect(done).to.include('pipelined');
  });

  it('does not pause late work if no other request is served', async () => {
    add('late', ['1', '2', '3']);
    await turns();
    expect(done).to.deep.equal(['1', '2', '3']);
  });

  it('continues after a task that fails', async () => {
    const failure = new Promise((resolve) => {
      const before = process.listeners('uncaughtException');
      process.removeAllListeners('uncaughtException');
      process.once('uncaughtException', (error) => {
        for (const listener of before) process.on('uncaughtException', listener);
        resolve(error);
      });
    });
    scheduler.add(() => {
      throw new Error('a task fails');
    }, 'usual');
    add('usual', ['the next']);
    expect(await failure).to.have.property('message', 'a task fails');
    await turns();
    expect(done).to.deep.equal(['the next']);
  });
});
