import { expect } from 'chai';
import { screenText } from '../screens/rendering.js';
import { Operator } from '../operator.js';
import { DENIED, SimulatedDaemon, token } from '../simulated.js';

const SECRET = 'sk-wt-4escAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAJgwc';
const SHOWN = 'sk-wt-4esc…Jgwc';

function watching(): Operator {
  const tokens = [token(0), token(1, { name: 'leaked', obfuscated: SHOWN }), token(2)];
  const daemon = new SimulatedDaemon({ tokens });
  daemon.secrets.set(SECRET, SHOWN);
  return new Operator({ daemon, tab: 'tokens' });
}
const opens = (it: Operator) => it.state.token?.token?.name;
const everything = ({ state, effects }: Operator) => JSON.stringify({ state, effects }) + screenText(state);

describe('a search by a secret', () => {
  for (const [how, search] of [
    ['pasted on a screen', (it: Operator) => it.pastes(`${SECRET}\n`)],
    ['pasted into the filter', (it: Operator) => it.press('/').pastes(` ${SECRET} `)],
    ['typed into the filter', (it: Operator) => it.press('/', 'space').types(SECRET).press('enter')],
  ] as const) {
    it(`opens its token, and keeps no secret, ${how}`, () => {
      const it = search(watching().press('/').types('name').press('enter').forgets());
      expect(it.screen).to.equal('token');
      expect(opens(it)).to.equal('leaked');
      expect(it.top).to.equal(undefined);
      expect(it.state.tokens.filter).to.equal('name');
      expect(everything(it)).not.to.contain(SECRET.slice(6));
    });
  }

  it('shows none of it while it is typed, and says what enter does', () => {
    const it = watching().press('/').types(SECRET);
    expect(screenText(it.state)).to.contain('enter finds its token').and.not.to.contain(SECRET.slice(6, 20));
    it.passes(1_000);
    expect(it.state.tokens.filter).to.equal('');
  });

  it('says that no token has it', () => {
    const it = watching().pastes(SECRET.replace('4esc', '5esc'));
    expect(it.says).to.equal('No token has this secret');
    expect(it.screen).to.equal('tokens');
  });

  it('does not open the token over a dialog that was opened meanwhile', () => {
    const it = watching();
    it.isHeld = true;
    it.pastes(SECRET).press('x');
    it.isHeld = false;
    expect(it.hears().says).to.equal('The token with this secret is leaked');
    expect(it.dialog.title).to.match(/Revoke/);
  });

  it('sends nothing after the management token was refused', () => {
    const it = watching();
    it.daemon.failing = () => DENIED;
    it.passes(2_000).forgets().pastes(SECRET);
    expect(it.asked('tokensOfSecret')).to.equal(0);
    expect(it.says).to.match(/management token was refused/);
  });
});

describe('a search by what is shown of a secret', () => {
  for (const written of [SHOWN, 'sk-wt-4esc...Jgwc', `  ${SHOWN} `]) {
    for (const how of ['types', 'pastes'] as const) {
      it(`opens its token: ${how} ${written}`, () => {
        const it = watching().press('/')[how](written);
        // What is pasted is complete.
        if (how === 'types') {
          expect(screenText(it.state)).to.contain('4esc').and.to.contain('enter finds its token');
          it.press('enter');
        }
        expect(opens(it)).to.equal('leaked');
      });
    }
  }

  it('works on every list', () => {
    for (const tab of ['3', '4', '6', '7']) {
      const it = watching().press(tab, '/').types(SHOWN).press('enter');
      expect(opens(it), tab).to.equal('leaked');
    }
  });

  it('says that no token has it, or that several have', () => {
    expect(watching().press('/').types('sk-wt-none…here').press('enter').says).to.equal(
      'No token has a secret that is shown as sk-wt-none…here',
    );
    const it = watching();
    it.daemon.tokens.push(token(3, { obfuscated: SHOWN }));
    expect(it.press('/').types(SHOWN).press('enter').says).to.match(/^Several tokens have .*: \w{8}, \w{8}$/);
  });
});
