import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { mintSecret, obfuscate } from '../../daemon/core/token.js';
import { llmp } from '../cli/captured.js';
import { answerJson, startStandIn } from '../cli/stand-in.js';
import { canary, canaryEncryptionKey, KINDS, secretsIn } from '../support/canaries.js';
import {
  MANAGEMENT_TOKEN,
  recordingLog,
  startDaemon,
  temporaryFolder,
  type TestDaemon,
  UPSTREAM_KEY,
} from '../support/daemon.js';
import { inspect, inspectFiles, inspector, leaksOf, permit } from '../support/leaks.js';
import { json, type Provider, startProvider } from '../support/provider.js';

const ROOT = join(import.meta.dirname, '../../..');
const MOCHA = join(ROOT, 'node_modules/mocha/bin/mocha.js');

describe('I: the scan for leaks', () => {
  describe('recognises', () => {
    const hex = (secret: string) => Buffer.from(secret).toString('hex');
    const each = (secret: string, before: string) => (hex(secret).match(/../g) ?? []).map((it) => before + it).join('');
    const WRITINGS: Record<string, (secret: string) => string> = {
      'as it is': (secret) => secret,
      'in the middle of other text': (secret) => `xx${secret}xx`,
      'in base64': (secret) => Buffer.from(secret).toString('base64'),
      'in base64 after another character': (secret) => Buffer.from(`u${secret}`).toString('base64'),
      'in base64url after two characters': (secret) => Buffer.from(`u:${secret}?`).toString('base64url'),
      'in hexadecimal': hex,
      'in capital hexadecimal': (secret) => hex(secret).toUpperCase(),
      'percent-encoded': (secret) => each(secret, '%'),
      'percent-encoded, except letters and digits': (secret) => secret.replaceAll('-', '%2D'),
      'escaped as in JSON': (secret) => each(secret, '\\u00'),
      'cut to a part': (secret) => secret.slice(0, -6),
    };
    const secrets = { ...Object.fromEntries(KINDS.map((kind) => [kind, canary(kind)])), token: mintSecret() };
    for (const [writing, write] of Object.entries(WRITINGS)) {
      it(`I01 every kind of secret ${writing}, in text and in bytes`, () => {
        for (const [kind, secret] of Object.entries(secrets)) {
          for (const written of [write(secret), Buffer.from(write(secret))]) {
            expect(secretsIn(written), kind).to.have.lengthOf(1);
            expect(secretsIn(written)[0]?.kind).to.be.oneOf([kind, 'unknown']);
          }
        }
      });
    }

    it('I01 an encryption key also as its bytes, because its setting is base64', () => {
      const key = canaryEncryptionKey();
      for (const written of [key, Buffer.from(key, 'base64'), Buffer.from(key, 'base64').toString('hex')]) {
        expect(secretsIn(written)).to.have.lengthOf(1);
      }
    });

    it('I01 no secret in the displayed part of one, nor in similar text', () => {
      const shown = Object.values(secrets).flatMap((secret) => secretsIn(secret).map((it) => it.shown));
      const hints = [UPSTREAM_KEY.slice(-4), obfuscate(secrets.token), 'sk-wt-…', 'a canary-yellow task-token'];
      for (const harmless of [...shown, ...hints]) expect(secretsIn(harmless), harmless).to.deep.equal([]);
    });

    it('I01 a secret that arrives in pieces', async () => {
      const secret = canary('upstream');
      for (let at = 1; at < secret.length; at++) {
        const leaks = await leaksOf(() => {
          const look = inspector('a stream');
          for (const piece of [`before ${secret.slice(0, at)}`, Buffer.from(`${secret.slice(at)} after`)]) look(piece);
        });
        expect(leaks.map(({ sink }) => sink)).to.include('a stream');
      }
    });
  });

  describe('finds planted secrets', () => {
    let provider: Provider;
    let daemon: TestDaemon;
    const secret = canary('upstream');

    before(async () => {
      provider = await startProvider();
      daemon = await startDaemon({ upstream: provider.url });
    });
    after(async () => {
      await daemon.stop();
      await provider.stop();
    });

    /** Makes the daemon add the secret to each of its responses. */
    const answering = async (ask: () => Promise<unknown>) => {
      const plant = (_req: IncomingMessage, res: ServerResponse) => res.setHeader('X-Planted', secret);
      daemon.daemon.server.prependListener('request', plant);
      await ask();
      daemon.daemon.server.off('request', plant);
    };
    const run = (...args: string[]) => once(spawn(process.execPath, ['-e', ...args]), 'close');

    const PLANTS: Record<string, () => unknown> = {
      log: () => {
        recordingLog().log.info(`a message with ${secret} in it`);
      },
      'record of a request': () => daemon.call(mintSecret(), `/v1/${secret}`),
      'response to GET /live': () => answering(() => fetch(`${daemon.url}/live`)),
      'response to POST /manage/tokens': async () => {
        const { id } = await daemon.createProject();
        await answering(() => daemon.createToken(id));
      },
      'forwarded response to GET /v1/models': async () => {
        const { token } = await daemon.createToken((await daemon.createProject()).id);
        provider.answer = ({ headers }, res) => {
          // In a header it would be masked.
          json(res, 200, { repeated: headers.authorization });
        };
        await (await daemon.call(token)).text();
        provider.answer = undefined;
      },
      'file llmp.db-wal2': () => {
        writeFileSync(join(daemon.dir, 'llmp.db-wal2'), `${'x'.repeat(1024 * 1024 - 10)}${secret}`);
        inspectFiles(daemon.dir);
        writeFileSync(join(daemon.dir, 'llmp.db-wal2'), '');
      },
      'command line of node': () => run('', secret),
      'stdout of node': () => run(`console.log(Buffer.from('${hexOf(secret)}', 'hex').toString())`),
      'stderr of node': () => run(`console.error(Buffer.from('${hexOf(secret)}', 'hex').toString())`),
      'stdout of llmp project list': () => listing({ name: secret }),
      'stderr of llmp project list': () => listing({ error: secret }),
    };
    const hexOf = (text: string) => [...Buffer.from(text)].map((byte) => byte.toString(16).padStart(2, '0')).join('');

    for (const [sink, plant] of Object.entries(PLANTS)) {
      it(`I01 a secret in the sink "${sink}" is found, and the finding names the test`, async function () {
        const leaks = await leaksOf(plant);
        expect(leaks.map((leak) => leak.sink)).to.include(sink);
        for (const leak of leaks) expect(leak.test).to.equal(this.test?.fullTitle());
      });
    }
  });

  describe('permits', () => {
    it('I01 a token in the one response that displays it, and nothing else there', async () => {
      const sink = 'response to POST /manage/tokens';
      expect(await leaksOf(() => { inspect(sink, mintSecret()); })).to.deep.equal([]); // prettier-ignore
      expect(await leaksOf(() => { inspect(sink, UPSTREAM_KEY); })).to.have.lengthOf(1); // prettier-ignore
    });

    it('I01 secrets that a test permitted', async () => {
      permit(/^a sink of this test$/, ['upstream'], 'the scan itself is tested');
      const found = await leaksOf(() => {
        inspect('a sink of this test', UPSTREAM_KEY);
        inspect('a sink of this test', MANAGEMENT_TOKEN);
        inspect('another sink of this test', UPSTREAM_KEY);
      });
      expect(found.map(({ sink, secret }) => `${sink}: ${secret.split('-')[0] ?? ''}`)).to.deep.equal([
        'a sink of this test: management',
        'another sink of this test: upstream',
      ]);
    });

    it('I01 secrets in another folder that a link leads to', async () => {
      const other = mkdtempSync(join(tmpdir(), 'llmp-scan-'));
      const folder = temporaryFolder();
      try {
        writeFileSync(join(other, 'found'), canary('upstream'));
        symlinkSync(other, join(folder, 'link'));
        expect(
          await leaksOf(() => {
            inspectFiles(other);
          }),
        ).to.have.length(1);
        expect(
          await leaksOf(() => {
            inspectFiles(folder);
          }),
        ).to.deep.equal([]);
      } finally {
        rmSync(other, { recursive: true });
      }
    });

    it('I01 nothing in the next test', async () => {
      const found = await leaksOf(() => {
        inspect('a sink of this test', UPSTREAM_KEY);
      });
      expect(found).to.have.lengthOf(1);
    });
  });

  it('I01 a leak fails the run; the message has the place and the test, but not the secret', async () => {
    let code: unknown;
    let report = '';
    const seenHere = await leaksOf(async () => {
      const child = spawn(process.execPath, [MOCHA, 'dist/test/faults/support/leaking.js'], {
        cwd: ROOT,
        env: { ...process.env, FAILED_TESTS: undefined }, // The failures there are intended.
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      [report, [code]] = await Promise.all([text(child.stdout), once(child, 'close') as Promise<[number]>]);
    });
    expect(code).to.equal(1);
    expect(seenHere.map(({ sink }) => sink)).to.have.members(['stdout of node', 'stderr of node']);
    const listed = report.slice(report.indexOf('secrets leaked:'));
    expect(listed).to.match(/^own stdout: upstream-canary-[0-9a-f]{4}… \(plain\), in "a suite that prints a secret"$/m);
    expect(listed).to.match(/^own stderr: management-canary-.*, in "a suite that prints a secret"$/m);
    expect(listed).to.match(/^file left\.db-wal: encryption-canary-/m);
    expect(listed).to.match(/^command line of node: password-canary-.*, in "a suite that gives one to a process"$/m);
    expect(secretsIn(listed)).to.deep.equal([]);
  });

  /** Lists the projects of a daemon whose response contains that name, or that refuses with that error. */
  async function listing({ name, error }: { name?: string; error?: string }): Promise<void> {
    const standIn = await startStandIn();
    standIn.answer = (_req, res) => {
      if (name === undefined) answerJson(res, 400, { error, code: 'invalid_request', request_id: 'r' });
      else answerJson(res, 200, [{ id: 'one', name }]);
    };
    await llmp('project list', { env: { LLMP_SERVER: standIn.url, MANAGEMENT_TOKEN } });
    await standIn.stop();
  }
});
