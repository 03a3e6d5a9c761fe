/** The examples of docs/workload-identity.md, against a stand-in for each issuer, whose JWTs have the claims that its owner documents. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse } from 'yaml';
import type { WireAuditRecord, WireToken } from '../../daemon/api/contract.js';
import { MAIN } from '../cli/processes.js';
import { MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../support/daemon.js';
import { type Algorithm, signed, type SigningKey, signingKey, StandInIssuer } from '../support/jwt-issuer.js';
import { type ListeningDaemon, spawnDaemon } from '../support/process.js';
import { type Provider, startProvider } from '../support/provider.js';

const PAGE = readFileSync(join(resolve(import.meta.dirname, '../../..'), 'docs/workload-identity.md'), 'utf8');
const CLUSTER = 'https://kubernetes.default.svc.cluster.local';
const execute = promisify(execFile);

/** The block of commands with this mark. */
function block(mark: string): string {
  const [, text] = new RegExp(`^<!-- runs: ${mark} -->\n\n\`\`\`sh\n([^]*?)^\`\`\``, 'm').exec(PAGE) ?? [];
  if (text === undefined) throw new Error(`docs/workload-identity.md has no block ${mark}`);
  return text;
}

/** The YAML of a section. */
function example(section: string): unknown {
  const [, text] = new RegExp(`^## ${section}\n[^]*?^\`\`\`yaml\n([^]*?)^\`\`\``, 'm').exec(PAGE) ?? [];
  if (text === undefined) throw new Error(`${section} has no example`);
  return parse(text) as unknown;
}

interface Workflow {
  permissions: Record<string, string>;
  jobs: { evaluate: { env: Record<string, string>; steps: { uses?: string; run?: string }[] } };
}
interface Pipeline {
  evaluate: {
    id_tokens: Record<string, { aud: string }>;
    variables: Record<string, string>;
    before_script: string[];
    script: string[];
  };
}
interface Job {
  metadata: { namespace: string };
  spec: {
    template: {
      spec: {
        serviceAccountName: string;
        containers: {
          env: { name: string; value: string }[];
          command: string[];
          volumeMounts: { name: string; mountPath: string }[];
        }[];
        volumes: { name: string; projected: { sources: { serviceAccountToken: Projected }[] } }[];
      };
    };
  };
}
interface Projected {
  audience: string;
  expirationSeconds: number;
  path: string;
}

/** Uses what `llmp run` has set, as the tests of a project would with its SDK. */
const NPM = `#!${process.execPath}
if (process.argv[2] === 'test') {
  const { OPENAI_API_KEY: key, OPENAI_BASE_URL: url } = process.env;
  const secrets = Object.keys(process.env).filter((name) => /^ACTIONS_ID_TOKEN|JWT/.test(name));
  const response = await fetch(url + '/models', { headers: { authorization: 'Bearer ' + key } });
  console.log(JSON.stringify({ status: response.status, key, secrets }));
}
`;

