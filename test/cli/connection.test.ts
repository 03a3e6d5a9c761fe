import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder } from '../support/daemon.js';
import { perTest } from '../support/per-test.js';
import { llmp } from './captured.js';
import { answerJson, refuse, responds, startStandIn } from './stand-in.js';

const SECRET = `sk-wt-${'a'.repeat(49)}`;
const ANOTHER_TOKEN = canary('management');

describe('the connection to the daemon', () => {
  const daemon = perTest(() => startStandIn());
  let env: NodeJS.ProcessEnv;

  beforeEach(() => {
    env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN };
  });

  const credentials = () => daemon.asked.map(({ headers }) => headers.authorization);

  describe('the management token', () => {
    function fileWith(content: string): string {
      const path = join(temporaryFolder(), 'management-token');
      writeFileSync(path, content);
      return path;
    }

    it('I06 comes first from the option, with a warning that ps shows it', async () => {
      const { err } = await llmp(`token list --management-token ${ANOTHER_TOKEN}`, { env });
      expect(credentials()).to.deep.equal([`Bearer ${ANOTHER_TOKEN}`]);
      expect(err).to.contain('`ps`').and.not.to.contain(ANOTHER_TOKEN);
    });

    it('then from the file of the option, without the newline at its end', async () => {
      await llmp(`token list --management-token-file ${fileWith(`${ANOTHER_TOKEN}\n`)}`, { env });
      expect(credentials()).to.deep.equal([`Bearer ${ANOTHER_TOKEN}`]);
    });

    it('which may be standard input', async () => {
      await llmp('token list --management-token-file -', { env, stdin: `${ANOTHER_TOKEN}\n` });
      expect(credentials()).to.deep.equal([`Bearer ${ANOTHER_TOKEN}`]);
    });

    it('then from MANAGEMENT_TOKEN, then from MANAGEMENT_TOKEN_FILE', async () => {
      const both = { ...env, MANAGEMENT_TOKEN_FILE: fileWith(`${ANOTHER_TOKEN}\n`) };
      await llmp('token list', { env: both });
      await llmp('token list', { env: { ...both, MANAGEMENT_TOKEN: undefined } });
      expect(credentials()).to.deep.equal([`Bearer ${MANAGEMENT_TOKEN}`, `Bearer ${ANOTHER_TOKEN}`]);
    });

    it('then from a prompt on a terminal that does not show it', async () => {
      const { out, err } = await llmp('token list', {
        env: { LLMP_SERVER: daemon.url },
        terminal: 80,
        answer: `${ANOTHER_TOKEN}\n`,
      });
      expect(credentials()).to.deep.equal([`Bearer ${ANOTHER_TOKEN}`]);
      expect(out).to.equal('');
      expect(err).to.contain('Management token:').and.not.to.contain(ANOTHER_TOKEN);
    });

    it('and ^C in that prompt exits with 130, without a message', async () => {
      const { exitCode, err } = await llmp('token list', {
        env: { LLMP_SERVER: daemon.url },
        terminal: 80,
        answer: '\u0003',
      });
      expect(exitCode).to.equal(130);
      expect(err).not.to.contain('llmp:');
      expect(daemon.asked).to.deep.equal([]);
    });

    it('and otherwise the command exits with 3 and sends nothing', async () => {
      const { exitCode, err } = await llmp('token list', { env: { LLMP_SERVER: daemon.url } });
      expect(exitCode).to.equal(3);
      expect(err).to.contain('no management token').and.to.contain('MANAGEMENT_TOKEN');
      expect(daemon.asked).to.deep.equal([]);
    });

    it('is never asked for with --no-input', async () => {
      const { exitCode } = await llmp('token list --no-input', { env: { LLMP_SERVER: daemon.url }, terminal: 80 });
      expect(exitCode).to.equal(3);
    });

    it('is refused, not trimmed, with white space around it', async () => {
      const { exitCode, err } = await llmp('token list', { env: { ...env, MANAGEMENT_TOKEN: ` ${ANOTHER_TOKEN} ` } });
      expect(exitCode).to.equal(3);
      expect(err).not.to.contain(ANOTHER_TOKEN);
    });

    it('cannot share standard input with the upstream key', async () => {
      const { exitCode, err } = await llmp('project create --name web --management-token-file -', {
        env,
        stdin: ANOTHER_TOKEN,
      });
      expect(exitCode).to.equal(2);
      expect(err).to.contain('standard input').and.not.to.contain(ANOTHER_TOKEN);
    });

    it('is masked wherever a message would quote it', async () => {
      daemon.answer = refuse(400, 'invalid_request', `odd header Bearer ${MANAGEMENT_TOKEN}`);
      const { err } = await llmp('token list', { env });
      expect(err).to.contain('odd header').and.not.to.contain(MANAGEMENT_TOKEN);
    });
  });

  describe('the server', () => {
    it('comes from --server, then LLMP_SERVER', async () => {
      await llmp(`token list --server ${daemon.url}`, { env: { ...env, LLMP_SERVER: 'http://127.0.0.1:9' } });
      expect(daemon.asked).to.have.length(1);
    });

    it('may be a unix socket', async () => {
      const socket = await startStandIn(join(temporaryFolder(), 'llmp.sock'));
      try {
        const { exitCode, err } = await llmp(`token list --server ${socket.url}`, { env });
        expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: 'No matching tokens.\n' });
        expect(socket.asked[0]?.url).to.equal('/manage/tokens?limit=1000');
      } finally {
        await socket.stop();
      }
    });

    it('Q11 is refused with a password in it, which is not repeated', async () => {
      const password = canary('password');
      for (const server of [`http://admin:${password}@127.0.0.1:8080`, `admin:${password}@127.0.0.1:8080`]) {
        const { exitCode, err } = await llmp(['token', 'list', '--server', server], { env });
        expect(exitCode).to.equal(2);
        expect(err).not.to.contain(password);
      }
    });

    for (const server of ['localhost:8080', 'ftp://localhost', 'http://localhost/manage', 'nonsense', 'unix:']) {
      it(`is refused when it is ${server}`, async () => {
        const { exitCode, err } = await llmp(['token', 'list', '--server', server], { env });
        expect(exitCode).to.equal(2);
        expect(err).to.contain('http://HOST:PORT');
      });
    }

    it('Q11 gets a warning when the management token would cross a network in clear text', async () => {
      const away = await llmp('token list --server http://llmp.invalid:1 --timeout 100ms', { env });
      expect(away.err).to.contain('warning: the management token is sent to http://llmp.invalid:1 in clear text');
      expect((await llmp('token list', { env })).err).not.to.contain('clear text');
    });
  });

  describe('refusals and exit codes', () => {
    for (const [status, code, exitCode] of [
      [400, 'invalid_request', 1],
      [400, 'project_inactive', 5],
      [401, 'management_token_refused', 3],
      [404, 'not_found', 4],
      [405, 'method_not_allowed', 5],
      [409, 'name_taken', 5],
      [415, 'unsupported_media_type', 1],
      [429, 'too_many_attempts', 7],
      [500, 'internal', 8],
      [503, 'unavailable', 8],
    ] as const) {
      it(`Q06 ${status} ${code} is exit ${exitCode}`, async () => {
        daemon.answer = refuse(status, code, 'because of this');
        const answer = await llmp('token list', { env });
        expect(answer.exitCode).to.equal(exitCode);
        expect(answer.err.trimEnd().split('\n')).to.have.length.at.most(3);
      });
    }

    it('with the time to wait, if the daemon sends one', async () => {
      daemon.answer = refuse(503, 'unavailable', 'temporarily unavailable', { 'retry-after': '7' });
      expect((await llmp('token list', { env })).err).to.contain('in 7 s');
    });

    it('Q06 a refused connection exits with 6, with advice', async () => {
      await daemon.stop();
      const { exitCode, err } = await llmp('token list', { env });
      expect(exitCode).to.equal(6);
      expect(err).to.contain(`cannot reach the daemon at ${daemon.url}`).and.to.contain('ECONNREFUSED');
      expect(err).to.contain('llmp daemon');
    });

    it('Q06 no answer within --timeout is exit 6', async () => {
      daemon.answer = () => undefined;
      const { exitCode, err } = await llmp('token list --timeout 50ms', { env });
      expect(exitCode).to.equal(6);
      expect(err).to.contain('no response in time');
    });

    it('an incomplete response exits with 6', async () => {
      daemon.answer = (_req, res) => {
        res.writeHead(200, { 'content-length': '100' });
        res.write('[');
      };
      expect((await llmp('token list --timeout 50ms', { env })).exitCode).to.equal(6);
    });

    it('an exit code of 6 says that what answers is not llmp: a web page, or JSON of another kind', async () => {
      for (const body of ['<html>', '{"hello":1}']) {
        daemon.answer = (_req, res) => res.end(body);
        const { exitCode, err } = await llmp('token list', { env });
        expect(exitCode).to.equal(6);
        expect(err).to.contain('not llmp');
      }
    });

    it('a redirect is not followed with the management token', async () => {
      const elsewhere = await startStandIn();
      daemon.answer = (_req, res) => res.writeHead(307, { location: `${elsewhere.url}/manage/tokens` }).end();
      const { exitCode } = await llmp('token list', { env });
      await elsewhere.stop();
      expect(exitCode).to.equal(6);
      expect(elsewhere.asked).to.deep.equal([]);
    });
  });

  it('names the command line, its user and the reason to the daemon', async () => {
    daemon.answer = responds({ id: '3fa91c2e-0000-4000-8000-000000000000', name: null, state: 'revoked' });
    await llmp(['token', 'revoke', '3fa91c2e-0000-4000-8000-000000000000', '--reason', 'Schlüssel weg'], { env });
    expect(daemon.asked[0]?.headers).to.include({
      'x-llmp-actor': 'cli',
      'x-audit-reason': encodeURIComponent('Schlüssel weg'),
      'x-llmp-user': encodeURIComponent(`${userInfo().username}@${hostname()}`),
    });
  });

  describe('a prefix of an ID', () => {
    const [ONE, TWO] = ['3fa91c2e-1111-4111-8111-111111111111', '3fa91c2e-2222-4222-8222-222222222222'];

    const fields = { name: null, state: 'active', created_at: '2030-01-31T12:00:00.000Z' };
    const [one, two] = [
      { id: ONE, ...fields },
      { id: TWO, ...fields },
    ];

    it('that matches two IDs is refused with both of them, and nothing is changed', async () => {
      daemon.answer = responds([one, two]);
      const { exitCode, err } = await llmp('token revoke 3fa91c2e', { env });
      expect(exitCode).to.equal(2);
      expect(err).to.contain(ONE).and.to.contain(TWO);
      expect(daemon.asked.map(({ method }) => method)).to.deep.equal(['GET']);
    });

    it('is searched on all pages, among tokens whose name contains it', async () => {
      daemon.answer = (req, res) => {
        const isFirst = !req.url?.includes('cursor=');
        const headers = isFirst ? { link: '</manage/tokens?cursor=more>; rel="next"' } : {};
        if (req.method === 'PATCH') answerJson(res, 200, { id: ONE, name: null, state: 'revoked' });
        else answerJson(res, 200, isFirst ? [{ ...one, id: 'ffffffff', name: 'of 3fa91c2e' }] : [one], headers);
      };
      expect((await llmp('token revoke 3fa91c2e', { env })).exitCode).to.equal(0);
      expect(daemon.asked.at(-1)).to.include({ method: 'PATCH', url: `/manage/tokens/${ONE}` });
    });
  });

  it('stops a batch when the daemon does not respond', async () => {
    const ids = Array.from({ length: 30 }, (_, i) => `3fa91c2e-0000-4000-8000-0000000000${10 + i}`);
    daemon.answer = (req) => req.destroy();
    const { exitCode, err } = await llmp(['token', 'revoke', '--yes', ...ids], { env });
    expect(exitCode).to.equal(6);
    expect(err.match(/cannot reach/g)).to.have.length(1);
    expect(daemon.asked.length).to.be.at.most(16);
  });

  it('prints its requests with -v', async () => {
    const { err } = await llmp('project list -v', { env });
    expect(err).to.contain('GET /manage/projects?limit=1000 200');
    expect(err).not.to.contain(MANAGEMENT_TOKEN);
  });

  for (const args of [
    `token get ${SECRET}`,
    `token revoke ${SECRET} --yes`,
    `token reactivate 3fa91c2e ${SECRET} --yes`,
    `token list --project-id ${SECRET}`,
    `project get ${SECRET}`,
  ]) {
    it(`refuses a pasted secret before any network call: ${args.replace(SECRET, 'SECRET')}`, async () => {
      const { exitCode, err } = await llmp(args, { env });
      expect(exitCode).to.equal(2);
      expect(err).to.contain('secret').and.to.contain('revoke it').and.not.to.contain(SECRET);
      expect(daemon.asked).to.deep.equal([]);
    });
  }
});

describe('a wrong management token', () => {
  it('exits 3 at a real daemon, and is not repeated', async () => {
    const daemon = await startDaemon();
    const env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN: ANOTHER_TOKEN };
    const { exitCode, err } = await llmp('token list', { env });
    await daemon.stop();
    expect(exitCode).to.equal(3);
    expect(err).to.contain('refused the management token').and.not.to.contain(ANOTHER_TOKEN);
  });
});
