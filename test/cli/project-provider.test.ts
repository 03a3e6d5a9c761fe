import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireProject } from '../../daemon/api/contract.js';
import { canary } from '../support/canaries.js';
import { daemonForEachTest, temporaryFolder, UPSTREAM_KEY } from '../support/daemon.js';
import { replies, startProvider } from '../support/provider.js';
import { perTest } from '../support/per-test.js';
import { commandsAt } from './captured.js';

describe('llmp project: the provider', () => {
  const provider = perTest(startProvider);
  const other = perTest(startProvider);
  const daemon = daemonForEachTest(() => ({ upstream: provider.url }));
  const { here, json } = commandsAt(daemon);

  const read = (name: string) => json<WireProject>(`project get ${name}`);

  function keyFile(key: string): string {
    const path = join(temporaryFolder(), 'key.txt');
    writeFileSync(path, key);
    return path;
  }

  describe('create', () => {
    const create = (more: string) =>
      here(`project create --name web --no-check ${more}`.trim(), { stdin: UPSTREAM_KEY });

    for (const [options, expected] of [
      ['', [null, 'bearer']],
      ['--provider default', [null, 'bearer']],
      ['--provider anthropic', ['https://api.anthropic.com', 'x-api-key']],
      ['--provider groq', ['https://api.groq.com/openai', 'bearer']],
      ['--provider azure --base-url https://mine.openai.azure.com/', ['https://mine.openai.azure.com', 'api-key']],
      ['--provider openai --base-url https://eu.api.openai.com/v1', ['https://eu.api.openai.com', 'bearer']],
      ['--base-url https://llm.example --auth x-api-key', ['https://llm.example', 'x-api-key']],
      ['--auth x-goog-api-key', [null, 'x-goog-api-key']],
    ] as const) {
      it(`sets the provider with ${options || 'no option'}`, async () => {
        const { exitCode, err } = await create(options);
        expect(exitCode, err).to.equal(0);
        const project = await read('web');
        expect([project.upstream_base_url, project.upstream_auth]).to.deep.equal(expected);
      });
    }

    for (const [options, words] of [
      ['--provider azure', 'Azure OpenAI requires a base URL'],
      ['--provider default --base-url https://llm.example', 'exclude each other'],
      ['--provider nobody', 'one of openai, anthropic, azure'],
      ['--auth basic', 'one of bearer, x-api-key'],
    ] as const) {
      it(`refuses ${options} without a request`, async () => {
        const { exitCode, err } = await create(options);
        expect(exitCode).to.equal(2);
        expect(err).to.contain(words);
        expect((await here('project list -o id')).out).to.equal('');
      });
    }

    it('passes on what the daemon says about a base URL', async () => {
      const { exitCode, err } = await create('--base-url http://llm.example');
      expect(exitCode).to.equal(1);
      expect(err).to.contain('http is only accepted for localhost');
    });

    it('checks the key with the provider of the project', async () => {
      const { err } = await here(`project create --name web --base-url ${other.url} --auth x-api-key`, {
        stdin: UPSTREAM_KEY,
      });
      expect(err).to.contain('The provider accepted the key.');
      expect(other.received.at(-1)?.headers['x-api-key']).to.equal(UPSTREAM_KEY);
      expect(provider.received).to.have.length(0);
    });
  });

  describe('update', () => {
    it('refuses another host without its key, and explains how to give it', async () => {
      await daemon.createProject({ name: 'web' });
      const { exitCode, err } = await here('project update web --provider mistral');
      expect(exitCode).to.equal(1);
      expect(err)
        .to.contain('the base URL leads to another host, which must not get the stored key')
        .and.to.contain('--key-file FILE');
      expect((await read('web')).upstream_base_url).to.equal(null);
    });

    it('changes to another host with the key, which is checked there', async () => {
      const { id } = await daemon.createProject({ name: 'web' });
      const key = canary('upstream');
      const { exitCode, out, err } = await here(
        `project update web --name website --base-url ${other.url} --key-file ${keyFile(key)}`,
      );
      expect(exitCode, err).to.equal(0);
      const { host } = new URL(other.url);
      expect(err).to.equal(
        `Renamed ${id.slice(0, 8)} from web to website. Changed the provider of ${id.slice(0, 8)} (website) from default to ${host}: ${other.url}, bearer. New requests use it. The provider accepted the key.\n`,
      );
      expect(out + err).not.to.contain(key);
      expect(other.received.at(-1)?.headers.authorization).to.equal(`Bearer ${key}`);
      expect((await read('website')).upstream_base_url).to.equal(other.url);
    });

    it('reads the key from standard input with --key-file -, and changes nothing if the provider refuses it', async () => {
      await daemon.createProject({ name: 'web' });
      other.answer = replies(401, {});
      const change = `project update web --base-url ${other.url} --key-file -`;
      const refused = await here(change, { stdin: canary('upstream') });
      expect(refused.exitCode).to.equal(1);
      expect(refused.err).to.contain('the provider refused the key with status 401');
      expect((await read('web')).upstream_base_url).to.equal(null);
      expect((await here(`${change} --no-check`, { stdin: canary('upstream') })).exitCode).to.equal(0);
      expect((await read('web')).upstream_base_url).to.equal(other.url);
    });

    it('changes the header without a key, and prints an undo command that works', async () => {
      await daemon.createProject({ name: 'web' });
      const { err } = await here('project update web --auth x-api-key');
      expect((await read('web')).upstream_auth).to.equal('x-api-key');
      const undo = /Undo: llmp (.+)\n/.exec(err)?.[1] ?? '';
      expect((await here(undo)).exitCode).to.equal(0);
      expect((await read('web')).upstream_auth).to.equal('bearer');
    });

    it('sets what happens with missing usage, and prints an undo command that works', async () => {
      await here('project create --name web --no-check --missing-usage inject', { stdin: UPSTREAM_KEY });
      expect((await read('web')).missing_usage).to.equal('inject');
      const { err } = await here('project update web --missing-usage off');
      expect(err).to.contain('(web) from inject to off.');
      expect((await read('web')).missing_usage).to.equal('off');
      expect((await here(/Undo: llmp (.+)\n/.exec(err)?.[1] ?? '')).exitCode).to.equal(0);
      expect((await read('web')).missing_usage).to.equal('inject');
      expect((await here('project update web --missing-usage others')).exitCode).to.equal(2);
    });

    it('refers to set-key if only a key is given', async () => {
      await daemon.createProject({ name: 'web' });
      const { exitCode, err } = await here(`project update web --key-file ${keyFile(canary('upstream'))}`);
      expect(exitCode).to.equal(2);
      expect(err).to.contain('llmp project set-key');
    });
  });

  describe('check', () => {
    it('asks the provider of the project with its key', async () => {
      await here(`project create --name web --no-check --base-url ${other.url} --auth x-api-key`, {
        stdin: UPSTREAM_KEY,
      });
      const { exitCode, out } = await here('project check web', { terminal: 100 });
      expect(exitCode).to.equal(0);
      expect(out)
        .to.match(/result.* accepted/)
        .and.to.match(/status.* 200/);
      expect(other.received.map(({ headers }) => headers['x-api-key'])).to.deep.equal([UPSTREAM_KEY]);
      expect(provider.received).to.have.length(0);
    });

    it('exits with 9 and the reason if the provider refuses the key, fails or is unreachable', async () => {
      await daemon.createProject({ name: 'web' });
      for (const [status, result, reason] of [
        [401, 'key_refused', 'the provider refused the key with status 401'],
        [502, 'provider_error', 'the provider responded with status 502'],
        [null, 'unreachable', 'upstream unreachable (ECONNREFUSED)'],
      ] as const) {
        provider.answer = replies(status ?? 200, {});
        if (status === null) await provider.stop();
        const { exitCode, out, err } = await here('project check web --json');
        expect(exitCode).to.equal(9);
        expect(JSON.parse(out)).to.include({ result, reason, status });
        expect(out + err).not.to.contain(UPSTREAM_KEY);
      }
    });

    it('exits with 0 if the response says nothing about the key, and with 4 for an unknown project', async () => {
      await daemon.createProject({ name: 'web' });
      provider.answer = replies(404, {});
      const { exitCode, out } = await here('project check web --json');
      expect(exitCode).to.equal(0);
      expect(JSON.parse(out)).to.include({ result: 'not_confirmed' });
      expect((await here('project check nothing')).exitCode).to.equal(4);
    });
  });

  it('is shown in lists and details, and selected with provider:', async () => {
    for (const [name, options] of [
      ['plain', ''],
      ['claude', '--provider anthropic'],
      ['own', '--base-url https://llm.example:8443/api'],
    ] as const) {
      await here(`project create --name ${name} --no-check ${options}`.trim(), { stdin: UPSTREAM_KEY });
    }
    const list = (await here('project list', { terminal: 140 })).out;
    expect(list).to.contain('PROVIDER');
    for (const title of ['Anthropic', 'default', 'llm.example:8443']) expect(list).to.contain(title);
    const details = (await here('project get claude', { terminal: 100 })).out;
    expect(details).to.match(/upstream_base_url.* https:\/\/api\.anthropic\.com \(Anthropic\)/);
    expect(details).to.match(/upstream_auth.* x-api-key/);
    const names = async (query: string) => (await json<WireProject[]>(`project list ${query}`)).map(({ name }) => name);
    expect(await names('provider:anthropic')).to.deep.equal(['claude']);
    expect(await names('provider:default,other')).to.have.members(['plain', 'own']);
    expect(await names('!provider:default')).to.have.members(['claude', 'own']);
    expect((await here('project list provider:nobody')).exitCode).to.equal(2);
  });
});
