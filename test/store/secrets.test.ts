import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SettingsError } from '../../config/settings.js';
import { DecryptionFailed, SecretBox } from '../../daemon/store/secrets.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { startDaemon, temporaryFolder, type TestDaemon, type TestDaemonOptions } from '../support/daemon.js';
import { write } from '../support/management.js';
import { type Provider, startProvider } from '../support/provider.js';

describe('secrets', () => {
  describe('the encryption box', () => {
    const box = new SecretBox(randomBytes(32));
    const sealed = box.seal('the key', 'project:a:api_key');

    it('I10 decrypts what it encrypted, and encrypts the same text differently each time', () => {
      expect(box.open(sealed, 'project:a:api_key')).to.equal('the key');
      expect(box.seal('the key', 'project:a:api_key').text).not.to.equal(sealed.text);
    });

    it('I10 does not decrypt in another place', () => {
      expect(() => box.open(sealed, 'project:b:api_key')).to.throw(DecryptionFailed);
    });

    it('I10 does not decrypt what was encrypted with another key', () => {
      const other = new SecretBox(randomBytes(32));
      expect(() => other.open(sealed, 'project:a:api_key')).to.throw(DecryptionFailed);
      expect(() => other.open({ ...sealed, keyId: other.keyId }, 'project:a:api_key')).to.throw(DecryptionFailed);
    });

    it('I10 does not decrypt a ciphertext with any changed bit, or a truncated one', () => {
      const bytes = Buffer.from(sealed.text, 'base64');
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const changed = Buffer.from(bytes);
        changed[bit >> 3]! ^= 1 << (bit & 7);
        expect(() => box.open({ ...sealed, text: changed.toString('base64') }, 'project:a:api_key')).to.throw(
          DecryptionFailed,
        );
      }
      for (let length = 0; length < bytes.length; length++) {
        const text = bytes.subarray(0, length).toString('base64');
        expect(() => box.open({ ...sealed, text }, 'project:a:api_key')).to.throw(DecryptionFailed);
      }
    });

    it('accepts only keys of 32 bytes', () => {
      for (const length of [0, 16, 31, 33]) expect(() => new SecretBox(randomBytes(length))).to.throw(RangeError);
    });
  });

  describe('at rest', () => {
    let daemon: TestDaemon | undefined;
    let provider: Provider;

    beforeEach(async () => {
      provider = await startProvider();
    });
    afterEach(async () => {
      await daemon?.stop();
      daemon = undefined;
      await provider.stop();
    });

    const start = async (options: TestDaemonOptions = {}) =>
      (daemon = await startDaemon({ upstream: provider.url, ...options }));
    const refusalOf = (options: TestDaemonOptions) =>
      startDaemon(options).then(
        (started) => {
          daemon = started;
          throw new Error('the daemon started');
        },
        (error: unknown) => {
          expect(error).to.be.instanceOf(SettingsError);
          return (error as SettingsError).problems.join('\n');
        },
      );
    /** A database with one project, encrypted as `env` specifies, without a running daemon. */
    const leftBehind = async (options: TestDaemonOptions = {}) => {
      const own = await start(options);
      await own.createProject();
      await own.stop();
      daemon = undefined;
      return own;
    };

    it('I10 an upstream key copied to the row of another project is not used for it', async () => {
      const own = await start();
      const [rich, poor] = [await own.createProject(), await own.createProject()];
      const { id, token } = await own.createToken(poor.id);
      await write(
        own,
        'UPDATE projects SET api_key = (SELECT api_key FROM projects WHERE id = $rich) WHERE id = $poor',
        { rich: rich.id, poor: poor.id },
      );
      await own.manage('PATCH', `/manage/tokens/${id}`, { is_active: true }); // Forces it to be read again.
      expect((await own.call(token)).status).to.equal(503);
      expect(provider.received).to.deep.equal([]);
    });

    it('the key file is created next to a new database, readable only by its owner', async () => {
      const { databasePath } = await leftBehind({ makesKeyFile: true });
      const file = `${databasePath}.key`;
      expect(statSync(file).mode & 0o777).to.equal(0o600);
      expect(Buffer.from(readFileSync(file, 'utf8'), 'base64')).to.have.length(32);
    });

    it('the key file decrypts the keys after a restart', async () => {
      const own = await start();
      const { token } = await own.createToken((await own.createProject()).id);
      await own.stop();
      const again = await start({ dir: own.dir });
      expect((await again.call(token)).status).to.equal(200);
    });

    it('with ENCRYPTION_KEY there is no key file', async () => {
      const { dir } = await leftBehind({ env: { ENCRYPTION_KEY: canaryEncryptionKey() } });
      expect(readdirSync(dir)).not.to.include('llmp.db.key');
    });

    it('I12 a wrong ENCRYPTION_KEY prevents startup', async () => {
      const { dir } = await leftBehind({ env: { ENCRYPTION_KEY: canaryEncryptionKey() } });
      const other = canaryEncryptionKey();
      const problem = await refusalOf({ dir, env: { ENCRYPTION_KEY: other } });
      expect(problem)
        .to.match(/^ENCRYPTION_KEY: /)
        .and.not.to.include(other);
    });

    it('I12 a missing key file of an existing database prevents startup, and none is created', async () => {
      const { dir, databasePath } = await leftBehind();
      unlinkSync(`${databasePath}.key`);
      expect(await refusalOf({ dir })).to.match(/^ENCRYPTION_KEY: .*is missing/);
      expect(readdirSync(dir)).not.to.include('llmp.db.key');
    });

    it('I12 a key file without a valid key prevents startup, and its content is not repeated', async () => {
      const dir = temporaryFolder();
      writeFileSync(join(dir, 'llmp.db.key'), 'not a key at all');
      const problem = await refusalOf({ dir });
      expect(problem)
        .to.match(/^ENCRYPTION_KEY: .*32 bytes/)
        .and.not.to.include('not a key at all');
    });

    it('after a refused startup the database is free for the next one', async () => {
      const { dir } = await leftBehind();
      await refusalOf({ dir, env: { ENCRYPTION_KEY: canaryEncryptionKey() } });
      await start({ dir });
    });
  });
});
