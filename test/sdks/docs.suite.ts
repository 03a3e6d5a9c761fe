/** The programs in docs/clients and the code example of the Admin UI, unchanged except for the address, run with their SDKs. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { UpstreamAuth } from '../../daemon/api/vocabulary.js';
import { snippetsFor } from '../../daemon/admin/parts/snippets.js';
import { AGENTS } from '../agents/agents.js';
import { UPSTREAM_KEY } from '../support/daemon.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { type Environment, ENVIRONMENTS, NotChecked, type Program } from './environments.js';
import { standIn } from './stand-in.js';

const PAGES = resolve(import.meta.dirname, '../../../docs/clients');
const { npm, pythonNew, langchain, go } = ENVIRONMENTS;
const execute = promisify(execFile);

interface Example {
  page: string;
  language: string;
  source: string;
}

const ADDRESS = 'http://127.0.0.1:8080';

/** The blocks that a page marks as programs. */
const onPages: Example[] = readdirSync(PAGES).flatMap((page) =>
  [...readFileSync(join(PAGES, page), 'utf8').matchAll(/^<!-- runs: sdk -->\n\n```(\w+)\n([^]*?)^```/gm)].map(
    ([, language = '', source = '']) => ({ page, language, source }),
  ),
);

// The one for Node.js is run by test/admin/snippets.system.ts.
const ofAdminUi: Example[] = snippetsFor(`${ADDRESS}/v1`)
  .filter(({ id }) => id === 'python')
  .map(({ text }) => ({ page: 'the Admin UI', language: 'python', source: text }));

function environmentOf({ page, language }: Example): Environment {
  if (language === 'python') return page === 'langchain.md' ? langchain : pythonNew;
  return language === 'go' ? go : npm;
}

/** Runs a program inside the environment of its SDK, where it finds its packages. @returns what it prints. */
async function run({ language, source }: Example, { command, args }: Program, env: NodeJS.ProcessEnv): Promise<string> {
  const home = language === 'python' ? dirname(command) : dirname(args[0] ?? command);
  const folder = mkdtempSync(join(home, 'example-'));
  try {
    const [file, ...words] = programOf(language, command);
    mkdirSync(join(folder, 'src'));
    const name = join(folder, 'src', { python: 'main.py', go: 'main.go' }[language] ?? 'main.mjs');
    // Here these SDKs are installed under names that include their major version.
    const installed = source.replace(`from 'openai'`, `from 'openai6'`).replace(`'@anthropic-ai/sdk'`, `'anthropic1'`);
    writeFileSync(name, installed);
    if (language === 'go') {
      for (const each of ['go.mod', 'go.sum']) copyFileSync(join(home, each), join(folder, 'src', each));
    }
    const { stdout } = await execute(file ?? '', [...words, language === 'go' ? '.' : name], {
      cwd: join(folder, 'src'),
      env,
      timeout: 300_000,
    });
    return stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The provider of the project, by the SDK of the program. */
function upstreamOf(source: string): { path: string; upstream_auth: UpstreamAuth } {
  if (/google/i.test(source)) return { path: '', upstream_auth: 'x-goog-api-key' };
  if (/anthropic/i.test(source)) return { path: '', upstream_auth: 'x-api-key' };
  if (/azure/i.test(source)) return { path: '', upstream_auth: 'api-key' };
  return { path: source.includes('groq-sdk') ? '/openai' : '', upstream_auth: 'bearer' };
}

function programOf(language: string, python: string): string[] {
  if (language === 'python') return [python];
  return language === 'go' ? ['go', 'run'] : [process.execPath];
}

describe('the programs in docs/clients', function () {
  this.timeout(600_000);
  let scene: ProxyFixture;
  before(async () => {
    scene = await ProxyFixture.open();
  });
  after(() => scene.close());

  it('are found', () => {
    expect(new Set(onPages.map(({ page }) => basename(page, '.md')))).to.include.all.keys(
      ...readdirSync(PAGES)
        // Those of agents have blocks that test/agents runs.
        .filter((page) => page !== 'README.md' && !AGENTS.some((agent) => agent.page === page))
        .map((page) => basename(page, '.md')),
    );
  });

  for (const [index, example] of [...onPages, ...ofAdminUi].entries()) {
    it(`${example.page} (${example.language}, block ${index + 1}) prints the response`, async function () {
      let program: Program;
      try {
        program = await environmentOf(example).prepare();
      } catch (error) {
        if (!(error instanceof NotChecked)) throw error;
        console.log(`NOT CHECKED: the example in ${example.page}: ${error.message}`);
        this.skip();
      }
      await scene.begin();
      scene.provider.answer = standIn(
        () => Promise.resolve(),
        () => undefined,
      );
      const { path, upstream_auth } = upstreamOf(example.source);
      const upstream = { upstream_base_url: scene.provider.url + path, upstream_auth, api_key: UPSTREAM_KEY };
      expect((await scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, upstream)).status).to.equal(
        200,
      );
      const source = example.source.replaceAll(ADDRESS, scene.daemon.url);
      const env = { PATH: process.env.PATH, HOME: process.env.HOME, TOKEN: scene.secret, OPENAI_API_KEY: scene.secret };
      expect(await run({ ...example, source }, program, env)).to.match(/Hello/);
      expect(scene.provider.received).to.have.length(1);
    });
  }
});
