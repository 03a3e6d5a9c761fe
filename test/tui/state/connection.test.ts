import { expect } from 'chai';
import type { Failure } from '../../../tui/state/exchange.js';
import { plainLines } from '../screens/rendering.js';
import { Operator } from '../operator.js';
import { DENIED, REFUSED, SimulatedDaemon, token, UNREACHABLE } from '../simulated.js';

const watching = () => new Operator({ daemon: new SimulatedDaemon({ tokens: [token(0), token(1)] }) });
const disconnected = (failure: Failure = UNREACHABLE) => {
  const operator = watching();
  operator.daemon.failing = () => failure;
  return operator.passes(2_000);
};

describe('refresh', () => {
  it('happens every two seconds, with one timer per name', () => {
    const operator = watching().forgets().passes(10_000);
    expect(operator.asked('status')).to.equal(5);
    expect(operator.asked('tokens')).to.equal(5);
    expect([...operator.wakes.keys()]).to.have.members(['refresh', 'second']);
  });

  it('does not pile up requests without responses', () => {
    const operator = watching();
    operator.isHeld = true;
    const pages = operator.forgets().passes(60_000).asked('tokens');
    expect(pages).to.be.at.most(2);
    expect([...operator.wakes.keys()]).to.have.members(['refresh', 'second']);
  });

  it('stops while paused, and resumes immediately with p', () => {
    const operator = watching().press('p').forgets().passes(20_000);
    expect(operator.asked('status')).to.equal(0);
    expect(operator.press('p').asked('status')).to.equal(1);
    expect(operator.passes(2_000).asked('status')).to.equal(2);
  });

  it('requests only data of the current screen', () => {
    const operator = watching().press('5').forgets().passes(2_000);
    expect(operator.asked('cache')).to.equal(1);
    expect(operator.asked('tokens')).to.equal(0);
  });
});

describe('unreachable daemon', () => {
  it('leaves its data on the screen, with its time', () => {
    const operator = disconnected();
    expect(operator.state.connection).to.include({ is: 'offline', failures: 1 });
    expect(operator.state.connection.respondedMs).to.be.lessThan(operator.nowMs);
    expect(operator.length).to.equal(2);
    expect(operator.press('j').cursor?.name).to.equal('name-1');
  });

  it('is retried with backoff, but at least every 15 seconds, without limit', () => {
    const operator = disconnected().forgets();
    operator.passes(15_000);
    expect(operator.asked('status')).to.be.within(3, 4);
    operator.passes(3_600_000).forgets().passes(60_000);
    expect(operator.asked('status')).to.equal(4);
    expect(operator.state.connection.retryMs).to.be.greaterThan(operator.nowMs - 1);
  });

  it('is not retried more often when the operator changes tabs', () => {
    const operator = disconnected().passes(20_000);
    const { retryMs } = operator.state.connection;
    operator.press('1', '2', '3', '4', '5', '6', '2').forgets();
    expect(operator.state.connection.retryMs).to.equal(retryMs);
    operator.passes((retryMs ?? 0) - operator.nowMs - 1);
    expect(operator.asked('status')).to.equal(0);
  });

  it('is reconnected automatically, with a message', () => {
    const operator = disconnected().passes(10_000);
    operator.daemon.failing = () => null;
    operator.passes(15_000);
    expect(operator.state.connection).to.include({ is: 'live', failures: 0, retryMs: null, failure: null });
    const operatorWaiting = disconnected();
    operatorWaiting.daemon.failing = () => null;
    expect(operatorWaiting.passes(1_000).says).to.equal('Reconnected');
  });

  it('is retried immediately with ^r', () => {
    const operator = disconnected().passes(10_000);
    operator.daemon.failing = () => null;
    expect(operator.press('ctrl+r').state.connection.is).to.equal('live');
  });
});

