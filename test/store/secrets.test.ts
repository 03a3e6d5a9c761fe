import { expect } from 'chai';
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SettingsError } from '../../config/settings.js';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import { DecryptionFailed, SecretBox } from '../../daemon/store/secrets.js';
import { canary, canaryEncryptionKey } from '../support/canaries.js';
import {
  MANAGEMENT_TOKEN,
  startDaemon,
  temporaryFolder,
  type TestDaemon,
  type TestDaemonOptions,
} from '../support/daemon.js';
import { write } from '../support/management.js';
import { json, type Provider, startProvider } from '../support/provider.js';

/** A value and the forms in which it might appear. */
const formsOf = (secret: string) => [
  secret,
  Buffer.from(secret).toString('hex'),
  Buffer.from(secret).toString('base64').replace(/=+$/, ''),
];

describe('secrets', () => {
  describe('during the whole life of a daemon that logs at debug level', () => {
    const keys = ['first', 'second', 'refused', 'malformed', 'unknown', 'unwritten', 'large'].map(
      (use) => `${use}-${canary('upstream')}`,
    );
    const [first, second, refused, malformed, unknown, unwritten, large] = keys as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    const secrets: string[] = [];
    const texts: string[] = [];
    const files = new Map<string, Buffer>();

    before(async () => {
      const provider = await startProvider();
      const daemon = await startDaemon({ upstream: provider.url });
      try {
        await live(daemon, provider);
        collect(daemon);
      } finally {
        await daemon.stop();
        await provider.stop();
      }
      collect(daemon);
    });

    function collect({ dir, logged, ended }: TestDaemon) {
      for (const name of readdirSync(dir)) files.set(`${name} ${files.size}`, readFileSync(join(dir, name)));
      texts.push(...logged, JSON.stringify(ended));
    }

    async function live(daemon: TestDaemon, provider: Provider) {
      const manage = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) => {
        const response = await daemon.manage(method, path, body, headers);
        texts.push(JSON.stringify(response.body), JSON.stringify([...response.headers]));
        return response;
      };
      const call = async (secret: string, path?: string, init?: RequestInit) => {
        const response = await daemon.call(secret, path, init);
        texts.push(await response.text(), JSON.stringify([...response.headers]));
      };
      const issue = async (projectId: string) => {
        const created = await daemon.createToken(projectId, { max_requests: 20 });
        secrets.push(created.token);
        return created;
      };

      const project = await daemon.createProject({ name: 'Alpha', api_key: first });
      const { token, id }: WireTokenCreated = await issue(project.id);
      const chat = JSON.stringify({ model: 'gpt-test', stream: true, messages: [] });
      await call(token);
      await call(token, '/v1/chat/completions', { method: 'POST', body: chat });
      await call(token, `/v1/models?token=${token}`);
      await call(`${token.slice(0, -1)}_`);
      await call(token, '/v1/../manage', { headers: { 'x-api-key': token } });

      // The provider refuses the key and repeats it, then closes the connection, then is unreachable.
      provider.answer = (req, res) => {
        json(
          res,
          401,
          { error: { message: `Incorrect API key: ${req.headers.authorization}` } },
          { 'x-key': req.headers.authorization! },
        );
      };
      await call(token);
      provider.answer = (_req, res) => {
        res.destroy();
      };
      await call(token);
      provider.answer = undefined;

      await manage('PATCH', `/manage/projects/${project.id}`, { api_key: second });
      await call(token);
      await manage('POST', '/manage/projects', { name: 'Alpha', api_key: refused });
      await manage('POST', '/manage/projects', `{"name":"Beta","api_key":"${malformed}",}`);
      await manage('POST', '/manage/projects', { name: 'Beta', api_key: [unknown] });
      await manage('POST', '/manage/projects', { name: 'Beta', key: unknown });
      await manage('POST', '/manage/projects', { name: 'Beta', api_key: large.repeat(2_000) });
      await manage('POST', '/manage/tokens/lookup', { token });
      await manage('POST', '/manage/tokens/lookup', `{"token":"${token}"`);
      await manage('GET', `/manage/tokens/${token}`);
      await manage('DELETE', `/manage/projects/${token}`);
      await manage('POST', '/manage/tokens', { project_id: token });
      await manage('GET', '/manage/projects', undefined, { authorization: `Bearer ${token}` });
      await manage('GET', '/manage/projects', undefined, { authorization: `Bearer ${MANAGEMENT_TOKEN}x` });
      await call(MANAGEMENT_TOKEN);

      // The database fails while it has a key and a digest in its statement.
      await write(daemon, "CREATE TRIGGER no_key BEFORE INSERT ON projects BEGIN SELECT RAISE(ABORT, 'no'); END");
      await write(daemon, "CREATE TRIGGER no_token BEFORE INSERT ON tokens BEGIN SELECT RAISE(ABORT, 'no'); END");
      await manage('POST', '/manage/projects', { name: 'Beta', api_key: unwritten });
      await manage('POST', '/manage/tokens', { project_id: project.id });
      await write(daemon, 'DROP TRIGGER no_key');
      await write(daemon, 'DROP TRIGGER no_token');

      await issue(project.id);
      await manage('GET', '/manage/tokens');
      await manage('PATCH', `/manage/tokens/${id}`, { is_active: false });
      await call(token);
      await manage('POST', `/manage/projects/${project.id}/tokens/revoke`);
    }

    it('the files contain what was done', () => {
      expect([...files.keys()].map((name) => name.split(' ')[0])).to.include.members([
        'llmp.db',
        'llmp.db-wal',
        'llmp.db.key',
        'llmp.db.lock',
      ]);
      const tables = Buffer.concat([...files.values()]).toString('latin1');
      expect(tables).to.include('Alpha');
      expect(tables).to.include(createHash('sha256').update(secrets[0]!).digest('hex'));
      expect(texts.join('')).to.include('request ended').and.to.include('upstream rejected');
    });

    for (const [what, values] of [
      ['upstream key', () => keys],
      ['secret of a token', () => secrets],
      ['management token', () => [MANAGEMENT_TOKEN]],
    ] as const) {
      it(`no ${what} is in a file other than the database`, () => {
        for (const value of values()) {
          for (const [name, bytes] of files) {
            for (const form of formsOf(value)) expect(bytes.includes(form), `${name} contains ${form}`).to.equal(false);
          }
        }
      });

      it(`no ${what} is in a log line, an event or a response`, () => {
        for (const value of values()) {
          for (const text of texts) {
            for (const form of formsOf(value)) expect(text.includes(form), text).to.equal(false);
          }
        }
      });
    }
  });

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
