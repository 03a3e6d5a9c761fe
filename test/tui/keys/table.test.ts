import { expect } from 'chai';
import type { KeyScope } from '../../../tui/keys/binding.js';
import { BINDINGS, bindingsOn } from '../../../tui/keys/press.js';
import { Operator } from '../operator.js';

const SPOTS = [...new Set(BINDINGS.flatMap(({ on }) => on))];
const TYPED: readonly KeyScope[] = ['chooser', 'search', 'path', 'prompt', 'command'];

describe('key bindings', () => {
  it('cover every scope', () => {
    expect(SPOTS).to.have.members([
      'overview',
      'tokens',
      'token',
      'projects',
      'project',
      'audit',
      'cache',
      'events',
      'top',
      'operators',
      'operator',
      'trusts',
      'trust',
      'dialog',
      'chooser',
      'waiting',
      'reveal',
      'path',
      'prompt',
      'command',
      'help',
      'search',
      'contexts',
      'columns',
      'notice',
    ]);
  });

  for (const spot of SPOTS) {
    describe(`on ${spot}`, () => {
      const all = bindingsOn(spot);

      it('have one meaning per key', () => {
        const keys = all.flatMap((binding) => binding.keys);
        expect(keys.filter((key, at) => keys.indexOf(key) !== at)).to.be.empty;
      });

      it('have a label and a description', () => {
        for (const { label, meaning, keys } of all) {
          expect(keys).not.to.be.empty;
          expect(label, meaning).to.match(/^\S.{0,18}$/);
          expect(meaning, label).to.match(/^[^\s].*[^\s.]$/);
        }
      });

      it('have unique positions in the footer', () => {
        const places = all.flatMap(({ footer }) => footer ?? []);
        expect(new Set(places).size).to.equal(places.length);
        expect(places).not.to.be.empty;
      });

      it('include a key that leaves the scope', () => {
        const ways = spot === 'reveal' ? ['enter'] : ['escape'];
        expect(all.flatMap(({ keys }) => keys)).to.include.members(ways);
        expect(all.some(({ keys }) => keys.includes('ctrl+c'))).to.equal(true);
      });

      if (TYPED.includes(spot)) {
        it('leave all letters to the input line', () => {
          expect(all.flatMap(({ keys }) => keys).filter((key) => key.length === 1 || key === 'space')).to.be.empty;
        });
      }
    });
  }

  it('have unique names for the keys file', () => {
    const actions = BINDINGS.map(({ action }) => action);
    expect(actions.filter((action, at) => actions.indexOf(action) !== at)).to.be.empty;
    for (const action of actions) expect(action).to.match(/^[a-z]+\.[a-z0-9]+(?:-[a-z0-9]+)*$/);
  });

  it('include the keys that users of k9s and lazygit expect on tokens', () => {
    const keys = bindingsOn('tokens').flatMap((binding) => binding.keys);
    const expected =
      'j k down up g G ctrl+d ctrl+u enter l escape h 1 2 3 4 5 6 tab / : ? s S space v ctrl+a * x a n u y p';
    expect(keys).to.include.members([...expected.split(' '), 'ctrl+r', 'ctrl+l', 'c', 'q', 'ctrl+c', 'ctrl+z']);
  });
});

describe('escape followed quickly by a key, which a terminal sends as that key with Alt', () => {
  it('act one after the other', () => {
    const it = new Operator().press('?', 'alt+q');
    expect(it.state.layers).to.be.empty;
    expect(it.effects.at(-1)).to.deep.equal({ do: 'quit', code: 0 });
  });

  it('act as one key if it has a binding', () => {
    const it = new Operator().press('/').types('one two').press('alt+b').types('x');
    expect(it.state.layers).to.have.nested.property('[0].line.text', 'one xtwo');
  });
});