describe('hanging daemon', () => {
  const shown = (operator: Operator) => plainLines(operator.state);
  /** Requests get no response from now on. */
  function hanging(): Operator {
    const operator = watching().passes(2_000);
    operator.isHeld = true;
    return operator;
  }

  it('is stale after three missed refreshes, with a growing age, and live again after a response (finding A4)', () => {
    const operator = hanging().passes(5_900);
    expect(shown(operator)[0]).to.contain('● live');
    operator.passes(4_000);
    const [header = ''] = shown(operator);
    expect(header).to.match(/▲ stale \d+s/);
    const seconds = Number(/stale (\d+)s/.exec(header)?.[1]);
    expect(seconds).to.be.within(8, 10);
    expect(shown(operator.passes(5_000))[0]).to.contain(`stale ${seconds + 5}s`);
    expect(shown(operator).at(-2)).to.match(/the daemon is not responding .*data from/);
    operator.isHeld = false;
    operator.hears();
    expect(shown(operator)[0]).to.contain('● live');
    expect(operator.says).to.equal('Reconnected');
  });

  it('is also stale if only the data of the current screen gets no response (finding A4)', () => {
    const operator = watching().passes(2_000);
    const { daemon } = operator;
    operator.isHeld = true;
    for (let n = 0; n < 6; n++) {
      operator.passes(2_000);
      for (const of of ['status', 'projects'] as const) operator.acts(daemon.data({ of }));
    }
    expect(operator.state.connection.is).to.equal('stale');
    expect(shown(operator)[0]).to.match(/stale 1\ds/);
  });

  it('is reported in open dialogs, and in dialogs opened on old data (finding A4)', () => {
    const operator = hanging().press('x').passes(10_000);
    expect(shown(operator).join('\n')).to.match(/! The daemon is not responding: this data is \d+s old\./);
    operator.press('escape', 'j', 'x');
    expect(shown(operator).join('\n')).to.match(/! The daemon is not responding: this data is \d+s old\./);
  });

  it('is reported while a change is pending, and the result is reported as unknown (finding A4)', () => {
    const operator = hanging().press('x', 'tab', 'enter').passes(4_000);
    expect(shown(operator).at(-2)).to.contain('a change sent 4s ago is not confirmed yet');
    const { change } = operator.did('change')!;
    operator.loses().acts({ on: 'refused', change, failure: { ...UNREACHABLE, message: 'no response in time' } });
    expect(operator.says).to.equal('no response in time; the result is unknown');
  });

  it('is not stale while the screen is paused or shows a secret (finding A4)', () => {
    const operator = watching().press('p').passes(60_000);
    expect(operator.state.connection.is).to.equal('live');
  });
});

describe('daemon with errors', () => {
  it('is stale while one kind of request fails, without flickering', () => {
    const operator = watching();
    operator.daemon.failing = ({ of }) => (of === 'status' ? REFUSED : null);
    for (let second = 0; second < 30; second++) {
      operator.passes(1_000);
      if (second > 2) expect(operator.state.connection.is, `${second}`).to.equal('stale');
      expect(operator.says).not.to.equal('Reconnected');
    }
    operator.daemon.failing = () => null;
    expect(operator.passes(16_000).state.connection.is).to.equal('live');
  });

  it('still receives changes', () => {
    const operator = watching();
    operator.daemon.failing = ({ of }) => (of === 'status' ? REFUSED : null);
    operator.passes(2_000).press('x', 'tab', 'enter');
    expect(operator.daemon.made).to.have.lengthOf(1);
  });

  it('is not offline if one request times out', () => {
    const operator = watching().press('1');
    operator.daemon.failing = ({ of }) => (of === 'usage' ? UNREACHABLE : null);
    operator.nowMs += 5;
    operator.passes(4_000);
    operator.isHeld = true;
    operator.press('ctrl+r');
    operator.nowMs += 10;
    operator.hears();
    expect(operator.state.connection.is).to.equal('stale');
  });

  for (const status of [429, 503]) {
    it(`is retried after its Retry-After: ${status}`, () => {
      const operator = disconnected({ ...REFUSED, status, retryAfterMs: 30_000 }).forgets();
      expect(operator.state.connection.is).to.equal('stale');
      expect(operator.passes(29_000).asked('status')).to.equal(0);
      expect(operator.passes(1_000).asked('status')).to.equal(1);
    });
  }

  for (const retryAfterMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e12]) {
    it(`is retried neither immediately nor never for a Retry-After of ${retryAfterMs}`, () => {
      const operator = disconnected({ ...REFUSED, status: 429, retryAfterMs }).forgets();
      expect(operator.passes(900).asked('status')).to.equal(0);
      expect(operator.passes(300_000).asked('status')).to.be.greaterThan(0);
    });
  }
});

