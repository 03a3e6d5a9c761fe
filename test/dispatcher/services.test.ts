import { expect } from 'chai';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DISPATCHER_SERVICE_NAMES, DISPATCHER_SERVICES } from '../../config/dispatcher-services.js';
import { openBackend } from '../../daemon/dispatcher/backends/backend.js';
import { loadDispatcherSettings } from '../../daemon/dispatcher/settings.js';
import { canary } from '../support/canaries.js';
import { TestClock } from '../support/clock.js';
import { recordingLog } from '../support/daemon.js';
import { problemsIn } from '../support/settings.js';

const AROUND = { REDIS_ADDR: '127.0.0.1:6379' };

describe('the services that a dispatcher can deliver to', () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'llmp-services-'));
  });
  after(() => {
    rmSync(folder, { recursive: true });
  });

  for (const service of DISPATCHER_SERVICE_NAMES) {
    const { endpoint, defaultEndpoint, needsKey } = DISPATCHER_SERVICES[service];
    const isUrl = endpoint === 'URL';
    const good = isUrl ? 'http://127.0.0.1:1' : './events.jsonl';

    const load = (env: Record<string, string>) =>
      loadDispatcherSettings({ env: { ...AROUND, DISPATCHER_SERVICE: service, ...env } }).settings;

    const requires = (name: string, env: Record<string, string>) => {
      expect(problemsIn(() => load(env))).to.deep.equal([`${name} is required with DISPATCHER_SERVICE=${service}`]);
    };

    it(`${service} has a backend`, async () => {
      const backend = await openBackend(service, {
        endpoint: isUrl ? good : join(folder, 'events.jsonl'),
        apiKey: canary('dispatcher'),
        clock: new TestClock(),
        log: recordingLog().log,
        version: '1.2.3',
      });
      expect(backend.batch.maxEvents).to.be.above(0);
      expect(backend.batch.maxBytes).to.be.above(0);
      expect(await backend.deliver([], new AbortController().signal)).to.deep.equal([]);
      await backend.close();
    });

    it(`${service} ${needsKey ? 'requires' : 'works without'} a key`, () => {
      const env = { DISPATCHER_ENDPOINT: good };
      if (needsKey) requires('DISPATCHER_API_KEY', env);
      else expect(load(env).dispatcherApiKey).to.equal(undefined);
    });

    it(`${service} accepts ${isUrl ? 'a URL, but no path' : 'a path, but no URL'}`, () => {
      const key = { DISPATCHER_API_KEY: canary('dispatcher') };
      expect(load({ ...key, DISPATCHER_ENDPOINT: good }).dispatcherEndpoint).to.equal(good);
      const bad = isUrl ? './events.jsonl' : 'http://127.0.0.1:1';
      expect(problemsIn(() => load({ ...key, DISPATCHER_ENDPOINT: bad }))).to.deep.equal([
        `DISPATCHER_ENDPOINT must be ${isUrl ? 'a URL' : 'the path of a file'} with DISPATCHER_SERVICE=${service}`,
      ]);
    });

    it(`${service} ${defaultEndpoint === null ? 'requires an endpoint' : 'has a valid default endpoint'}`, () => {
      const key = { DISPATCHER_API_KEY: canary('dispatcher') };
      if (defaultEndpoint === null) requires('DISPATCHER_ENDPOINT', key);
      else expect(load(key).dispatcherEndpoint).to.be.a('string');
    });
  }

  for (const bus of ['in-memory', 'off']) {
    it(`K18 are refused with the event bus ${bus}`, () => {
      const env = { ...AROUND, LLM_PROXY_EVENT_BUS: bus };
      expect(problemsIn(() => loadDispatcherSettings({ env })).join()).to.include(`LLM_PROXY_EVENT_BUS=${bus}`);
    });
  }
});
