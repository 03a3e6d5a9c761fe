/** `llmp project …`: projects, each of which holds one upstream key. */
import { IDS, onEachId } from './batch.js';
import { command, type Invocation, text } from './command.js';
import { EXIT, usage } from './failure.js';
import type { Input } from './input.js';
import { limit, listed } from './listing.js';
import { projectView, shortId } from './views.js';

const create = command({
  path: ['manage', 'project', 'create'],
  summary: 'create a project',
  examples: [
    ['project create --name web --key-file key.txt', 'with the upstream key that is in key.txt'],
    ['project create --name web < key.txt', 'the same, the key on standard input'],
  ],
  options: {
    name: text('--name <TEXT>', 'a unique name of 1 to 100 characters'),
    keyFile: text('--key-file <FILE>', 'a file that holds the upstream key; otherwise standard input, or a prompt'),
  },
  async run({ options, input, output, connect }) {
    if (options.name === undefined) throw usage('a project needs a name', { advice: 'Add --name TEXT' });
    const key = await upstreamKey(options.keyFile, input);
    const client = await connect();
    const project = await client.createProject({ name: options.name, api_key: key });
    await output.one(project, projectView);
    output.note(
      `Created project ${project.name}. Issue a token for it: llmp token generate --project-id ${project.id}`,
    );
    return EXIT.done;
  },
});

/** Never a flag: `ps` and the shell's history would keep it. */
async function upstreamKey(file: string | undefined, input: Input): Promise<string> {
  if (file === undefined && !input.isPiped && !input.canAsk) {
    throw usage('no upstream key', { advice: 'Use --key-file FILE, or standard input' });
  }
  const key = await input.secretFrom(file ?? '-', 'the upstream key');
  if (key.trim() === '') throw usage('the upstream key is empty', { advice: 'Use --key-file FILE, or standard input' });
  return key;
}

const list = command({
  path: ['manage', 'project', 'list'],
  summary: 'list projects',
  examples: [['project list -o id', 'only their ids']],
  options: { limit },
  async run({ options, output, connect }) {
    const client = await connect();
    const projects = await listed((page) => client.projects(page), options.limit, output);
    await output.list(projects, projectView);
    if (projects.length === 0) output.note('No projects yet: llmp project create --name NAME --key-file FILE');
    return EXIT.done;
  },
});

const get = command({
  path: ['manage', 'project', 'get'],
  summary: 'show projects',
  examples: [['project get 3fa91c2e', 'one project, by the beginning of its id']],
  argument: IDS,
  options: {},
  run: (invocation) =>
    onEachId(invocation, { noun: 'project', view: projectView, work: (client, id) => client.project(id) }),
});

const activate = command({
  path: ['manage', 'project', 'activate'],
  summary: 'let the tokens of projects be used again',
  examples: [['project activate 3fa91c2e', 'its tokens work again, except revoked and expired ones']],
  argument: IDS,
  options: {},
  run: (invocation) => setActive(invocation, true),
});

const deactivate = command({
  path: ['manage', 'project', 'deactivate'],
  summary: 'refuse all tokens of projects until they are activated again',
  examples: [['project deactivate 3fa91c2e --reason "key leaked"', 'the reason goes into the audit record']],
  argument: IDS,
  options: {},
  run: (invocation) => setActive(invocation, false),
});

function setActive(invocation: Invocation, isActive: boolean): Promise<number> {
  const change = isActive ? { verb: 'Activate', past: 'Activated' } : { verb: 'Deactivate', past: 'Deactivated' };
  const opposite = isActive ? 'deactivate' : 'activate';
  return onEachId(invocation, {
    noun: 'project',
    view: projectView,
    change,
    async work(client, id) {
      const project = await client.updateProject(id, { is_active: isActive });
      const undo = `llmp project ${opposite} ${project.id}`;
      invocation.output.note(`${change.past} ${shortId(project.id)} (${project.name}). Undo: ${undo}`);
      return project;
    },
  });
}

export const projectCommands = [create, list, get, activate, deactivate];