describe('refused management token', () => {
  it('is not sent again until the operator retries, on any screen', () => {
    const operator = disconnected(DENIED).forgets();
    operator.passes(3_600_000).press('1', '2', 'j', 'G', 's', 'enter', 'q', '3', 'j', '4', 'k', '5', '6', '2');
    operator.press('/').types('ci').press('enter').passes(5_000).press('ctrl+a');
    expect(operator.effects.filter((effect) => effect.do === 'load')).to.be.empty;
    expect(operator.followed).to.be.empty;
    expect(operator.press('x').says).to.match(/refused/);
    operator.press('ctrl+r');
    expect(operator.asked('status')).to.equal(1);
    expect(operator.state.connection.is).to.equal('denied');
    operator.daemon.failing = () => null;
    operator.press('escape', 'ctrl+r');
    expect(operator.state.connection.is).to.equal('live');
    expect(operator.forgets().passes(2_000).asked('status')).to.equal(1);
  });

  it('is not accepted again because of a late response', () => {
    const operator = watching();
    operator.isHeld = true;
    operator.passes(2_000);
    operator.acts({ on: 'failed', request: { of: 'status' }, failure: DENIED });
    operator.isHeld = false;
    operator.hears();
    expect(operator.state.connection.is).to.equal('denied');
  });

  it('is also detected on a stream, which is then closed', () => {
    const operator = watching().press('4');
    operator.daemon.failing = () => DENIED;
    operator.acts({ on: 'stream', of: 'audit', is: 'lost', failure: DENIED });
    expect(operator.state.connection.is).to.equal('denied');
    expect(operator.followed).to.be.empty;
  });
});

