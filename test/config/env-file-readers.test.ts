import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadSettings } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { file, problemsIn } from '../support/settings.js';

/**
 * What three readers of env files make of a line.
 *
 * systemd: EnvironmentFile= in systemd.exec(5). "Empty lines, lines without an '=' separator, or lines starting with ';' or '#' will be
 * ignored"; white space around a value is dropped; quotes and backslashes are those of a POSIX shell, except that nothing is expanded.
 * Docker: --env-file of docker run. A line that begins with # is ignored; a value is all that follows the first =, unchanged, with its
 * quotes; a name must not contain white space; the file must be UTF-8, and a byte order mark is dropped.
 *
 * [the rule, the line, systemd's value, Docker's value, llmp's value]; null: the line has no setting, or is refused.
 */
const RULES: readonly [string, string, string | null, string | null, string | null][] = [
  ['# within a value is part of it', 'REDIS_PASSWORD=abc#xyz', 'abc#xyz', 'abc#xyz', 'abc#xyz'],
  ['# after white space too', 'REDIS_PASSWORD=abc #xyz', 'abc #xyz', 'abc #xyz', 'abc #xyz'],
  ['# may begin a value', 'REDIS_PASSWORD=#xyz', '#xyz', '#xyz', '#xyz'],
  ['# begins a comment at the start of a line', '#REDIS_PASSWORD=abc', null, null, null],
  ['and after white space there', ' \t# REDIS_PASSWORD=abc', null, null, null],
  ['a line may be blank', '', null, null, null],
  ['a value may be empty', 'REDIS_PASSWORD=', '', '', ''],
  ['= may be part of a value', 'REDIS_PASSWORD=a=b==', 'a=b==', 'a=b==', 'a=b=='],
  ['$ is not expanded', 'REDIS_PASSWORD=$HOME${HOME}', '$HOME${HOME}', '$HOME${HOME}', '$HOME${HOME}'],
  ['quotes within a value are part of it', `REDIS_PASSWORD=it's "so"`, `it's "so"`, `it's "so"`, `it's "so"`],
  ['backticks are no quotes', 'REDIS_PASSWORD=`abc`', '`abc`', '`abc`', '`abc`'],
  ['other letters are kept', 'REDIS_PASSWORD=naïve✓', 'naïve✓', 'naïve✓', 'naïve✓'],
  ['white space before a name is dropped', '  REDIS_PASSWORD=abc', 'abc', 'abc', 'abc'],
  // Where the two differ.
  ['white space around a value is dropped', 'REDIS_PASSWORD= abc ', 'abc', ' abc ', 'abc'],
  ['white space after a name is dropped', 'REDIS_PASSWORD =abc', 'abc', null, 'abc'],
  ['single quotes are dropped', `REDIS_PASSWORD='a "b" \\n #c'`, 'a "b" \\n #c', `'a "b" \\n #c'`, 'a "b" \\n #c'],
  ['double quotes are dropped', `REDIS_PASSWORD="a 'b' #c"`, "a 'b' #c", `"a 'b' #c"`, "a 'b' #c"],
  ['within them \\ escapes', 'REDIS_PASSWORD="\\"\\\\\\$\\`\\n"', '"\\$`\\n', '"\\"\\\\\\$\\`\\n"', '"\\$`\\n'],
  ['outside of them it does not', 'REDIS_PASSWORD=a\\b', 'ab', 'a\\b', 'a\\b'],
  ['text after quotes is refused', 'REDIS_PASSWORD="abc" # def', 'abc# def', '"abc" # def', null],
  ['a quote that stays open is refused', 'REDIS_PASSWORD="abc', 'abc\nLOG_FORMAT=text\n', '"abc', null],
  ['a carriage return is dropped', 'REDIS_PASSWORD=abc\r', 'abc', 'abc\r', 'abc'],
  ['; begins no comment', ';REDIS_PASSWORD=abc', null, null, null],
];

