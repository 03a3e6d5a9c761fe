import { expect } from 'chai';
import { withChanges, writtenEnvLine } from '../../config/env-lines.js';
import { readEnvFile } from '../../config/sources.js';
import { file } from '../support/settings.js';

describe('a setting written into an env file', () => {
  const VALUES = [
    '',
    'plain',
    '/a/path:8080',
    'two words',
    ' around ',
    'a#b',
    'a #b',
    "it's",
    'say "so"',
    `it's "so"`,
    '$HOME and \\n',
    'a=b',
    '`tick`',
    'naïve ✓',
    'C:\\temp\\new',
    `'"\``,
    `"\\'$`,
  ];

  for (const value of VALUES) {
    it(`is read with the same value: ${JSON.stringify(value)}`, () => {
      const line = writtenEnvLine('REDIS_USERNAME', value);
      expect(line).not.to.equal(undefined);
      const path = file('llmp.env', `LOG_LEVEL=info\n${line ?? ''}\nLOG_FORMAT=text\n`);
      expect(readEnvFile(path).values).to.deep.equal({ LOG_LEVEL: 'info', REDIS_USERNAME: value, LOG_FORMAT: 'text' });
    });
  }

  it('is refused if it cannot be quoted', () => {
    expect(writtenEnvLine('REDIS_USERNAME', 'two\nlines')).to.equal(undefined);
    const changes = new Map([['REDIS_USERNAME', 'two\nlines']]);
    expect(() => withChanges('', changes)).to.throw(RangeError, 'REDIS_USERNAME_FILE');
  });

  it('replaces the last occurrence, and removes the others', () => {
    const text = 'A=1\n# note\nLOG_LEVEL=info\n export LOG_LEVEL = warn # why\nLOG_LEVELS=x\n';
    expect(withChanges(text, new Map([['LOG_LEVEL', 'debug']]))).to.equal(
      'A=1\n# note\nLOG_LEVEL=debug\nLOG_LEVELS=x\n',
    );
    expect(withChanges(text, new Map([['LOG_LEVEL', null]]))).to.equal('A=1\n# note\nLOG_LEVELS=x\n');
    expect(withChanges('A=1', new Map([['B', '2']]))).to.equal('A=1\nB=2\n');
  });
});