describe('contexts', () => {
  const named = (name: string) => ({
    name,
    server: `http://${name}`,
    isCurrent: name === 'here',
    isProtected: false,
    isReadonly: false,
    color: null,
  });

  for (const [keys, chosen] of [
    [['G', 'enter'], 'third'],
    [['j', 'enter'], 'second'],
    [['enter'], 'here'],
    [['G', 'k', 'enter'], 'second'],
  ] as const) {
    it(`are selected by keys pressed before the list was loaded: c ${keys.join(' ')} (finding A11)`, () => {
      const operator = watching();
      operator.daemon.contexts = ['here', 'second', 'third'].map(named);
      operator.isHeld = true;
      operator.press('c', ...keys);
      expect(operator.did('connect'), 'nothing is chosen from a list that nobody has seen').to.equal(undefined);
      operator.hears();
      expect(operator.did('connect')?.context).to.equal(chosen);
    });
  }

  it('are selected if the list arrives between two keys: c G, the list, enter (finding A11)', () => {
    const operator = watching();
    operator.daemon.contexts = ['here', 'second', 'third'].map(named);
    operator.isHeld = true;
    operator.press('c', 'G');
    operator.isHeld = false;
    operator.hears().press('enter');
    expect(operator.did('connect')?.context).to.equal('third');
  });

  it('can be closed before the list is loaded, which drops queued keys (finding A11)', () => {
    const operator = watching();
    operator.daemon.contexts = ['here', 'second'].map(named);
    operator.isHeld = true;
    operator.press('c', 'G', 'enter', 'escape');
    expect(operator.top).to.equal(undefined);
    operator.hears();
    expect(operator.did('connect')).to.equal(undefined);
  });

  const PROD = {
    name: 'prod',
    server: 'prod:8443',
    isCurrent: false,
    isProtected: true,
    isReadonly: false,
    color: null,
  };
  const choosing = () => {
    const operator = watching();
    operator.daemon.contexts = [{ ...PROD, name: 'here', isCurrent: true }, PROD];
    return operator.press('c');
  };
  const place = { ...PROD, server: 'prod:8443', context: 'prod', project: null };

  it('are shown with the current one selected, and can be closed without a change', () => {
    const operator = choosing();
    expect(operator.top).to.include({ kind: 'contexts', selected: 0 });
    expect(operator.press('j', 'j', 'j').top).to.include({ selected: 1 });
    expect(operator.press('escape').did('connect')).to.equal(undefined);
  });

  it('switch to another daemon, without any data of the previous one', () => {
    const operator = choosing().press('escape', 'space', 'x', 'tab', 'enter', 'c', 'j', 'enter');
    expect(operator.did('connect')).to.deep.equal({ do: 'connect', context: 'prod' });
    operator.daemon.tokens = [token(7)];
    operator.acts({ on: 'connected', target: place });
    expect(operator.says).to.equal('Switched to prod');
    expect(operator.state.undoHistory).to.deep.equal({ undo: [], redo: [] });
    expect(operator.marks).to.be.empty;
    expect(operator.cursor?.name).to.equal('name-7');
    expect(operator.press('x').dialog.title).to.match(/in prod$/);
  });

  it('are not called connected if the daemon refuses the management token', () => {
    const operator = choosing();
    operator.daemon.failing = () => DENIED;
    operator.press('j', 'enter').acts({ on: 'connected', target: place });
    expect(operator.state.connection.is).to.equal('denied');
    expect(operator.state.message).to.equal(null);
  });

  it('do not switch while a change is pending, and send no change while switching', () => {
    const operator = choosing().press('escape');
    operator.isHeld = true;
    operator.press('x', 'tab', 'enter', 'c').acts({
      on: 'loaded',
      request: { of: 'contexts' },
      data: operator.daemon.contexts,
    });
    operator.press('j', 'enter');
    expect(operator.says).to.match(/A change is pending/);
    expect(operator.did('connect')).to.equal(undefined);
    operator.isHeld = false;
    operator.hears().press('c', 'j', 'enter');
    expect(operator.press('u').says).to.equal('switching to prod: cannot send changes');
    operator.press('c', 'j', 'enter');
    expect(operator.says).to.equal('Already switching to prod');
  });

  it('that cannot be resolved change nothing', () => {
    const operator = choosing().press('j', 'enter');
    operator.acts({ on: 'notConnected', context: 'prod', failure: UNREACHABLE });
    expect(operator.says).to.match(/^prod: ECONNREFUSED/);
    expect(operator.length).to.equal(2);
    expect(operator.press('x').dialog.title).to.match(/name-0/);
  });

  it('that cannot be read do not affect the connection', () => {
    const operator = watching();
    operator.daemon.failing = ({ of }) => (of === 'contexts' ? { ...UNREACHABLE, message: 'no permission' } : null);
    operator.press('c');
    expect(operator.top).to.have.nested.property('failure.message', 'no permission');
    expect(operator.state.connection.is).to.equal('live');
  });

  it('that are read do not affect the connection either', () => {
    const operator = disconnected();
    operator.daemon.failing = ({ of }) => (of === 'contexts' ? null : UNREACHABLE);
    expect(operator.press('c').state.connection.is).to.equal('offline');
  });
});

describe('clock difference', () => {
  it('stays unchanged after a response without a date', () => {
    const operator = watching().acts({ on: 'heard', skewMs: -60_000 }).acts({ on: 'heard', skewMs: null });
    expect(operator.state.connection.skewMs).to.equal(-60_000);
  });
});
