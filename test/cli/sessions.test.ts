/** People log in on the command line, with a real identity provider. */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { WireAuditRecord, WireSelf, WireSession, WireToken } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { CLIENT_ID, PersonBrowser, startIssuer, type TestIssuer } from '../support/issuer.js';
import { bodyOf } from '../support/management.js';
import { file } from '../support/settings.js';
import { type Captured, llmp, type Situation } from './captured.js';

const PUBLIC_URL = 'https://llmp.example.com';
const HOUR_MS = 3_600_000;

describe('llmp login', () => {
  let issuer: TestIssuer;
  let daemon: TestDaemon;
  let home: string;

  beforeEach(async () => {
    issuer = await startIssuer({ redirectUri: `${PUBLIC_URL}/admin/oidc/callback` });
    issuer.person = { sub: 'ana', name: 'Ana Lima' };
    daemon = await startDaemon({
      env: {
        OIDC_ISSUER: issuer.url,
        OIDC_CLIENT_ID: CLIENT_ID,
        OIDC_CLIENT_SECRET: issuer.clientSecret,
        OIDC_ROLES: file(
          'roles.json',
          JSON.stringify([{ match: { sub: 'ana' }, role: 'issuer', ceilings: { hours: 8 } }]),
        ),
        PUBLIC_URL,
      },
    });
    home = temporaryFolder();
  });
  afterEach(async () => {
    await daemon.stop();
    await issuer.stop();
  });

  const here = (args: string, { env, ...situation }: Situation = {}): Promise<Captured> =>
    llmp(args, { env: { HOME: home, ...env }, nowMs: () => daemon.clock.now(), ...situation });

  const read = (name: string) => readFileSync(join(home, '.config/llmp', name), 'utf8');
  const contextName = () => new URL(daemon.url).host.replace(':', '-');

  /** Logs in. The person enters the code while the command waits for the second time. @param pauses ms of each wait. */
  async function logIn(args = `login --server ${daemon.url}`, situation: Situation = {}, pauses: number[] = []) {
    let told = '';
    return here(args, {
      onErr: (text) => (told += text),
      async pause(ms) {
        pauses.push(ms);
        daemon.clock.advance(ms);
        const [address] = /http[^\s"]+user_code=[\w-]+/.exec(told) ?? [];
        if (pauses.length === 2 && address !== undefined) await new PersonBrowser(issuer).enterCode(address);
      },
      ...situation,
    });
  }

  it('shows an address and a code, waits, and stores the session for the owner only', async () => {
    const pauses: number[] = [];
    const { exitCode, out, err } = await logIn(undefined, {}, pauses);
    expect(exitCode, err).to.equal(0);
    expect(out).to.equal('');
    expect(err).to.match(
      /^To log in, open this address in a browser, on any device, and enter the code:\n {2}http:\S+\/device\n {2}[A-Z]{4}-[A-Z]{4}\nWith the code: http:\S+\n/,
    );
    expect(pauses).to.deep.equal([5000, 5000]);
    const path = join(home, '.config/llmp', `${contextName()}.session`);
    expect(err).to.contain(`Logged in to ${daemon.url} as Ana Lima, issuer, until `);
    expect(err).to.contain(`The session is in ${path}, readable by you only. The current context is ${contextName()}.`);
    expect(statSync(path).mode & 0o777).to.equal(0o600);
    const secret = read(`${contextName()}.session`);
    expect(secret).to.match(/^sk-ss-[0-9A-Za-z]{49}\n$/);
    expect(err + read('config.toml')).not.to.contain(secret.trim());

    const self = JSON.parse((await here('whoami --json')).out) as WireSelf;
    expect(self).to.deep.include({
      actor: issuer.actorOf('ana'),
      name: 'Ana Lima',
      role: 'issuer',
      ceilings: { hours: 8 },
    });
    const project = await daemon.createProject();
    expect(await here(`token generate --duration 8h --project-id ${project.id} -q`)).to.include({ exitCode: 0 });
    const [token] = JSON.parse((await here(`token list by:${issuer.actorOf('ana')} --json`)).out) as WireToken[];
    expect(token).to.include({ issued_by: issuer.actorOf('ana'), issued_by_name: 'Ana Lima' });
    // It is not sent to another daemon.
    expect(await here('whoami --no-input --server http://localhost:9')).to.include({ exitCode: 3 });
  });

  it('ends the session with llmp logout, here and on the daemon', async () => {
    await logIn();
    const listed = await here('context list --json');
    expect(JSON.parse(listed.out)).to.deep.include({
      name: contextName(),
      is_current: true,
      server: daemon.url,
      token: 'session',
      project_id: null,
      protected: false,
      readonly: false,
      color: null,
    });
    const secret = read(`${contextName()}.session`).trim();
    const [, id] = /session_id = "(.*)"/.exec(read('config.toml')) ?? [];
    const { exitCode, err } = await here('logout');
    expect(exitCode, err).to.equal(0);
    expect(err).to.equal(`Logged out of ${contextName()}. Log in again: llmp login\n`);
    expect(existsSync(join(home, '.config/llmp', `${contextName()}.session`))).to.equal(false);
    expect((await bodyOf<WireSession>(daemon.manage('GET', `/manage/sessions/${id}`))).ended_at).not.to.equal(null);
    const ended = await here(`whoami --server ${daemon.url}`, { env: { MANAGEMENT_TOKEN: secret } });
    expect(ended.exitCode).to.equal(3);
    expect(await here('logout')).to.deep.equal({
      exitCode: 2,
      out: '',
      err: `llmp: you are not logged in\n  the context ${contextName()} has no session\n  Log in: llmp login\n`,
    });
    expect((await here('whoami --no-input')).exitCode).to.equal(3);
    const actions = await bodyOf<WireAuditRecord[]>(daemon.manage('GET', '/manage/audit'));
    expect(actions.map(({ action, actor }) => `${action} ${actor}`)).to.include.members([
      `cli.login ${issuer.actorOf('ana')}`,
      `cli.logout ${issuer.actorOf('ana')}`,
    ]);
  });

  it('says that the session has ended after eight hours, and logs in again in the same context', async () => {
    await logIn('login -c work --server ' + daemon.url);
    daemon.clock.advance(8 * HOUR_MS + 1);
    const { exitCode, err } = await here('whoami');
    expect(exitCode).to.equal(3);
    expect(err).to.equal(
      `llmp: the session at ${daemon.url} has ended\n` +
        '  it was ended, its time is over, or what its user may do was changed\n' +
        '  Log in again: llmp login\n',
    );
    expect((await logIn('login')).exitCode).to.equal(0);
    expect((await here('whoami')).exitCode).to.equal(0);
    expect((await logIn()).err).to.contain('The current context is work.');
  });

  it('tells programs the code as JSON, and with --quiet only the code', async () => {
    const { out, err } = await logIn(`login --json --server ${daemon.url}`);
    const [request = ''] = err.split('\n');
    expect(JSON.parse(request)).to.have.keys(
      'verification_uri',
      'verification_uri_complete',
      'user_code',
      'expires_in',
    );
    expect(JSON.parse(out)).to.include({ actor: issuer.actorOf('ana'), role: 'issuer', ended_at: null });
    expect(JSON.parse(out)).not.to.have.property('secret');
    const quiet = await logIn('login -q');
    expect(quiet.err.trimEnd().split('\n')).to.have.length(4);
  });

  it('says why nobody is logged in', async () => {
    issuer.person = { sub: 'eve', name: 'Eve' };
    expect(await logIn()).to.include({ exitCode: 1 });
    issuer.person = { sub: 'ana' };
    issuer.consents = false;
    expect((await logIn()).err).to.contain('access was denied');
    const late = await here(`login --server ${daemon.url}`, {
      pause(ms) {
        daemon.clock.advance(20 * ms);
        return Promise.resolve();
      },
    });
    expect(late).to.include({ exitCode: 1 });
    expect(late.err).to.match(/has expired/);
    expect(existsSync(join(home, '.config/llmp/config.toml'))).to.equal(false);
  });

  it('needs an identity provider at the daemon', async () => {
    const other = await startDaemon();
    try {
      expect(await here(`login --server ${other.url}`)).to.deep.equal({
        exitCode: 4,
        out: '',
        err:
          `llmp: the daemon at ${other.url} has no identity provider\n` +
          '  Set MANAGEMENT_TOKEN to the secret of an operator, or ask who runs the daemon to set OIDC_ISSUER\n',
      });
    } finally {
      await other.stop();
    }
  });

  it('does not replace the management token of a context, and takes another one for the address', async () => {
    const token = join(home, 'token');
    writeFileSync(token, `${MANAGEMENT_TOKEN}\n`);
    chmodSync(token, 0o600);
    await here(`context add prod --server ${daemon.url} --token-file ${token}`);
    const { exitCode, err } = await here('login');
    expect(exitCode).to.equal(2);
    expect(err).to.contain('the context prod has a management token of its own');
    expect(err).to.contain(`llmp login -c NAME --server ${daemon.url}`);
    expect(await here('login -c nothing')).to.include({ exitCode: 2 });
    await logIn();
    expect(read('config.toml')).to.match(/current = "127\.0\.0\.1-\d+"/);
    expect(JSON.parse((await here('whoami -c prod --json')).out)).to.include({ role: null });
  });

  it('removes the session from this machine even if the daemon is unreachable', async () => {
    await logIn();
    await daemon.stop();
    const { exitCode, err } = await here('logout');
    expect(exitCode).to.equal(6);
    expect(err).to.contain('llmp: the session was removed from this machine only\n');
    expect(existsSync(join(home, '.config/llmp', `${contextName()}.session`))).to.equal(false);
    daemon = await startDaemon();
  });
});
