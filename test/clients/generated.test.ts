/** Clients that third-party generators create from the OpenAPI description: each compiles and works with a daemon. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { DESCRIPTION } from '../support/description.js';
import { startServer, type Server } from './server.js';
import { goTools, npmTools, orPending, pythonTools, succeed, workFolder } from './tools.js';

const PROGRAMS = join(import.meta.dirname, '../../../test/clients/programs');
const DONE = 'the main job is done\n';

describe('a client generated from the OpenAPI description compiles and works', function () {
  this.timeout(600_000);
  let server: Server;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  /** Creates a folder with the description and these programs. */
  function stage(parent: string, ...programs: string[]): string {
    const folder = workFolder(parent);
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(DESCRIPTION));
    for (const name of programs) copyFileSync(join(PROGRAMS, name), join(folder, name));
    return folder;
  }

  /** Type-checks the program and runs it with the daemon. */
  async function doMainJob(npm: string, folder: string, program: string): Promise<void> {
    const bin = (name: string) => join(npm, 'node_modules/.bin', name);
    await succeed(bin('tsc'), ['-p', '.'], { cwd: folder });
    const bundle = ['--bundle', '--platform=node', '--format=esm', '--outfile=program.mjs', '--log-level=error'];
    await succeed(bin('esbuild'), [`${program}.ts`, ...bundle], { cwd: folder });
    const output = await succeed(process.execPath, ['program.mjs', program], { cwd: folder, env: server.env });
    expect(output).to.equal(DONE);
  }

  it('in TypeScript, with openapi-typescript with openapi-fetch', async function () {
    const npm = await orPending(this, 'a client of openapi-typescript', npmTools());
    const folder = stage(npm, 'common.ts', 'openapi-fetch.ts', 'tsconfig.json');
    const generator = join(npm, 'node_modules/.bin/openapi-typescript');
    await succeed(generator, ['openapi.json', '-o', 'generated.d.ts'], { cwd: folder });
    await doMainJob(npm, folder, 'openapi-fetch');
  });

  it('in TypeScript, with hey-api', async function () {
    const npm = await orPending(this, 'a client of hey-api', npmTools());
    const folder = stage(npm, 'common.ts', 'hey-api.ts', 'tsconfig.json');
    const plugins = ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'];
    const options = ['-i', 'openapi.json', '-o', 'generated', '-p', ...plugins];
    await succeed(join(npm, 'node_modules/.bin/openapi-ts'), options, { cwd: folder });
    await doMainJob(npm, folder, 'hey-api');
  });

  it('in TypeScript, with OpenAPI Generator', async function () {
    const npm = await orPending(this, 'a client of OpenAPI Generator', npmTools());
    const python = await orPending(this, 'a client of OpenAPI Generator', pythonTools());
    const folder = stage(npm, 'common.ts', 'typescript-fetch.ts', 'tsconfig.json');
    const options = ['generate', '-g', 'typescript-fetch', '-i', 'openapi.json', '-o', 'generated'];
    await succeed(join(python, 'openapi-generator-cli'), options, { cwd: folder });
    await doMainJob(npm, folder, 'typescript-fetch');
  });

  it('in Python, with openapi-python-client', async function () {
    const python = await orPending(this, 'a client of openapi-python-client', pythonTools());
    const folder = stage(join(python, '../..'), 'main.py');
    writeFileSync(join(folder, 'config.yml'), 'post_hooks: []\n');
    const options = ['generate', '--path', 'openapi.json', '--config', 'config.yml', '--meta', 'none'];
    const output = await succeed(join(python, 'openapi-python-client'), [...options, '--output-path', 'llmp_client'], {
      cwd: folder,
    });
    expect(output, 'warnings of the generator').not.to.match(/warning|unsupported|invalid/i);
    expect(await succeed(join(python, 'python'), ['main.py', 'python'], { cwd: folder, env: server.env })).to.equal(
      DONE,
    );
  });

  it('in Go, with oapi-codegen', async function () {
    const { generator, env, module } = await orPending(this, 'a client of oapi-codegen', goTools());
    const folder = stage(join(generator, '../..'), 'main.go');
    mkdirSync(join(folder, 'llmp'));
    for (const name of ['go.mod', 'go.sum']) copyFileSync(join(module, name), join(folder, name));
    const options = ['-generate', 'types,client', '-package', 'llmp', '-o', 'llmp/llmp.gen.go', 'openapi.json'];
    await succeed(generator, options, { cwd: folder });
    await succeed('go', ['vet', './...'], { cwd: folder, env });
    await succeed('go', ['build', '-o', 'program', '.'], { cwd: folder, env });
    expect(await succeed(join(folder, 'program'), ['go'], { cwd: folder, env: server.env })).to.equal(DONE);
  });
});
