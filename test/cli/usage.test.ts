import { expect } from 'chai';
import { llmp } from './captured.js';
import { canary } from '../support/canaries.js';

describe('the command line', () => {
  it('says what llmp is when nothing else is asked of it', async () => {
    const { exitCode, out, err } = await llmp([]);
    expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
    expect(out.match(/^ {2}llmp /gm)).to.have.length(3);
    expect(out).to.contain('llmp help');
  });

  for (const args of ['version', '--version']) {
    it(`prints the version for ${args}`, async () => {
      const { exitCode, out } = await llmp(args);
      expect(exitCode).to.equal(0);
      expect(out).to.match(/\d+\.\d+\.\d+\n$/);
    });
  }

  describe('help', () => {
    it('lists every command', async () => {
      for (const args of ['help', '--help', '-h']) {
        const { exitCode, out } = await llmp(args);
        expect(exitCode).to.equal(0);
        for (const word of [
          'daemon, serve',
          'demo',
          'status',
          'manage',
          'token',
          'project',
          'cache',
          'config',
          'migrate',
          'help',
          'version',
        ]) {
          expect(out).to.contain(`\n  ${word} `);
        }
      }
    });

    it('explains one command with its options and examples, whichever way it is asked for', async () => {
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

    it('exits 2 for a topic that is none', async () => {
      expect((await llmp('help tokens')).exitCode).to.equal(2);
    });
  });

  describe('a mistake', () => {
    it('in a command gets the nearest one', async () => {
      const { exitCode, out, err } = await llmp('token revok 3fa91c2e');
      expect({ exitCode, out }).to.deep.equal({ exitCode: 2, out: '' });
      expect(err).to.contain('Did you mean revoke?').and.to.contain('llmp help token');
    });

    it('in an option gets the nearest one', async () => {
      expect((await llmp('token list --active-onl')).err).to.contain('Did you mean --active-only?');
    });

    it('in an option does not repeat its value, which may be a secret', async () => {
      const value = canary('management');
      const { exitCode, err } = await llmp(`token list --management-tokn=${value}`);
      expect(exitCode).to.equal(2);
      expect(err).to.contain('--management-tokn').and.not.to.contain(value);
    });

    it('that puts a secret in the place of a command does not repeat it', async () => {
      const secret = `sk-wt-${'b'.repeat(49)}`;
      expect((await llmp(`token ${secret}`)).err).not.to.contain('bbb');
    });

    it('of leaving out the verb names the choices', async () => {
      const { exitCode, err } = await llmp('token');
      expect(exitCode).to.equal(2);
      expect(err).to.contain('generate, list, get, revoke, reactivate, whois');
    });

    it('of one word too many is refused', async () => {
      expect((await llmp('token list everything')).exitCode).to.equal(2);
    });
  });

  it('accepts the global options anywhere', async () => {
    for (const args of ['-o json token list', 'token -o json list', 'token list -o json', 'manage --json token list']) {
      const { exitCode, err } = await llmp(args);
      expect(exitCode).to.equal(3);
      expect(JSON.parse(err)).to.include({ code: 'management_token_missing' });
    }
  });
});
