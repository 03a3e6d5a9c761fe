import { expect } from 'chai';
import { Operator } from '../operator.js';
import { project, SimulatedDaemon, token } from '../simulated.js';

const daemon = () =>
  new SimulatedDaemon({ tokens: [token(0), token(1)], projects: [project('web'), project('My API')] });
const entered = (it: Operator, text: string) => it.press(':').types(text).press('enter');
const copied = (it: Operator) => it.press('Y').did('copy')?.text;

describe('Y copies the command that', () => {
  it('lists the same tokens, in the same order', () => {
    const it = new Operator({ daemon: daemon() });
    expect(copied(it)).to.equal('llmp token list --sort live');
    entered(it, 't project:"My API" expires:<2h').press('s', 's');
    expect(copied(it)).to.equal(`llmp token list 'project:"My API" expires:<2h' --sort -last_used_at`);
    expect(copied(it.press('S'))).to.equal(`llmp token list 'project:"My API" expires:<2h' --sort last_used_at`);
  });

  it('lists the same projects and audit records, at the same daemon', () => {
    const it = new Operator({ daemon: daemon(), place: { context: "it's" } });
    expect(copied(entered(it, 'p state:active'))).to.equal(`llmp project list 'state:active' -c 'it'\\''s'`);
    expect(copied(entered(it, 'a action:token.revoke'))).to.equal(
      `llmp audit list 'action:token.revoke' -c 'it'\\''s'`,
    );
  });

  it('shows the same token', () => {
    const it = new Operator({ daemon: daemon(), place: { context: 'prod' } }).press('enter');
    const { id } = it.state.token!.token!;
    expect(copied(it)).to.equal(`llmp -c 'prod' token get ${id}`);
  });
});
