import { expect } from 'chai';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { ended, start } from '../cli/processes.js';
import { answerJson, refuse, type StandIn, startStandIn } from '../cli/stand-in.js';
import { Authority, type Certificate, selfSigned } from '../support/certificates.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { freePort } from '../support/ports.js';

const DAY_MS = 86_400_000;
const ID = '3fa91c2e-1111-4111-8111-111111111111';

describe('Q: the command line and a faulty server', function () {
  this.timeout(60_000);
  let daemon: StandIn;
  let closers: (() => Promise<unknown>)[];

  beforeEach(async () => {
    closers = [];
    daemon = await startStandIn();
    closers.push(() => daemon.stop());
  });
  afterEach(() => Promise.all(closers.map((close) => close())));

  /** Runs the command with that server, and checks what must always hold. */
  async function llmp(server: string, args: string, more: NodeJS.ProcessEnv = {}) {
    const child = start(args.split(' '), { LLMP_SERVER: server, MANAGEMENT_TOKEN, ...more });
    const all = await ended(child);
    expect(all.out, 'data').to.equal('');
    expect(all.err, 'a stack').not.to.match(/^\s+at |node:internal|\.js:\d+/m);
    expect(all.err).not.to.contain(MANAGEMENT_TOKEN);
    const lines = all.err.trimEnd().split('\n');
    if (args.includes('--json')) expect(JSON.parse(all.err)).to.include({ exit_code: all.exitCode });
    else {
      expect(lines).to.have.length.within(1, 3);
      expect(lines[0]).to.match(/^llmp: /);
    }
    return all;
  }

  const COMMANDS = [
    'token list',
    `token revoke ${ID}`,
    'token list -o csv',
    'project list --json',
    'audit list -o jsonl --json',
    'usage --json',
    'cache stats',
    'migrate status',
    'events tail',
    'run --project-id web -- true',
  ];

  for (const [what, answer, exitCode] of [
    ['401', refuse(401, 'management_token_refused', 'no'), 3],
    ['429', refuse(429, 'too_many_attempts', 'slower', { 'retry-after': '5' }), 7],
    ['500', refuse(500, 'internal', 'internal error'), 8],
    ['503', refuse(503, 'unavailable', 'temporarily unavailable'), 8],
    ['a 502 from another server', (_req, res) => res.writeHead(502).end('<html>bad gateway</html>'), 8],
    ['a timeout', () => undefined, 6],
    ['a connection that breaks', (req) => req.destroy(), 6],
    ['a server that is not llmp', (_req, res) => res.end('<html>'), 6],
  ] as readonly (readonly [string, StandIn['answer'], number])[]) {
    it(`Q06 ${what}: every command exits with ${exitCode}, without a stack trace or a token`, async () => {
      daemon.answer = answer;
      const timeout = what === 'a timeout' ? ' --timeout 200ms' : '';
      for (const args of COMMANDS) {
        const placed = timeout !== '' && args.startsWith('run') ? args.replace('run', `run${timeout}`) : args + timeout;
        expect((await llmp(daemon.url, placed)).exitCode, args).to.equal(exitCode);
      }
    });
  }

  it('Q06 connection refused: every command exits with 6, without a stack trace or a token', async () => {
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    for (const args of COMMANDS) expect((await llmp(nowhere, args)).exitCode, args).to.equal(6);
  });

  it('Q06 a slow daemon is distinguished from none, with a hint what to do', async () => {
    daemon.answer = () => undefined;
    const { err } = await llmp(daemon.url, 'token list --timeout 100ms');
    expect(err).to.contain('does not respond').and.to.contain('--timeout').and.not.to.contain('llmp daemon');
  });

  describe('over TLS', () => {
    const lists: RequestListener = (_req, res) => {
      answerJson(res, 200, []);
    };

    async function serve({ key, cert }: Certificate): Promise<string> {
      const server = createServer({ key, cert }, lists);
      server.on('tlsClientError', () => undefined);
      await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
      closers.push(async () => {
        const closed = once(server.close(), 'close');
        server.closeAllConnections();
        await closed;
      });
      return `https://localhost:${(server.address() as AddressInfo).port}`;
    }

    for (const [what, certificate, why, advice] of [
      [
        'that is self-signed',
        () => selfSigned({ name: 'localhost' }),
        'DEPTH_ZERO_SELF_SIGNED_CERT',
        'NODE_EXTRA_CA_CERTS',
      ],
      [
        'of an unknown authority',
        () => new Authority().issue({ name: 'localhost' }),
        'its certificate authority is not trusted on this machine',
        'NODE_EXTRA_CA_CERTS',
      ],
    ] as const) {
      it(`Q06 a certificate ${what}: exit 6, with a hint how to trust it`, async () => {
        const server = await serve(certificate());
        const { exitCode, err } = await llmp(server, 'token list');
        expect(exitCode).to.equal(6);
        expect(err)
          .to.contain(`the certificate of ${server} is not trusted`)
          .and.to.contain(why)
          .and.to.contain(advice);
        expect((await llmp(server, 'token list --json')).err).to.contain('"code":"certificate_not_trusted"');
      });
    }

    it('Q06 following that hint works', async () => {
      const authority = new Authority();
      const file = join(temporaryFolder(), 'ca.pem');
      writeFileSync(file, authority.certificate);
      const env = { LLMP_SERVER: await serve(authority.issue({ name: 'localhost' })), MANAGEMENT_TOKEN };
      const { exitCode } = await ended(start(['token', 'list'], { ...env, NODE_EXTRA_CA_CERTS: file }));
      expect(exitCode).to.equal(0);
    });

    for (const [what, wanted, why] of [
      ['that has expired', { name: 'localhost', to: new Date(Date.now() - DAY_MS / 2) }, 'the certificate has expired'],
      [
        'that is not valid yet',
        { name: 'localhost', from: new Date(Date.now() + DAY_MS / 2) },
        'the certificate is not valid yet',
      ],
      ['for another name', { name: 'llmp.example' }, 'the certificate is for another name'],
    ] as const) {
      it(`Q06 a certificate ${what}: exit 6, with the reason`, async () => {
        const authority = new Authority();
        const file = join(temporaryFolder(), 'ca.pem');
        writeFileSync(file, authority.certificate);
        const server = await serve(authority.issue(wanted));
        const { exitCode, err } = await llmp(server, 'token list', { NODE_EXTRA_CA_CERTS: file });
        expect(exitCode).to.equal(6);
        expect(err).to.contain('is not trusted').and.to.contain(why);
      });
    }

    it('Q06 https to a server that speaks http: exit 6, with a hint what to try', async () => {
      const { exitCode, err } = await llmp(daemon.url.replace('http:', 'https:'), 'token list');
      expect(exitCode).to.equal(6);
      expect(err).to.contain('cannot establish an encrypted connection').and.to.contain('http://');
    });
  });
});
