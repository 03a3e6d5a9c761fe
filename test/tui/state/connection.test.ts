import { expect } from 'chai';
import type { Failure } from '../../../tui/state/exchange.js';
import { stripVTControlCharacters } from 'node:util';
import { linesOf } from '../../../tui/lines.js';
import { Operator } from '../operator.js';
import { DENIED, REFUSED, SimulatedDaemon, token, UNREACHABLE } from '../simulated.js';

const watching = () => new Operator({ daemon: new SimulatedDaemon({ tokens: [token(0), token(1)] }) });
const away = (failure: Failure = UNREACHABLE) => {
  const operator = watching();
  operator.daemon.failing = () => failure;
  return operator.passes(2_000);
};

describe('asking again', () => {
  it('happens every two seconds, with one wake of each name', () => {
    const operator = watching().forgets().passes(10_000);
    expect(operator.asked('status')).to.equal(5);
    expect(operator.asked('tokens')).to.equal(5);
    expect([...operator.wakes.keys()]).to.have.members(['refresh', 'second']);
  });

  it('does not pile up while answers stay away', () => {
    const operator = watching();
    operator.isHeld = true;
    const pages = operator.forgets().passes(60_000).asked('tokens');
    expect(pages).to.be.at.most(2);
    expect([...operator.wakes.keys()]).to.have.members(['refresh', 'second']);
  });

  it('rests while paused, and goes on at once when p is pressed again', () => {
    const operator = watching().press('p').forgets().passes(20_000);
    expect(operator.asked('status')).to.equal(0);
    expect(operator.press('p').asked('status')).to.equal(1);
    expect(operator.passes(2_000).asked('status')).to.equal(2);
  });

  it('is asked of what is shown only', () => {
    const operator = watching().press('5').forgets().passes(2_000);
    expect(operator.asked('cache')).to.equal(1);
    expect(operator.asked('tokens')).to.equal(0);
  });
});

describe('a daemon that is away', () => {
  it('leaves its data on the screen, with when it was from', () => {
    const operator = away();
    expect(operator.state.connection).to.include({ is: 'offline', failures: 1 });
    expect(operator.state.connection.answeredMs).to.be.lessThan(operator.nowMs);
    expect(operator.length).to.equal(2);
    expect(operator.press('j').cursor?.name).to.equal('name-1');
  });

  it('is asked less and less often, but at least every 15 seconds, for however long', () => {
    const operator = away().forgets();
    operator.passes(15_000);
    expect(operator.asked('status')).to.be.within(3, 4);
    operator.passes(3_600_000).forgets().passes(60_000);
    expect(operator.asked('status')).to.equal(4);
    expect(operator.state.connection.retryMs).to.be.greaterThan(operator.nowMs - 1);
  });

  it('is not asked more often because tabs are looked through', () => {
    const operator = away().passes(20_000);
    const { retryMs } = operator.state.connection;
    operator.press('1', '2', '3', '4', '5', '6', '2').forgets();
    expect(operator.state.connection.retryMs).to.equal(retryMs);
    operator.passes((retryMs ?? 0) - operator.nowMs - 1);
    expect(operator.asked('status')).to.equal(0);
  });

  it('is found again by itself, which is told of', () => {
    const operator = away().passes(10_000);
    operator.daemon.failing = () => null;
    operator.passes(15_000);
    expect(operator.state.connection).to.include({ is: 'live', failures: 0, retryMs: null, failure: null });
    const operatorWaiting = away();
    operatorWaiting.daemon.failing = () => null;
    expect(operatorWaiting.passes(1_000).says).to.equal('Back again');
  });

  it('is asked at once with ^r', () => {
    const operator = away().passes(10_000);
    operator.daemon.failing = () => null;
    expect(operator.press('ctrl+r').state.connection.is).to.equal('live');
  });
});

