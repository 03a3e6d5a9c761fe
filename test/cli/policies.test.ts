import { expect } from 'chai';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { daemonForEachTest, UPSTREAM_KEY } from '../support/daemon.js';
import { commandsAt } from './captured.js';

describe('llmp: routes and models', () => {
  const daemon = daemonForEachTest();
  const { here, json } = commandsAt(daemon);
  const words = (...args: string[]) => args;
  const undo = async (err: string) => {
    const line = /Undo: llmp (.+)\n/.exec(err)?.[1] ?? '';
    const args = Array.from(line.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, bare = '']) => quoted ?? bare);
    expect((await here(args)).exitCode, line).to.equal(0);
  };
  let project: WireProject;
  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
  });

  it('are those of the options of a new token, given several times or as a list', async () => {
    const token = await json<WireToken>(
      words('token', 'generate', '--allow-route', 'inference', '--allow-route', 'GET /v1/*', '--allow-model', 'a,b-*'),
    );
    expect(token.allow).to.deep.equal({ routes: ['inference', 'GET /v1/*'], models: ['a', 'b-*'] });
    const like = await json<WireToken>(words('token', 'generate', '--like', token.id, '--allow-model', 'c'));
    expect(like.allow).to.deep.equal({ routes: ['inference', 'GET /v1/*'], models: ['c'] });
    const open = await json<WireToken>(
      words('token', 'generate', '--like', token.id, '--allow-model', 'none', '--allow-route', 'none'),
    );
    expect(open.allow).to.equal(null);
    const { out } = await here(`token get ${token.id}`, { terminal: 160 });
    expect(out).to.match(/allow.*routes inference, GET \/v1\/\*; models a, b-\*/);
  });

  for (const what of ['token', 'project'] as const) {
    it(`of a ${what} are changed one by one, with an undo command that works`, async () => {
      const allow = { routes: ['inference'], models: ['a'] };
      const { id } = what === 'token' ? await daemon.createToken(project.id) : project;
      const read = async () => (await json<WireToken | WireProject>(`${what} get ${id}`)).allow;
      const change = async (...options: string[]) => {
        const { exitCode, err } = await here([what, 'update', id, ...options]);
        expect(exitCode, err).to.equal(0);
        return err;
      };
      await change('--allow-route', 'inference', '--allow-model', 'a');
      expect(await read()).to.deep.equal(allow);
      const changed = await change('--allow-model', 'b', '--allow-model', 'c-*');
      expect(await read()).to.deep.equal({ ...allow, models: ['b', 'c-*'] });
      await undo(changed);
      expect(await read()).to.deep.equal(allow);
      await change('--allow-route', 'none');
      expect(await read()).to.deep.equal({ models: ['a'] });
      const removed = await change('--allow-model', 'none');
      expect(await read()).to.equal(null);
      await undo(removed);
      expect(await read()).to.deep.equal({ models: ['a'] });
    });
  }

  it('are those of the options of a new project', async () => {
    await here('project create --name new --no-check --allow-model a,b', { stdin: UPSTREAM_KEY });
    expect((await json<WireProject>('project get new')).allow).to.deep.equal({ models: ['a', 'b'] });
  });

  it('are refused without a request if they are none', async () => {
    for (const options of [
      ['--allow-route', 'everything'],
      ['--allow-route', '/v1/models'],
      ['--allow-route', 'get /v1/models'],
      ['--allow-model', 'a b'],
      ['--allow-model', 'none,a'],
      ['--allow-model', ''],
      ['--allow-model', 'm'.repeat(201)],
    ]) {
      expect((await here(['token', 'generate', ...options])).exitCode, options.join(' ')).to.equal(2);
    }
    expect((await here('token update 3fa91c2e')).err).to.contain('nothing to change');
    expect((await here('token generate --from x.csv --allow-model a')).err).to.contain('exclude each other');
    expect((await here('token list -o id')).out).to.equal('');
  });
});
