/** A new key of a project is checked with the provider. */
import { expect } from 'chai';
import { Operator } from '../operator.js';
import { SimulatedDaemon } from '../simulated.js';

const KEY = 'new-key';

/** An operator who has entered a new key. */
function entered(daemon: SimulatedDaemon): Operator {
  const operator = new Operator({ daemon }).press('3', 'K');
  return operator.types(KEY).press('enter', 'enter', 'enter');
}

describe('a new key of a project', () => {
  for (const [keyCheck, words] of [
    ['accepted', 'The provider accepted the key.'],
    ['not_confirmed', 'The provider could not confirm the key.'],
    ['not_supported', 'The key was not checked: the daemon is of an earlier release.'],
  ] as const) {
    it(`is reported as ${keyCheck}`, () => {
      const daemon = new SimulatedDaemon();
      daemon.keyCheck = keyCheck;
      expect(entered(daemon).says).to.equal(`Changed the key of web. ${words}`);
    });
  }

  for (const [code, status, words] of [
    ['key_refused', 422, 'The provider refused this key; nothing was changed'],
    ['key_not_checked', 502, 'Nothing was changed: the provider did not respond to the check of the key.'],
  ] as const) {
    it(`stays in its form, with the problem at its field, after ${code}`, () => {
      const daemon = new SimulatedDaemon();
      daemon.refusing = { kind: 'refused', status, code, message: 'a message of the daemon', retryAfterMs: null };
      const { dialog } = entered(daemon);
      expect(dialog.problem).to.contain(words).and.not.to.contain('unknown');
      expect(dialog.fields[dialog.focus]).to.have.property('label', "Provider's key");
      expect(dialog.fields[dialog.focus]!.line.text).to.equal(KEY);
    });
  }

  it('is announced with the check in its form', () => {
    const { dialog } = new Operator({ daemon: new SimulatedDaemon() }).press('3', 'K');
    expect(dialog.notes.map(({ words }) => words).join(' ')).to.contain(
      'checked with the provider before it is stored',
    );
  });
});
