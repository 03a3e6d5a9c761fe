/** The Helm chart: Helm renders it, Kubernetes takes it, and the daemon takes the settings in it. */
import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { packageRoot } from '../../config/package-root.js';
import { loadSettings } from '../../config/settings.js';
import { readVersion } from '../../config/version.js';
import { textIn } from '../../packaging/files.js';
import { temporaryFolder } from '../support/daemon.js';
import { helm, orPending, pythonTools, run, succeed } from './tools.js';

const CHART = join(packageRoot(), 'config/kubernetes');
const KUBERNETES = '1.34.0';
const ROLES = '[{ "match": { "groups": "platform" }, "role": "admin" }]';
const PRICES = '{ "prices": [{ "model": "model-1", "input": "1.00", "output": "2.00" }] }';
const KEYS = '{ "keys": [] }';
const OIDC = `{ issuer: https://login.example.com, clientId: llmp, roles: { content: '${ROLES}' } }`;
/** All that is optional. */
const EVERYTHING = `
image: { digest: 'sha256:${'0'.repeat(64)}' }
imagePullSecrets: [{ name: registry }]
redis: { address: 'redis:6379', tls: true }
oidc: ${OIDC}
jwks: { content: { cluster.json: '${KEYS}' } }
prices: { content: '${PRICES}' }
settings: { TRUSTED_PROXIES: 10.0.0.0/8 }
metrics: { serviceMonitor: { enabled: true, labels: { release: prometheus } } }
service: { annotations: { example/a: b } }
ingress:
  enabled: true
  className: nginx
  annotations: { example/a: b }
  tls: [{ secretName: tls, hosts: [llmp.example] }]
managementIngress:
  enabled: true
  className: nginx
  annotations: { example/a: b }
  hosts: [admin.llmp.example]
  tls: [{ secretName: tls, hosts: [admin.llmp.example] }]
networkPolicy:
  clients: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: ingress } } }]
  management: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: monitoring } } }]
  egress: [{ to: [{ ipBlock: { cidr: 0.0.0.0/0 } }] }]
serviceAccount: { annotations: { example/a: b } }
podAnnotations: { example/a: b }
podLabels: { example: a }
nodeSelector: { kubernetes.io/arch: amd64 }
tolerations: [{ key: example, operator: Exists }]
affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } }
priorityClassName: high
topologySpreadConstraints:
  - { maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule }
`;
const OTHERS = `
oidc: { issuer: https://login.example.com, clientId: llmp, publicUrl: https://llmp.example, roles: { existingConfigMap: roles } }
jwks: { existingConfigMap: keys }
prices: { existingConfigMap: prices }
`;
const VALUES: Readonly<Record<string, string>> = {
  'its own values': '{}',
  'every value': EVERYTHING,
  'files of others': OTHERS,
};

interface Container {
  env: { name: string; value: string }[];
  ports: { name: string; containerPort: number }[];
  volumeMounts: { name: string; mountPath: string }[];
  securityContext: { readOnlyRootFilesystem: boolean };
}

interface ConfigMapFiles {
  name: string;
  items?: { key: string; path: string }[];
}

interface Volume {
  name: string;
  secret?: { items: { path: string }[] };
  configMap?: ConfigMapFiles;
  projected?: { sources: { configMap: ConfigMapFiles }[] };
}

interface PodSpec {
  terminationGracePeriodSeconds: number;
  containers: Container[];
  volumes: Volume[];
}

interface Resource {
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  spec: {
    template: { metadata: { annotations?: Record<string, string> }; spec: PodSpec };
    rules: { host: string; http: { paths: { path: string; backend: { service: unknown } }[] } }[];
  };
}

const SECRETS: Readonly<Record<string, string>> = {
  'database-url': 'postgres://llmp:password@database/llmp',
  'encryption-key': Buffer.alloc(32, 7).toString('base64'),
  'management-token': 'a'.repeat(48),
  'redis-password': 'b'.repeat(48),
  'oidc-client-secret': 'c'.repeat(48),
};
const SECRETS_FOLDER = '/run/secrets/llmp';

