import { expect } from 'chai';
import type { Spot } from '../../../tui/keys/binding.js';
import { BINDINGS, bindingsOn } from '../../../tui/keys/press.js';
import { Operator } from '../operator.js';

const SPOTS = [...new Set(BINDINGS.flatMap(({ on }) => on))];
const TYPED: readonly Spot[] = ['path', 'prompt', 'palette'];

describe('the table of keys', () => {
  it('knows every spot', () => {
    expect(SPOTS).to.have.members([
      'overview',
      'tokens',
      'token',
      'projects',
      'audit',
      'cache',
      'events',
      'dialog',
      'reveal',
      'path',
      'prompt',
      'palette',
      'help',
      'contexts',
    ]);
  });

  for (const spot of SPOTS) {
    describe(`on ${spot}`, () => {
      const all = bindingsOn(spot);

      it('gives each key one meaning', () => {
        const keys = all.flatMap((binding) => binding.keys);
        expect(keys.filter((key, at) => keys.indexOf(key) !== at)).to.be.empty;
      });

      it('says of each what it is called and what it does', () => {
        for (const { label, meaning, keys } of all) {
          expect(keys).not.to.be.empty;
          expect(label, meaning).to.match(/^\S.{0,18}$/);
          expect(meaning, label).to.match(/^[^\s].*[^\s.]$/);
        }
      });

      it('gives each place in the footer to one', () => {
        const places = all.flatMap(({ footer }) => footer ?? []);
        expect(new Set(places).size).to.equal(places.length);
        expect(places).not.to.be.empty;
      });

      it('has a way out', () => {
        const ways = spot === 'reveal' ? ['enter'] : ['escape'];
        expect(all.flatMap(({ keys }) => keys)).to.include.members(ways);
        expect(all.some(({ keys }) => keys.includes('ctrl+c'))).to.equal(true);
      });

      if (TYPED.includes(spot)) {
        it('leaves every letter to the line', () => {
          expect(all.flatMap(({ keys }) => keys).filter((key) => key.length === 1 || key === 'space')).to.be.empty;
        });
      }
    });
  }

  it('has the keys that operators of k9s and lazygit expect on tokens', () => {
    const keys = bindingsOn('tokens').flatMap((binding) => binding.keys);
    const expected =
      'j k down up g G ctrl+d ctrl+u enter l escape h 1 2 3 4 5 6 tab / : ? s S space v ctrl+a * x a n u y p';
    expect(keys).to.include.members([...expected.split(' '), 'ctrl+r', 'ctrl+l', 'c', 'q', 'ctrl+c', 'ctrl+z']);
  });
});

describe('escape, and a key right behind it, which a terminal sends as that key with Alt', () => {
  it('mean the one and then the other', () => {
    const it = new Operator().press('?', 'alt+q');
    expect(it.state.layers).to.be.empty;
    expect(it.effects.at(-1)).to.deep.equal({ do: 'quit', code: 0 });
  });

  it('stay one where that means something', () => {
    const it = new Operator().press('/').types('one two').press('alt+b').types('x');
    expect(it.state.layers).to.have.nested.property('[0].line.text', 'one xtwo');
  });
});
