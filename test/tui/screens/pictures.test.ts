import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { pictures } from '../../screenshots/pictures.js';

const FOLDER = join(import.meta.dirname, '../../../../docs/screenshots');

describe('screenshots of the terminal UI', () => {
  for (const [name, svg] of pictures()) {
    it(`${name} is up to date (npm run screenshots)`, () => {
      expect(readFileSync(join(FOLDER, name), 'utf8') === svg).to.equal(true);
    });
  }
});
