import { expect } from 'chai';
import { layer } from '../../../tui/state/state.js';
import { screenText } from './rendering.js';
import { scene } from './scenes.js';

const problems = (count: number) =>
  Array.from({ length: count }, (_, at) => `keys.toml, line ${at + 1}: there is no action "x${at}"; use another one`);

describe('a notice about the settings', () => {
  for (const [columns, rows] of [
    [80, 24],
    [120, 40],
  ] as const) {
    it(`is shown first, and closed by any of its keys, at ${columns}x${rows}`, () => {
      for (const key of ['enter', 'escape', 'q', 'space', 'ctrl+c']) {
        const it = scene({ columns, rows, settings: { problems: problems(2) } });
        const text = screenText(it.state);
        expect(text).to.contain('┌ Your settings ─').and.to.contain('! keys.toml, line 1: there is no action "x0"');
        expect(text)
          .to.contain('! keys.toml, line 2')
          .and.to.match(/ enter|⏎ close/);
        expect(layer(it.press(key).state)).to.equal(undefined);
        expect(screenText(it.state)).not.to.contain('keys.toml');
      }
    });
  }

  it('is scrolled to its end and back when it does not fit', () => {
    const it = scene({ columns: 60, rows: 12, settings: { problems: problems(20) } });
    expect(screenText(it.state)).to.contain('line 1:').and.not.to.contain('line 20:');
    it.press(...Array.from({ length: 40 }, () => 'j'));
    expect(screenText(it.state)).to.contain('line 20:').and.not.to.contain('line 1:');
    it.press(...Array.from({ length: 20 }, () => 'k'));
    expect(screenText(it.state)).to.contain('line 1:').and.not.to.contain('line 20:');
  });
});
