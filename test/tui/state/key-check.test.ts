/** A provider's key is checked with the provider before it is stored. */
import { expect } from 'chai';
import { KEY_CHECK_SENTENCES } from '../../../daemon/api/checked-key.js';
import type { KeyCheck } from '../../../daemon/api/vocabulary.js';
import { Operator } from '../operator.js';
import { screenText } from '../screens/rendering.js';
import { SimulatedDaemon, UNREACHABLE } from '../simulated.js';
import { canary } from '../../support/canaries.js';

const KEY = canary('upstream');

/** The forms with a key, and the project that they are about. */
const FORMS = [
  ['another key', (it: Operator) => it.press('3', 'K'), 'Changed the key of web.'],
  ['a new project', (it: Operator) => it.press('3', 'n').fills('Name', 'night'), 'Created project night.'],
] as const;

for (const [name, open, done] of FORMS) {
  describe(`the key of ${name}`, () => {
    const typed = (daemon = new SimulatedDaemon()) =>
      open(new Operator({ daemon })).goesTo("Provider's key").types(KEY);
    const keySent = ({ daemon }: Operator) => {
      const change = daemon.made.at(-1)?.change;
      return change && 'key' in change ? change.key : undefined;
    };
    /** The response does not come before `hears`. */
    function checking(): Operator {
      const operator = typed();
      operator.isHeld = true;
      return operator.submits();
    }

    for (const [keyCheck, words] of Object.entries(KEY_CHECK_SENTENCES) as [KeyCheck, string][]) {
      it(`is checked with the provider: ${keyCheck}`, () => {
        const operator = typed();
        operator.daemon.keyCheck = keyCheck;
        operator.submits();
        expect(operator.says).to.equal(`${done} ${words}`);
        expect(operator.top).to.equal(undefined);
        expect(keySent(operator)).to.include({ isToCheck: true });
      });
    }

    it('is stored without a check if the operator turns it off', () => {
      const operator = typed().goesTo('Check').press('space').submits();
      expect(operator.says).to.equal(done);
      expect(keySent(operator)).to.include({ isToCheck: false });
      expect(keySent(operator)?.secret.reveal()).to.equal(KEY);
    });

    it('is checked by default; space, n and y change that, and Enter does not', () => {
      const operator = typed().goesTo('Check');
      const isOn = (...keys: string[]) => operator.press(...keys).value('Check');
      expect(operator.value('Check')).to.equal('yes');
      expect([isOn('space'), isOn('space'), isOn('n'), isOn('n'), isOn('y'), isOn('right')]).to.deep.equal([
        ...['no', 'yes', 'no', 'no', 'yes', 'no'],
      ]);
      expect(operator.press('z').dialog.problem).to.equal('Press space to change “Check”');
      expect(operator.pastes('no').value('Check')).to.equal('no');
      operator.press('enter');
      expect([operator.value('Check'), operator.field]).to.deep.equal(['no', undefined]);
    });

    for (const [code, status, field, words] of [
      ['key_refused', 422, "Provider's key", 'The provider refused this key; nothing was stored'],
      ['key_not_checked', 502, 'Check', 'Nothing was stored: the provider did not respond to the check.'],
      ['conflict', 409, "Provider's key", 'a message of the daemon; nothing was changed'],
    ] as const) {
      it(`stays in its form, with the problem, after ${code}`, () => {
        const operator = typed().goesTo("Provider's key");
        operator.daemon.refusing = {
          kind: 'refused',
          status,
          code,
          message: 'a message of the daemon',
          retryAfterMs: null,
        };
        operator.submits();
        const { dialog } = operator;
        expect(dialog.problem).to.contain(words).and.not.to.contain('unknown');
        expect(operator.value("Provider's key")).to.equal(KEY);
        if (code !== 'conflict') expect(operator.field).to.equal(field);
        expect(operator.state.connection.is, 'the daemon is well').to.equal('live');
        operator.daemon.refusing = null;
        expect(operator.submits().says).to.equal(done);
      });
    }

    it('stays in its form if the connection is lost, and the result is unknown', () => {
      const operator = typed();
      operator.daemon.refusing = UNREACHABLE;
      operator.submits();
      expect(operator.dialog.problem).to.contain('the result is unknown');
      expect(operator.value("Provider's key")).to.equal(KEY);
    });

    describe('while it is checked', () => {
      it('is in its form, masked, with the time that it takes', () => {
        const operator = checking().passes(3_000);
        const screen = screenText(operator.state);
        expect(screen).to.contain('Checking the key with the provider… 3s  esc cancels').and.to.contain('•••');
        expect(screen).not.to.contain(KEY);
        expect(screen, 'said once').not.to.contain('not confirmed yet');
        expect(operator.footer).to.deep.equal(['escape']);
      });

      it('can be cancelled, and stays in its form', () => {
        for (const key of ['escape', 'ctrl+c']) {
          const operator = checking().forgets().press(key).loses();
          expect(operator.did('stop'), key).to.deep.equal({ do: 'stop' });
          expect(operator.did('quit'), key).to.equal(undefined);
          expect(operator.dialog.problem).to.equal(
            'Cancelled. Nothing was stored, unless the provider had just accepted the key',
          );
          expect(operator.value("Provider's key")).to.equal(KEY);
          expect(operator.state.pendingChanges).to.deep.equal([]);
          operator.isHeld = false;
          expect(operator.submits().says, 'it can be sent again').to.equal(done);
        }
      });

      it('takes no other input', () => {
        const operator = checking();
        const before = operator.state.layers;
        operator.press('x', 'space', 'tab', 'enter', 'q', 'backspace').pastes('more');
        expect(operator.state.layers).to.deep.equal(before);
        expect(operator.effects.filter((effect) => effect.do === 'change')).to.have.lengthOf(1);
        operator.isHeld = false;
        expect(operator.hears().says).to.equal(done);
      });
    });
  });
}
