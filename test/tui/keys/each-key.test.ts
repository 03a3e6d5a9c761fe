import { expect } from 'chai';
import { labelOf } from '../../../tui/keys/binding.js';
import { bindingsOn, keyScopeOf } from '../../../tui/keys/press.js';
import { type State, view } from '../../../tui/state/state.js';
import { Operator } from '../operator.js';
import { DENIED, SimulatedDaemon, UNREACHABLE } from '../simulated.js';
import { full, WAYS } from '../ways.js';

/** Conditions of the daemon or the context. */
const MATTERS: Record<string, () => Operator> = {
  'all is well': () => new Operator({ daemon: full() }),
  'nothing is known yet': () => {
    const daemon = full();
    const operator = new Operator({ daemon, tab: 'cache' });
    operator.isHeld = true;
    operator.acts({ on: 'connected', target: operator.state.target });
    return operator.loses();
  },
  'there is nothing': () => new Operator({ daemon: new SimulatedDaemon({ projects: [] }) }),
  'it is offline': () => {
    const operator = new Operator({ daemon: full() });
    operator.daemon.failing = () => UNREACHABLE;
    return operator.passes(2_000);
  },
  'the token was refused': () => {
    const operator = new Operator({ daemon: full() });
    operator.daemon.failing = () => DENIED;
    return operator.passes(2_000);
  },
  'it is read-only': () => new Operator({ daemon: full(), place: { isReadonly: true } }),
  'it is protected': () => new Operator({ daemon: full(), place: { isProtected: true, context: 'prod' } }),
  'it is paused': () => new Operator({ daemon: full() }).press('p'),
  'some are marked': () => new Operator({ daemon: full() }).press('ctrl+a'),
  'the last change can be undone': () => new Operator({ daemon: full() }).press('2', 'x', 'tab', 'enter'),
  'the terminal is tiny': () => new Operator({ daemon: full() }).resizes(1, 1),
};

/** Movement keys at an end do nothing and need no message. */
const MOVES = /^(?:down|up|page down|page up|first|last|next|before)$/;

const looks = ({ nowMs: _, ...rest }: State) =>
  JSON.stringify(rest, (__, value: unknown) => (value instanceof Map ? [...value.keys()] : value));

for (const [matter, begin] of Object.entries(MATTERS)) {
  describe(`when ${matter}`, () => {
    for (const [place, way] of Object.entries(WAYS)) {
      it(`each key of ${place} acts, or reports why not`, () => {
        const operator = begin().press(...way);
        operator.isHeld = true;
        const before = { ...operator.state, message: null };
        for (const { label, keys } of bindingsOn(keyScopeOf(before))) {
          for (const key of keys) {
            operator.state = before;
            operator.forgets().press(key).loses();
            const isDone = operator.effects.length > 0 || looks(operator.state) !== looks(before);
            const isMute = MOVES.test(label) || label === view(before).screen || matter === 'the terminal is tiny';
            expect(isDone || isMute, `${key}: ${label}`).to.equal(true);
          }
        }
      });
    }

    it('each letter is harmless in every scope', () => {
      for (const way of Object.values(WAYS)) {
        const operator = begin().press(...way);
        for (const key of 'b é 漢 0 7 ~ f12 ctrl+x alt+é insert delete ctrl+space'.split(' ')) operator.press(key);
        operator.pastes('q\u001b[31m\nx').resizes(3, 3).resizes(120, 40);
        expect(operator.did('quit')).to.equal(undefined);
      }
    });
  });
}

describe('each scope', () => {
  for (const [place, way] of Object.entries(WAYS)) {
    it(`can be left with escape, or Enter for a secret: ${place}`, () => {
      const operator = MATTERS['all is well']!().press(...way);
      for (let presses = 0; presses < 6; presses++) operator.press('escape');
      operator.press('enter', 'enter', 'escape', 'escape', 'q', 'q', 'q');
      expect(operator.did('quit')).to.deep.equal({ do: 'quit', code: 0 });
    });
  }

  it('shows whether q quits or goes back', () => {
    const operator = MATTERS['all is well']!();
    const label = () =>
      labelOf(
        bindingsOn(keyScopeOf(operator.state)).find(({ keys }) => keys.includes('q'))!,
        operator.state,
      );
    expect(label()).to.equal('quit');
    operator.press('enter');
    expect(label()).to.equal('back');
  });
});

describe('a terminal that is too small to show anything', () => {
  it('accepts only the keys for the terminal itself', () => {
    const operator = new Operator({ daemon: full() }).press('x').resizes(49, 9).press('tab', 'enter').types('abc');
    expect(operator.daemon.made).to.be.empty;
    expect(operator.press('ctrl+c').top).to.equal(undefined);
    expect(operator.press('ctrl+c').did('quit')).to.deep.equal({ do: 'quit', code: 130 });
  });
});