describe('a daemon that hangs', () => {
  const shown = (operator: Operator) => linesOf(operator.state).map(stripVTControlCharacters);
  /** Questions stay without an answer from now on. */
  function hanging(): Operator {
    const operator = watching().passes(2_000);
    operator.isHeld = true;
    return operator;
  }

  it('is stale after three missed refreshes, with an age that counts up, and live again when it answers (finding A4)', () => {
    const operator = hanging().passes(5_900);
    expect(shown(operator)[0]).to.contain('● live');
    operator.passes(4_000);
    const [header = ''] = shown(operator);
    expect(header).to.match(/▲ stale \d+s/);
    const seconds = Number(/stale (\d+)s/.exec(header)?.[1]);
    expect(seconds).to.be.within(8, 10);
    expect(shown(operator.passes(5_000))[0]).to.contain(`stale ${seconds + 5}s`);
    expect(shown(operator).at(-2)).to.match(/the daemon does not answer .*data from/);
    operator.isHeld = false;
    operator.hears();
    expect(shown(operator)[0]).to.contain('● live');
    expect(operator.says).to.equal('Back again');
  });

  it('is stale too while only what is shown is not answered (finding A4)', () => {
    const operator = watching().passes(2_000);
    const { daemon } = operator;
    operator.isHeld = true;
    for (let n = 0; n < 6; n++) {
      operator.passes(2_000);
      for (const of of ['status', 'projects'] as const) operator.acts(daemon.answer({ of }));
    }
    expect(operator.state.connection.is).to.equal('stale');
    expect(shown(operator)[0]).to.match(/stale 1\ds/);
  });

  it('is told of in a dialog that was open before, and in one that is opened on old data (finding A4)', () => {
    const operator = hanging().press('x').passes(10_000);
    expect(shown(operator).join('\n')).to.match(/! The daemon does not answer: what is shown is \d+s old\./);
    operator.press('escape', 'j', 'x');
    expect(shown(operator).join('\n')).to.match(/! The daemon does not answer: what is shown is \d+s old\./);
  });

  it('does not answer a change: that is said while it is waited for, and its outcome is honest (finding A4)', () => {
    const operator = hanging().press('x', 'tab', 'enter').passes(4_000);
    expect(shown(operator).at(-2)).to.contain('a change was sent 4s ago and is not answered yet');
    const { change } = operator.did('change')!;
    operator.loses().acts({ on: 'refused', change, failure: { ...UNREACHABLE, message: 'no answer in time' } });
    expect(operator.says).to.equal('no answer in time; whether it was done is not known');
  });

  it('is not stale because the operator paused, or looks at a secret (finding A4)', () => {
    const operator = watching().press('p').passes(60_000);
    expect(operator.state.connection.is).to.equal('live');
  });
});

describe('a daemon that answers otherwise than it was asked', () => {
  it('is stale while one question fails, though others are answered, and does not flicker', () => {
    const operator = watching();
    operator.daemon.failing = ({ of }) => (of === 'status' ? REFUSED : null);
    for (let second = 0; second < 30; second++) {
      operator.passes(1_000);
      if (second > 2) expect(operator.state.connection.is, `${second}`).to.equal('stale');
      expect(operator.says).not.to.equal('Back again');
    }
    operator.daemon.failing = () => null;
    expect(operator.passes(16_000).state.connection.is).to.equal('live');
  });

  it('may be changed all the same', () => {
    const operator = watching();
    operator.daemon.failing = ({ of }) => (of === 'status' ? REFUSED : null);
    operator.passes(2_000).press('x', 'tab', 'enter');
    expect(operator.daemon.made).to.have.lengthOf(1);
  });

  it('is no outage when one question takes too long', () => {
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
    it(`is asked again when its Retry-After says so: ${status}`, () => {
      const operator = away({ ...REFUSED, status, retryAfterMs: 30_000 }).forgets();
      expect(operator.state.connection.is).to.equal('stale');
      expect(operator.passes(29_000).asked('status')).to.equal(0);
      expect(operator.passes(1_000).asked('status')).to.equal(1);
    });
  }

  for (const retryAfterMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e12]) {
    it(`is asked neither at once again nor never for a Retry-After of ${retryAfterMs}`, () => {
      const operator = away({ ...REFUSED, status: 429, retryAfterMs }).forgets();
      expect(operator.passes(900).asked('status')).to.equal(0);
      expect(operator.passes(300_000).asked('status')).to.be.greaterThan(0);
    });
  }
});

