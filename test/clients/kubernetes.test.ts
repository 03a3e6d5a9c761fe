/** The Helm chart: Helm renders it, Kubernetes takes it, and the daemon takes the settings in it. */
import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { packageRoot } from '../../config/package-root.js';
import { loadSettings } from '../../config/settings.js';
import { readVersion } from '../../config/version.js';
import { textIn } from '../../packaging/files.js';
import { temporaryFolder } from '../support/daemon.js';
import { helm, orPending, pythonTools, run, succeed } from './tools.js';

const CHART = join(packageRoot(), 'config/kubernetes');
const KUBERNETES = '1.34.0';
/** All that is optional. */
const EVERYTHING = `
image: { digest: 'sha256:${'0'.repeat(64)}' }
imagePullSecrets: [{ name: registry }]
redis: { address: 'redis:6379', tls: true }
settings: { TRUSTED_PROXIES: 10.0.0.0/8 }
metrics: { serviceMonitor: { enabled: true, labels: { release: prometheus } } }
service: { annotations: { example/a: b } }
ingress:
  enabled: true
  className: nginx
  annotations: { example/a: b }
  tls: [{ secretName: tls, hosts: [llmp.example] }]
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
const VALUES: Readonly<Record<string, string>> = { 'its own values': '{}', 'every value': EVERYTHING };

interface Container {
  env: { name: string; value: string }[];
  ports: { name: string; containerPort: number }[];
  volumeMounts: { name: string; mountPath: string }[];
  securityContext: { readOnlyRootFilesystem: boolean };
}

interface Resource {
  kind: string;
  spec: {
    template: {
      spec: {
        terminationGracePeriodSeconds: number;
        containers: Container[];
        volumes: { name: string; secret?: { items: { path: string }[] } }[];
      };
    };
  };
}

const SECRETS: Readonly<Record<string, string>> = {
  'database-url': 'postgres://llmp:password@database/llmp',
  'encryption-key': Buffer.alloc(32, 7).toString('base64'),
  'management-token': 'a'.repeat(48),
  'redis-password': 'b'.repeat(48),
};
const SECRETS_FOLDER = '/run/secrets/llmp';

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
    return succeed(program, ['template', 'example', CHART, '--kube-version', KUBERNETES, '--values', file]);
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
      const resources = parseAllDocuments(await rendered(values)).map((each) => each.toJS() as Resource);
      const { spec } = resources.find(({ kind }) => kind === 'Deployment')?.spec.template ?? {};
      const [container] = spec?.containers ?? [];
      if (!spec || !container) throw new Error('there is no container');
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
});