describe('docs/workload-identity.md', function () {
  this.timeout(60_000);
  let daemon: ListeningDaemon;
  let provider: Provider;
  let issuer: StandInIssuer;
  let folder: string;
  let path: string;
  const keys = temporaryFolder();

  before(async () => {
    provider = await startProvider();
    issuer = await StandInIssuer.start('RS256');
    daemon = await spawnDaemon({
      MANAGEMENT_TOKEN,
      UPSTREAM_BASE_URL: provider.url,
      DATABASE_URL: join(temporaryFolder(), 'llmp.db'),
      JWKS_DIR: keys,
      SHUTDOWN_DELAY: '0',
    });
    const bin = join(temporaryFolder(), 'bin');
    mkdirSync(bin);
    symlinkSync(MAIN, join(bin, 'llmp'));
    writeFileSync(join(bin, 'npm'), NPM);
    chmodSync(join(bin, 'npm'), 0o755);
    writeFileSync(join(bin, 'package.json'), '{"type":"module"}');
    path = [bin, process.env.PATH].join(delimiter);
    await manage('POST', '/manage/projects', { name: 'web', api_key: UPSTREAM_KEY });
  });
  after(async () => {
    await daemon.kill();
    await issuer.stop();
    await provider.stop();
  });
  beforeEach(() => {
    folder = temporaryFolder();
  });

  async function manage<Body>(method: string, target: string, body?: object): Promise<Body> {
    const response = await fetch(daemon.url + target, {
      method,
      headers: { authorization: `Bearer ${MANAGEMENT_TOKEN}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Body;
    if (!response.ok) throw new Error(`${method} ${target}: ${JSON.stringify(answer)}`);
    return answer;
  }

  /** @returns what it prints. */
  async function sh(script: string, env: Record<string, string>): Promise<string> {
    const here = script.replaceAll('https://llmp.example.com', daemon.url);
    const options = { cwd: folder, env: { PATH: path, HOME: folder, LC_ALL: 'C.UTF-8', ...env }, timeout: 30_000 };
    const { stdout } = await execute('bash', ['-e', '-o', 'pipefail', '-c', here], options);
    return stdout.trim();
  }
  const inJob = (script: string, env: Record<string, string> = {}) => sh(script, { LLMP_SERVER: daemon.url, ...env });

  /** Runs the command that creates a trust. @param at the issuer of the page, in whose place is the stand-in. */
  const trust = (mark: string, at: string, standIn = issuer) =>
    sh(block(mark).replace(at, standIn.url), { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN });

  /** The token that a job got has worked, and has ended with it. */
  async function expectUsed(printed: string, name: string, claims: Record<string, string>): Promise<void> {
    const { status, key, secrets } = JSON.parse(printed) as { status: number; key: string; secrets: string[] };
    expect({ status, secrets: secrets.filter((it) => it.startsWith('ACTIONS')) }).to.deep.equal({
      status: 200,
      secrets: [],
    });
    const after = await fetch(`${daemon.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    expect(after.status).to.equal(401);
    const [token] = await manage<WireToken[]>('GET', '/manage/tokens?limit=1');
    expect(token).to.deep.include({ name, state: 'revoked', request_count: 1 });
    const [record] = await manage<WireAuditRecord[]>('GET', `/manage/audit?action=token.exchange&limit=1`);
    expect(record?.details?.claims).to.deep.equal(claims);
    expect(JSON.stringify(record)).not.to.contain('eyJ');
  }

  const now = () => Math.floor(Date.now() / 1000);

  it('GitHub Actions', async () => {
    await trust('github', 'https://token.actions.githubusercontent.com');
    const { permissions, jobs } = example('GitHub Actions') as Workflow;
    expect(permissions['id-token']).to.equal('write');
    const { env, steps } = jobs.evaluate;
    expect(env).to.deep.equal({ LLMP_SERVER: 'https://llmp.example.com' });
    const claims = {
      sub: 'repo:acme/web:ref:refs/heads/main',
      ref: 'refs/heads/main',
      sha: '8f4b7a1c5d2e9f60718293a4b5c6d7e8f9012345',
      repository: 'acme/web',
      repository_owner: 'acme',
      actor_id: '12',
      repository_visibility: 'private',
      repository_id: '74',
      repository_owner_id: '65',
      run_id: '9184750234',
      run_number: '10',
      run_attempt: '2',
      runner_environment: 'github-hosted',
      actor: 'octocat',
      workflow: 'evaluate',
      head_ref: '',
      base_ref: '',
      event_name: 'push',
      ref_type: 'branch',
      ref_protected: 'true',
      job_workflow_ref: 'acme/web/.github/workflows/evaluate.yml@refs/heads/main',
      nbf: now() - 600,
      exp: now() + 300,
    };
    const actions = await startActions(async (aud) => issuer.jwt({ ...claims, aud }, Date.now()));
    const { port } = actions.address() as AddressInfo;
    const variables = {
      ACTIONS_ID_TOKEN_REQUEST_URL: `http://127.0.0.1:${port}/token?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of-the-job',
    };
    const printed = [];
    for (const { run } of steps) if (run !== undefined) printed.push(await inJob(run, variables));
    actions.close();
    await expectUsed(printed.join(''), 'gha acme/web#9184750234', {
      repository: 'acme/web',
      ref: 'refs/heads/main',
      run_id: '9184750234',
    });
  });

  it('GitLab CI', async () => {
    await trust('gitlab', 'https://gitlab.com');
    const {
      id_tokens: idTokens,
      variables,
      before_script: before,
      script,
    } = (example('GitLab CI') as Pipeline).evaluate;
    expect(variables).to.deep.equal({ LLMP_SERVER: 'https://llmp.example.com' });
    const claims = {
      namespace_id: '72',
      namespace_path: 'acme',
      project_id: '20',
      project_path: 'acme/web',
      user_id: '1',
      user_login: 'sample-user',
      user_email: 'sample-user@example.com',
      user_identities: [{ provider: 'github', extern_uid: '2435223452345' }],
      pipeline_id: '574',
      pipeline_source: 'push',
      job_id: '302',
      ref: 'main',
      ref_type: 'branch',
      ref_path: 'refs/heads/main',
      ref_protected: 'true',
      groups_direct: ['acme/platform'],
      runner_id: 1,
      runner_environment: 'self-hosted',
      sha: '714a629c0b401fdce83e847fc9589983fc6f46bc',
      project_visibility: 'private',
      ci_config_ref_uri: 'gitlab.com/acme/web//.gitlab-ci.yml@refs/heads/main',
      nbf: now() - 5,
      exp: now() + 3600,
      sub: 'project_path:acme/web:ref_type:branch:ref:main',
    };
    const jwts: Record<string, string> = {};
    for (const [name, { aud }] of Object.entries(idTokens))
      jwts[name] = await issuer.jwt({ ...claims, aud }, Date.now());
    const printed = [];
    for (const line of [...before, ...script]) printed.push(await inJob(line, jwts));
    await expectUsed(printed.join(''), 'gitlab acme/web#574', {
      project_path: 'acme/web',
      ref_protected: 'true',
      pipeline_id: '574',
    });
  });

  it('Kubernetes', async () => {
    const cluster = await signingKey('RS256', 'of-the-cluster');
    const kubectl = `kubectl() { test "$*" = 'get --raw /openid/v1/jwks' && echo "$KEYS" || echo '{"issuer": "${CLUSTER}"}'; }`;
    const kept = await sh(`${kubectl}\n${block('cluster')}`, { KEYS: JSON.stringify({ keys: [cluster.jwk] }) });
    expect(JSON.parse(kept)).to.deep.equal({ issuer: CLUSTER });
    writeFileSync(join(keys, 'cluster.json'), readFileSync(join(folder, 'cluster.json')));
    await sh(block('kubernetes'), { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN });

    const { metadata, spec } = example('Kubernetes') as Job;
    const { serviceAccountName: account, containers, volumes } = spec.template.spec;
    const [{ env, command, volumeMounts } = { env: [], command: [], volumeMounts: [] }] = containers;
    expect(env).to.deep.equal([{ name: 'LLMP_SERVER', value: 'https://llmp.example.com' }]);
    const [volume] = volumes;
    const [mount] = volumeMounts;
    expect(mount?.name).to.equal(volume?.name);
    const projected = volume?.projected.sources[0]?.serviceAccountToken;
    const file = join(mount?.mountPath ?? '', projected?.path ?? '');
    expect(command).to.include(file);
    const { namespace } = metadata;
    const claims = {
      iss: CLUSTER,
      aud: [projected?.audience],
      exp: now() + (projected?.expirationSeconds ?? 0),
      iat: now(),
      nbf: now(),
      jti: 'ea28ed49-2e11-4280-9ec5-bc3d1d84661a',
      'kubernetes.io': {
        namespace,
        node: { name: 'node-1', uid: '58456cb0-dd00-45ed-b797-5578fdceaced' },
        pod: { name: 'worker-4k7xq', uid: '778a530c-b3f4-47c0-9cd5-ab018fb64f33' },
        serviceaccount: { name: account, uid: 'a087d5a0-e1dd-43ec-93ac-f13d89cd13af' },
        warnafter: now() + 480,
      },
      sub: `system:serviceaccount:${namespace}:${account}`,
    };
    const mounted = join(folder, 'token');
    writeFileSync(mounted, await signed(claims, cluster, { typ: undefined }));
    const line = command.map((word) => (word === file ? mounted : word)).join(' ');
    await expectUsed(await inJob(line), claims.sub, { sub: claims.sub });
    // The container is restarted before the kubelet has written the next JWT.
    const again = await inJob(line).then(
      () => '',
      (error: unknown) => String((error as { stderr?: string }).stderr),
    );
    expect(again).to.contain('exchanged already');
  });

  it('SPIFFE', async () => {
    const spire = await StandInIssuer.start();
    await trust('spiffe', 'https://oidc-discovery.example.org', spire);
    const sub = 'spiffe://example.org/worker';
    // Shaped as by the OIDC Discovery Provider of SPIRE, whose keys have no `use`.
    const keysOf = (names: Algorithm[]) => Promise.all(names.map((name) => signingKey(name, `of-${name}`)));
    const keys = await keysOf(['ES256', 'RS256', 'ES384']);
    const documents: Record<string, object> = {
      '/.well-known/openid-configuration': {
        issuer: spire.url,
        jwks_uri: `${spire.url}/keys`,
        authorization_endpoint: '',
        response_types_supported: ['id_token'],
        subject_types_supported: [],
        id_token_signing_alg_values_supported: ['RS256', 'ES256', 'ES384'],
      },
      '/keys': { keys: keys.map(({ jwk: { use: _, ...jwk } }) => jwk) },
    };
    spire.answer = (req, res) => {
      res.setHeader('content-type', 'application/json').end(JSON.stringify(documents[req.url ?? '']));
      return true;
    };
    const agent = `spire-agent() { test "$*" = 'api fetch jwt -audience llmp -socketPath /run/spire/agent.sock -output json' && echo "$SVIDS"; }`;
    const exchanged = async (key: SigningKey, given: object = {}) => {
      const svid = await signed({ sub, aud: ['llmp'], iss: spire.url, iat: now(), exp: now() + 300, ...given }, key);
      const SVIDS = JSON.stringify([{ svids: [{ spiffe_id: sub, svid, hint: '' }] }, { bundles: {} }]);
      return inJob(`${agent}\n${block('svid')}`, { SVIDS });
    };
    const refused = (exchange: Promise<string>) =>
      exchange.then(
        () => '',
        (error: unknown) => String((error as { stderr?: string }).stderr),
      );
    const [es256, rs256, es384] = keys as [SigningKey, SigningKey, SigningKey];
    await expectUsed(await exchanged(es256), sub, { sub });
    await expectUsed(await exchanged(rs256), sub, { sub });
    expect(await refused(exchanged(es384))).to.contain('RS256, ES256 or EdDSA');
    expect(await refused(exchanged(es256, { sub: `${sub}/other` }))).to.contain('no trust');
    expect(await refused(exchanged(es256, { iss: undefined }))).to.contain('no valid issuer');
    await spire.stop();
  });

  it('without llmp in the job', async () => {
    const claims = { project_path: 'acme/web', ref_protected: 'true', pipeline_id: '575' };
    const printed = await sh(block('curl'), { JWT: await issuer.jwt(claims, Date.now()) });
    expect(printed).to.contain('"object"');
    const [token] = await manage<WireToken[]>('GET', '/manage/tokens?limit=1');
    expect(token).to.deep.include({ name: 'gitlab acme/web#575', state: 'revoked', request_count: 1 });
  });
});

/** Gives JWTs to jobs, as GitHub Actions does. */
async function startActions(jwt: (audience: string) => Promise<string>): Promise<Server> {
  const server = createServer((req, res) => {
    const { searchParams } = new URL(req.url ?? '', 'http://actions');
    if (req.headers.authorization !== 'Bearer of-the-job') res.writeHead(401).end();
    else
      void jwt(searchParams.get('audience') ?? '').then((value) => {
        res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ count: 1, value }));
      });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return server;
}