const templateWith = (values: string) => [
  'template',
  'example',
  CHART,
  '--kube-version',
  KUBERNETES,
  '--values',
  values,
];

describe('the Helm chart', function () {
  this.timeout(2_000_000);
  let program: string;
  before(async function () {
    program = await orPending(this, 'Helm', helm());
  });

  async function rendered(values: string): Promise<string> {
    const file = join(temporaryFolder(), 'values.yaml');
    writeFileSync(file, values);
    await succeed(program, ['lint', '--strict', '--values', file, CHART]);
    return succeed(program, templateWith(file));
  }

  const resourcesOf = async (values: string) =>
    parseAllDocuments(await rendered(values)).map((each) => each.toJS() as Resource);

  function podOf(resources: Resource[]) {
    const { metadata, spec } = resources.find(({ kind }) => kind === 'Deployment')?.spec.template ?? {};
    const [container] = spec?.containers ?? [];
    if (!spec || !container) throw new Error('there is no container');
    const settings = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
    return { spec, container, settings, annotations: metadata?.annotations };
  }

  /** @returns the name of the ConfigMap whose key is mounted there. */
  function configMapAt(path: string, { spec, container }: { spec: PodSpec; container: Container }): string | undefined {
    const { name } = container.volumeMounts.find(({ mountPath }) => mountPath === dirname(path)) ?? {};
    const { configMap, projected } = spec.volumes.find((volume) => volume.name === name) ?? {};
    const maps = configMap ? [configMap] : (projected?.sources ?? []).map((source) => source.configMap);
    const file = basename(path);
    const isThere = ({ items }: ConfigMapFiles) =>
      !items || items.some((item) => item.key === file && item.path === file);
    return maps.find(isThere)?.name;
  }

  it('is that of this version', () => {
    const chart = parse(textIn(CHART, 'Chart.yaml')) as { version: string; appVersion: string };
    expect([chart.version, chart.appVersion]).to.deep.equal([readVersion(), readVersion()]);
  });

  for (const [what, values] of Object.entries(VALUES)) {
    it(`makes resources that Kubernetes takes, with ${what}`, async function () {
      const python = await orPending(this, 'kubernetes-validate', pythonTools());
      const file = join(temporaryFolder(), 'resources.yaml');
      writeFileSync(file, await rendered(values));
      const { code, output } = await run(join(python, 'kubernetes-validate'), ['--strict', file]);
      expect(code, output).to.equal(0);
      // A resource of the Prometheus operator, of which it has no schema.
      const unknown = output.split('\n').filter((line) => line !== '' && !line.includes(' passed for resource '));
      expect(
        unknown.every((line) => line.includes('kind ServiceMonitor')),
        output,
      ).to.equal(true);
    });

    it(`has settings that the daemon takes, with ${what}`, async () => {
      const { spec, container } = podOf(await resourcesOf(values));
      expect(container.securityContext.readOnlyRootFilesystem).to.equal(true);
      const mounted = container.volumeMounts.find(({ mountPath }) => mountPath === SECRETS_FOLDER)?.name;
      const files = spec.volumes.find(({ name }) => name === mounted)?.secret?.items.map(({ path }) => path);
      const env = container.env.map(({ name, value }) => {
        if (!name.endsWith('_FILE')) return [name, value];
        const [, file = ''] = value.split(`${SECRETS_FOLDER}/`);
        if (file !== '') expect(files).to.include(file);
        return file === '' ? [name, value] : [name.replace(/_FILE$/, ''), SECRETS[file] ?? ''];
      });
      const { settings, warnings } = loadSettings(Object.fromEntries(env) as Record<string, string>);
      expect(warnings.filter((text) => !text.startsWith('REDIS_ADDR is not set'))).to.deep.equal([]);
      expect(spec.terminationGracePeriodSeconds * 1000).to.be.at.least(
        settings.shutdownDelayMs + settings.shutdownGraceMs + 30_000,
      );
      const ports = container.ports.map(({ containerPort }) => containerPort);
      const listening = [settings.listenAddress, settings.managementListenAddress];
      expect(listening.map((address) => address && 'port' in address && address.port)).to.deep.equal(ports);
    });
  }

  it('mounts the files that it stores, and those of others', async () => {
    const resources = await resourcesOf(EVERYTHING);
    for (const [values, names] of [
      [EVERYTHING, ['example-files', 'example-files', 'example-jwks']],
      [OTHERS, ['roles', 'prices', 'keys']],
    ] as const) {
      const pod = podOf(await resourcesOf(values));
      const { OIDC_ROLES = '', PRICES_FILE = '', JWKS_DIR = '' } = pod.settings;
      const paths = [OIDC_ROLES, PRICES_FILE, join(JWKS_DIR, 'cluster.json')];
      expect(paths.map((path) => configMapAt(path, pod))).to.deep.equal(names);
    }
    const stored = (name: string) =>
      resources.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name);
    expect(stored('example-files')?.data).to.deep.equal({ 'roles.json': ROLES, 'prices.json': PRICES });
    expect(stored('example-jwks')?.data).to.deep.equal({ 'cluster.json': KEYS });
    expect((await resourcesOf(OTHERS)).map(({ kind }) => kind)).not.to.include('ConfigMap');
  });

  it('restarts the pods for other roles and prices, and not for other keys, which the daemon reads again', async () => {
    const checksumOf = async (values: string) => podOf(await resourcesOf(values)).annotations?.['checksum/files'];
    const checksum = await checksumOf(EVERYTHING);
    expect(checksum).to.match(/^[0-9a-f]{64}$/);
    expect(await checksumOf(EVERYTHING.replace('platform', 'staff'))).not.to.equal(checksum);
    expect(await checksumOf(EVERYTHING.replace('1.00', '3.00'))).not.to.equal(checksum);
    expect(await checksumOf(EVERYTHING.replace(KEYS, '{}'))).to.equal(checksum);
    expect(await checksumOf(OTHERS)).to.equal(undefined);
  });

  it('leads clients to their port, and people to the Admin UI and /manage only', async () => {
    const resources = await resourcesOf(EVERYTHING);
    const ways = resources
      .filter(({ kind }) => kind === 'Ingress')
      .flatMap(({ spec }) => spec.rules)
      .flatMap(({ host, http }) => http.paths.map(({ path, backend }) => [host, path, backend.service]));
    const management = { name: 'example-management', port: { name: 'management' } };
    expect(ways).to.deep.equal([
      ['llmp.example', '/', { name: 'example', port: { name: 'http' } }],
      ['admin.llmp.example', '/manage', management],
      ['admin.llmp.example', '/admin/', management],
    ]);
    expect(podOf(resources).settings.PUBLIC_URL).to.equal('https://admin.llmp.example');
  });

  it('says what the log-in of people lacks', async () => {
    const lacking: Record<string, string> = {
      'oidc.issuer requires oidc.clientId': OIDC.replace('clientId', 'other'),
      'oidc.issuer requires oidc.roles.content or oidc.roles.existingConfigMap': OIDC.replace('content', 'other'),
      'oidc.issuer requires managementIngress or oidc.publicUrl': OIDC,
    };
    for (const [words, oidc] of Object.entries(lacking)) {
      const file = join(temporaryFolder(), 'values.yaml');
      const isEnabled = oidc !== OIDC;
      writeFileSync(file, `{ oidc: ${oidc}, managementIngress: { enabled: ${isEnabled} } }`);
      const { code, output } = await run(program, templateWith(file));
      expect(output).to.contain(words);
      expect(code).to.equal(1);
    }
  });
});
