import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT } from '../../console/failure.js';
import { wholeTree } from '../../cli/commands.js';
import { parse } from '../../cli/parser.js';
import type { Shell } from '../../cli/shell.js';
import { llmp } from './captured.js';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';

describe('the command line', () => {
  it('prints an introduction without a command', async () => {
    const { exitCode, out, err } = await llmp([]);
    expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
    expect(out.match(/^ {2}llmp /gm)).to.have.length(5);
    for (const command of ['llmp help', 'llmp demo', 'llmp tui']) expect(out).to.contain(command);
  });

  it('prints its version, and the build and its parts with -v', async () => {
    for (const args of ['version', '--version']) {
      const { exitCode, out } = await llmp(args);
      expect(exitCode).to.equal(0);
      expect(out).to.match(/\d+\.\d+\.\d+\n$/);
    }
    for (const args of ['version -v', '--version -v', '-v --version', '--verbose version']) {
      const { exitCode, out } = await llmp(args);
      expect(exitCode).to.equal(0);
      expect(out)
        .to.match(
          /^llmp \d+\.\d+\.\d+\nbuild {4}(?:[\d-]+T[\d:]+Z|unknown)\ncommit {3}(?:[0-9a-f]{40}(?:-dirty)?|unknown)\n/,
        )
        .and.to.include(`\nNode.js  ${process.versions.node}\nSQLite   3.`);
    }
    expect(JSON.parse((await llmp('version -o json')).out)).to.include.keys('version', 'node');
  });

  it('says with its version that its Node.js gets no security fixes, and what to install', async () => {
    for (const args of ['version -v', '--version -v']) {
      const at = async (time: string) => (await llmp(args, { nowMs: Date.parse(time) })).out;
      expect(await at('2026-04-30T12:00:00Z')).to.match(/\nSQLite {3}\S+\nprices {3}[\d-]{10} [0-9a-f]{64}\n$/);
      expect(await at('2035-01-01')).to.match(
        /\n\nNode\.js [\d.]+ has had no security fixes since .*\. Install .*\.\n$/,
      );
    }
  });

  describe('help', () => {
    it('lists every command', async () => {
      const words = new Set((await wholeTree()).commands.flatMap(({ path }) => path[0] ?? []));
      for (const args of ['help', '--help', '-h']) {
        const { exitCode, out } = await llmp(args);
        expect(exitCode).to.equal(0);
        for (const word of words)
          if (word !== '__complete') expect(out).to.match(new RegExp(`^  (?:\\w+, )?${word}\\b`, 'm'));
      }
    });

    it('shows a command with its options and examples, in every form of the request', async () => {
      const { out } = await llmp('help token generate');
      expect(out).to.contain('--max-requests <COUNT>').and.to.contain('llmp token generate --duration 48');
      expect((await llmp('token generate --help')).out.trim()).to.equal(out.trim());
    });

    it('explains a group', async () => {
      for (const args of ['help manage token', 'manage token --help', 'help token']) {
        expect((await llmp(args)).out)
          .to.contain('reactivate')
          .and.to.contain('revoke');
      }
    });

    it('shows examples before options, and further reading last', async () => {
      const { out } = await llmp('help token list');
      const [examples, own, more] = ['Examples:', '--project-id <ID>', 'llmp man token'].map((it) => out.indexOf(it));
      expect(examples).to.be.greaterThan(0).and.below(own!);
      expect(own).to.be.below(more!);
    });

    it('fits the width of the terminal', async () => {
      for (const args of ['help', 'help token generate', 'help formatting']) {
        const { out } = await llmp(args, { terminal: 60 });
        const long = out.split('\n').filter((line) => line.length > 60 && !line.startsWith('  llmp '));
        expect(long, args).to.be.empty;
      }
    });

    it('lists its topics', async () => {
      const { out } = await llmp('help');
      for (const topic of ['environment', 'formatting', 'exit-codes', 'tokens', 'security']) {
        expect(out).to.contain(`\n  help ${topic} `);
        const { exitCode, out: text } = await llmp(`help ${topic}`);
        expect(exitCode).to.equal(0);
        expect(text.split('\n').length).to.be.greaterThan(5);
      }
    });

    it('has every exit code in its topic', async () => {
      const { out } = await llmp('help exit-codes');
      const named = [...out.matchAll(/^ {2}(\d+) +[A-Z]/gm)].map(([, code]) => Number(code));
      expect(named).to.deep.equal(Object.values(EXIT));
    });

    it('has valid examples of the command that they explain', async () => {
      for (const { path, command } of (await wholeTree()).commands) {
        for (const [line] of command.examples) {
          expect(line).to.contain(path.join(' '));
          const [words = ''] = line.split(/ [|<>]/);
          const argv = words.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", '')) ?? [];
          const { result } = await parse(argv, { env: {} } as Shell);
          expect(result.kind === 'failed' ? result.failure.message : 'chosen', line).to.equal('chosen');
        }
      }
    });

    it('exits with 2 for an unknown topic, and suggests one', async () => {
      expect(await llmp('help exit-code')).to.include({ exitCode: 2, out: '' });
      expect((await llmp('help exit-code')).err).to.contain('Did you mean exit-codes?');
      expect((await llmp('help token generat')).err).to.contain('Did you mean generate?');
    });
  });

  describe('a mistake', () => {
    it('in a command gets the nearest one', async () => {
      const { exitCode, out, err } = await llmp('token revok 3fa91c2e');
      expect({ exitCode, out }).to.deep.equal({ exitCode: 2, out: '' });
      expect(err).to.contain('Did you mean revoke?').and.to.contain('llmp help token');
    });

    it('in an option gets the nearest one', async () => {
      expect((await llmp('events tail --limit 5')).err).to.contain('Did you mean events list --limit?');
      expect((await llmp('token list --active-onl')).err).to.contain('Did you mean --active-only?');
    });

    it('gets the nearest one under other words, of aliases, global options and values as well', async () => {
      for (const [args, meant] of [
        ['manage tokn list', 'token'],
        ['srve', 'serve'],
        ['token list --outptu json', '--output'],
        ['token list --state actve', 'active'],
        ['token list -o jsno', 'json'],
        ['token create', 'generate'],
        ['generate', 'token generate'],
        ['whois', 'token whois'],
      ] as const) {
        const { exitCode, err } = await llmp(args);
        expect({ args, exitCode }).to.deep.equal({ args, exitCode: 2 });
        expect(err, args).to.contain(`Did you mean ${meant}?`);
      }
    });

    it('that is not similar to anything gets no suggestion', async () => {
      for (const args of ['zzzzzzzz', 'token list --zzzzzz', 'token list --state zzzzz']) {
        expect((await llmp(args)).err, args).not.to.contain('Did you mean');
      }
    });

    it('in an option does not repeat its value, which may be a secret', async () => {
      const value = canary('management');
      const { exitCode, err } = await llmp(`token list --management-tokn=${value}`);
      expect(exitCode).to.equal(2);
      expect(err).to.contain('--management-tokn').and.not.to.contain(value);
    });

    it('that has a secret in place of a command does not repeat it', async () => {
      const secret = `sk-wt-${'b'.repeat(49)}`;
      expect((await llmp(`token ${secret}`)).err).not.to.contain('bbb');
    });

    it('that omits the second word lists the choices', async () => {
      const { exitCode, err } = await llmp('token');
      expect(exitCode).to.equal(2);
      expect(err).to.contain('generate, exchange, print, list, get, update, revoke, reactivate, whois');
    });

    it('with one word too many is refused', async () => {
      expect((await llmp('token whois everything')).exitCode).to.equal(2);
    });
  });

  it('names commands by the name that it was called by, and nothing else', async () => {
    const program = 'npx llmp';
    expect((await llmp('token lst', { program })).err).to.include('See: npx llmp help token');
    const foreign = join(temporaryFolder(), 'foreign.db');
    writeFileSync(foreign, 'no database'.repeat(1_000));
    const direct = await llmp('migrate status --direct', { env: { DATABASE_URL: foreign }, program });
    expect(direct.err).to.include('not an llmp database');
  });

  it('accepts the global options anywhere', async () => {
    for (const args of ['-o json token list', 'token -o json list', 'token list -o json', 'manage --json token list']) {
      const { exitCode, err } = await llmp(args);
      expect(exitCode).to.equal(3);
      expect(JSON.parse(err)).to.include({ code: 'management_token_missing' });
    }
  });
});