function valueOf(line: string): string | null {
  const path = file('llmp.env', `LOG_LEVEL=info\n${line}\nLOG_FORMAT=text\n`);
  try {
    const { REDIS_PASSWORD, ...others } = readEnvFile(path).values;
    expect(others).to.deep.equal({ LOG_LEVEL: 'info', LOG_FORMAT: 'text' });
    return REDIS_PASSWORD ?? null;
  } catch {
    return null;
  }
}

describe('findings-3 B3: an env file is read by llmp as by systemd and Docker', () => {
  for (const [rule, line, systemd, docker, llmp] of RULES) {
    it(`${rule}: ${line}`, () => {
      expect(valueOf(line)).to.equal(llmp);
      // The table itself: what the two agree on is the rule, and otherwise no third value is invented.
      if (systemd === docker) expect(llmp).to.equal(systemd);
      else expect([systemd, docker, null]).to.include(llmp);
    });
  }

  it('and a line may begin with export, as in a file for a shell', () => {
    expect(valueOf('export REDIS_PASSWORD=abc')).to.equal('abc');
  });

  it('so a management token with # is complete, and not a shorter one', () => {
    const token = `${canary('management')}#xyz`;
    const given = readEnvFile(file('llmp.env', `MANAGEMENT_TOKEN=${token}\n`));
    expect(loadSettings({}, { file: given }).settings.managementToken).to.equal(token);
  });

  it('and a value that seems to include a comment is warned about, without the value', () => {
    const path = file('llmp.env', `REDIS_PASSWORD=abc # the password\nREDIS_USERNAME="a #b"\n`);
    const { warnings } = loadSettings({ MANAGEMENT_TOKEN: canary('management') }, { file: readEnvFile(path) });
    expect(warnings).to.deep.equal([
      `${path}, line 1: the value of REDIS_PASSWORD includes all that follows #; a comment needs its own line`,
    ]);
  });
});

describe('findings-3 B12: a text file', () => {
  const BOM = '\ufeff';
  const written = (content: string, encoding: 'utf8' | 'utf16le' | 'latin1') => {
    const path = join(temporaryFolder(), 'llmp.env');
    writeFileSync(path, Buffer.from(content, encoding));
    return path;
  };

  it('may begin with a byte order mark', () => {
    const given = readEnvFile(written(`${BOM}IP_RATE_LIMIT=7\n`, 'utf8'));
    const { reloadable, warnings } = loadSettings({ MANAGEMENT_TOKEN: canary('management') }, { file: given });
    expect(reloadable.ipRateLimit).to.equal(7);
    expect(warnings).to.deep.equal([]);
  });

  it('may do so if a setting names it', () => {
    const path = written(`${BOM}p-ss\n`, 'utf8');
    const { settings } = loadSettings({ MANAGEMENT_TOKEN: canary('management'), REDIS_PASSWORD_FILE: path });
    expect(settings.redisPassword).to.equal('p-ss');
  });

  for (const [what, content, encoding, why] of [
    ['UTF-16', `${BOM}IP_RATE_LIMIT=7\r\n`, 'utf16le', 'it is UTF-16; save it as UTF-8'],
    ['UTF-16 without a mark', 'IP_RATE_LIMIT=7\r\n', 'utf16le', 'it is not UTF-8 text'],
    ['Latin-1', 'REDIS_PASSWORD=naïve\n', 'latin1', 'it is not UTF-8 text'],
  ] as const) {
    it(`in ${what} is refused`, () => {
      const path = written(content, encoding);
      expect(problemsIn(() => readEnvFile(path))).to.deep.equal([`--env-file: cannot read ${path}: ${why}`]);
      const env = { MANAGEMENT_TOKEN: canary('management'), REDIS_PASSWORD_FILE: path };
      expect(problemsIn(() => loadSettings(env))).to.deep.equal([`REDIS_PASSWORD_FILE: cannot read ${path}: ${why}`]);
    });
  }
});