describe('a management token that is refused', () => {
  it('is not tried again until the operator says so, whatever is looked at', () => {
    const operator = away(DENIED).forgets();
    operator.passes(3_600_000).press('1', '2', 'j', 'G', 's', 'enter', 'q', '3', 'j', '4', 'k', '5', '6', '2');
    operator.press('/').types('ci').press('enter').passes(5_000).press('ctrl+a');
    expect(operator.effects.filter((effect) => effect.do === 'ask')).to.be.empty;
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

  it('is not believed by an answer that comes late', () => {
    const operator = watching();
    operator.isHeld = true;
    operator.passes(2_000);
    operator.acts({ on: 'failed', question: { of: 'status' }, failure: DENIED });
    operator.isHeld = false;
    operator.hears();
    expect(operator.state.connection.is).to.equal('denied');
  });

  it('is told by a stream as well, which then is not followed any more', () => {
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
    it(`are chosen by what was pressed before the list was read: c ${keys.join(' ')} (finding A11)`, () => {
      const operator = watching();
      operator.daemon.contexts = ['here', 'second', 'third'].map(named);
      operator.isHeld = true;
      operator.press('c', ...keys);
      expect(operator.did('connect'), 'nothing is chosen from a list that nobody has seen').to.equal(undefined);
      operator.hears();
      expect(operator.did('connect')?.context).to.equal(chosen);
    });
  }

  it('are chosen by the cursor though the list comes between two keys: c G, the list, enter (finding A11)', () => {
    const operator = watching();
    operator.daemon.contexts = ['here', 'second', 'third'].map(named);
    operator.isHeld = true;
    operator.press('c', 'G');
    operator.isHeld = false;
    operator.hears().press('enter');
    expect(operator.did('connect')?.context).to.equal('third');
  });

  it('are closed at once, and what was pressed before that is forgotten (finding A11)', () => {
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

  it('are shown with the current one chosen, and left without a change', () => {
    const operator = choosing();
    expect(operator.top).to.include({ kind: 'contexts', selected: 0 });
    expect(operator.press('j', 'j', 'j').top).to.include({ selected: 1 });
    expect(operator.press('escape').did('connect')).to.equal(undefined);
  });

  it('lead to another daemon, of which nothing is known, and nothing of the other is left', () => {
    const operator = choosing().press('escape', 'space', 'x', 'tab', 'enter', 'c', 'j', 'enter');
    expect(operator.did('connect')).to.deep.equal({ do: 'connect', context: 'prod' });
    operator.daemon.tokens = [token(7)];
    operator.acts({ on: 'connected', place });
    expect(operator.says).to.equal('Now at prod');
    expect(operator.state.undo).to.equal(null);
    expect(operator.marks).to.be.empty;
    expect(operator.cursor?.name).to.equal('name-7');
    expect(operator.press('x').dialog.title).to.match(/in prod$/);
  });

  it('are not left for another while a change is on its way, and nothing is changed on the way', () => {
    const operator = choosing().press('escape');
    operator.isHeld = true;
    operator.press('x', 'tab', 'enter', 'c').acts({
      on: 'answered',
      question: { of: 'contexts' },
      answer: operator.daemon.contexts,
    });
    operator.press('j', 'enter');
    expect(operator.says).to.match(/A change is on its way/);
    expect(operator.did('connect')).to.equal(undefined);
    operator.isHeld = false;
    operator.hears().press('c', 'j', 'enter');
    expect(operator.press('u').says).to.equal('on the way to prod, not sent');
    operator.press('c', 'j', 'enter');
    expect(operator.says).to.equal('On the way to prod already');
  });

  it('that cannot be reached leave everything as it was', () => {
    const operator = choosing().press('j', 'enter');
    operator.acts({ on: 'notConnected', context: 'prod', failure: UNREACHABLE });
    expect(operator.says).to.match(/^prod: ECONNREFUSED/);
    expect(operator.length).to.equal(2);
    expect(operator.press('x').dialog.title).to.match(/name-0/);
  });

  it('that cannot be read say nothing of the daemon', () => {
    const operator = watching();
    operator.daemon.failing = ({ of }) => (of === 'contexts' ? { ...UNREACHABLE, message: 'no permission' } : null);
    operator.press('c');
    expect(operator.top).to.have.nested.property('failure.message', 'no permission');
    expect(operator.state.connection.is).to.equal('live');
  });

  it('that are read say nothing of the daemon either', () => {
    const operator = away();
    operator.daemon.failing = ({ of }) => (of === 'contexts' ? null : UNREACHABLE);
    expect(operator.press('c').state.connection.is).to.equal('offline');
  });
});

describe('what is seen of a clock', () => {
  it('is kept when an answer does not say', () => {
    const operator = watching().acts({ on: 'heard', skewMs: -60_000 }).acts({ on: 'heard', skewMs: null });
    expect(operator.state.connection.skewMs).to.equal(-60_000);
  });
});
