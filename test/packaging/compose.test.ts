/** The example for Docker Compose: every setting, secret, volume and service that it names exists. */
import { expect } from 'chai';
import { join } from 'node:path';
import { parse } from 'yaml';
import { packageRoot } from '../../config/package-root.js';
import { loadSettings, settingNamed } from '../../config/settings.js';
import { textIn } from '../../packaging/files.js';

interface Service {
  image: string;
  environment?: Record<string, string>;
  secrets?: string[];
  volumes?: string[];
  depends_on?: Record<string, unknown>;
  read_only?: boolean;
  healthcheck: { test: string[] };
}

interface Compose {
  services: Record<string, Service>;
  secrets: Record<string, { file: string }>;
  volumes: Record<string, null>;
}

describe('config/compose/compose.yaml', () => {
  const text = textIn(join(packageRoot(), 'config/compose'), 'compose.yaml');
  const compose = parse(text, { merge: true }) as Compose;
  const instances = Object.entries(compose.services).filter(([name]) => name.startsWith('llmp-'));

  it('has two instances with a read-only file system, a database and Redis', () => {
    expect(Object.keys(compose.services)).to.deep.equal(['llmp-1', 'llmp-2', 'database', 'redis']);
    expect(instances.map(([, service]) => service.read_only)).to.deep.equal([true, true]);
  });

  it('names only settings, secrets, volumes and services that exist', () => {
    for (const [name, service] of instances) {
      for (const setting of Object.keys(service.environment ?? {})) {
        expect(settingNamed(setting.replace(/_FILE$/, '')), `${name}: ${setting}`).to.exist;
      }
    }
    for (const [name, service] of Object.entries(compose.services)) {
      for (const secret of service.secrets ?? []) expect(compose.secrets, name).to.have.property(secret);
      for (const volume of service.volumes ?? [])
        expect(compose.volumes, name).to.have.property(volume.split(':')[0] ?? '');
      for (const other of Object.keys(service.depends_on ?? {})) expect(compose.services, name).to.have.property(other);
      const files = Object.entries(service.environment ?? {}).filter(([setting]) => setting.endsWith('_FILE'));
      for (const [, path] of files) expect(service.secrets, path).to.include(path.replace('/run/secrets/', ''));
    }
  });

  it('has settings that the daemon accepts', () => {
    const values: Record<string, string> = {
      'database-url': 'postgres://llmp:password@database/llmp',
      'encryption-key': Buffer.alloc(32, 7).toString('base64'),
      'management-token': 'a'.repeat(48),
      'redis-password': 'b'.repeat(48),
    };
    for (const [name, { environment = {} }] of instances) {
      const env = Object.entries(environment).map(([setting, value]) => {
        const secret = values[value.replace('/run/secrets/', '')];
        return secret === undefined ? [setting, value] : [setting.replace(/_FILE$/, ''), secret];
      });
      const { settings } = loadSettings(Object.fromEntries(env) as Record<string, string>);
      expect(settings.database.driver, name).to.equal('postgres');
    }
  });

  it('creates each secret with a command in its comment', () => {
    for (const name of Object.keys(compose.secrets)) {
      expect(text).to.match(new RegExp(`^# .*(?:secrets/${name}|for name in[^;]*\\b${name}\\b)`, 'm'));
    }
  });
});
