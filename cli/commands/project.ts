/** `llmp project …`: manages projects. Each project holds one upstream key. */
import type { ManagementClient } from '../../daemon/api/client.js';
import type { WireProject } from '../../daemon/api/contract.js';
import { NO_POLICIES } from '../../daemon/api/vocabulary.js';
import { command } from '../command.js';
import { text } from '../option.js';
import { acceptance, keyFile, noCheck, upstreamKey, withCheckedKey } from '../checked-key.js';
import { type BatchChange, dryRun, ONE_PROJECT, onEachId, PROJECTS } from '../batch.js';
import { EXIT, usage } from '../../console/failure.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { missingUsageIn, missingUsageOption, upstreamIn, upstreamOptions } from '../upstream-options.js';
import { limit, listed, selected } from '../listing.js';
import { queryArgument, queryIn } from '../query.js';
import { policiesIn, policyOptions } from '../policy-options.js';
import { update } from './project-update.js';
import { revokeTokensOf } from './revoke-all.js';
import { shortId } from '../../console/columns/cell-text.js';
import { PROJECT_FIELDS } from '../../console/columns/projects.js';
import { TOKEN_FIELDS } from '../../console/columns/tokens.js';
import { PROJECT_CHANGED_FIELDS, projectCheckView, projectView, TOKENS_REVOKED_FIELDS } from '../../console/views.js';

const create = command({
  path: ['manage', 'project', 'create'],
  summary: 'create a project',
  examples: [
    ['project create --name web --key-file key.txt', 'create a project with the upstream key in key.txt'],
    ['project create --name web < key.txt', 'read the upstream key from standard input'],
    ['project create --name claude --provider anthropic --key-file key.txt', 'use another provider'],
    [
      'project create --name azure --provider azure --base-url https://RESOURCE.openai.azure.com --key-file key.txt',
      'give the base URL of your resource',
    ],
  ],
  options: {
    name: text('--name <TEXT>', 'a unique name of 1 to 100 characters'),
    keyFile,
    check: noCheck,
    ...upstreamOptions,
    ...missingUsageOption,
    ...policyOptions,
  },
  prints: () => PROJECT_CHANGED_FIELDS,
  async run({ options, input, output, connect }) {
    const { name } = options;
    if (name === undefined) throw usage('no project name given', { advice: 'Add --name TEXT' });
    const upstream = { ...upstreamIn(options), ...missingUsageIn(options), ...policiesIn(options, NO_POLICIES) };
    const key = await upstreamKey(options.keyFile, input);
    const client = await connect();
    const project = await withCheckedKey(
      (check) => client.createProject({ name, api_key: key, ...upstream, ...check }),
      options.check !== false,
      output,
    );
    await output.one(project, projectView);
    output.note(
      `Created project ${project.name}.${acceptance(project)} Issue a token for it: llmp token generate --project-id ${project.id}`,
    );
    return EXIT.done;
  },
});

const list = command({
  path: ['manage', 'project', 'list'],
  summary: 'list projects',
  examples: [
    ['project list -o id', 'list only the IDs'],
    ["project list 'state:inactive old'", 'list inactive projects with a name that contains old'],
  ],
  argument: queryArgument('projects', "'state:inactive old'"),
  options: { limit },
  async run({ args, options, output, connect }) {
    const client = await connect();
    const { matches } = await queryIn(args, 'projects', client);
    const isSelection = args.length > 0;
    const projects = isSelection
      ? await selected((page) => client.projects(page), matches, options.limit, output)
      : await listed((page) => client.projects(page), options.limit, output);
    await output.list(projects, projectView);
    if (projects.length === 0) {
      output.note(
        isSelection
          ? 'No matching projects.'
          : 'No projects. Create one: llmp project create --name NAME --key-file FILE',
      );
    }
    return EXIT.done;
  },
});

const PROJECT = {
  noun: 'project',
  view: projectView,
  lookUp: (client: ManagementClient, id: string) => client.project(id),
} as const;

const get = command({
  path: ['manage', 'project', 'get'],
  summary: 'show projects',
  examples: [
    ['project get web', 'show a project by name'],
    ['project get 3fa91c2e', 'show a project by the first characters of its ID'],
  ],
  argument: PROJECTS,
  options: {},
  run: (invocation) => onEachId(invocation, PROJECT),
});

const setKey = command({
  path: ['manage', 'project', 'set-key'],
  summary: 'change the upstream key of a project',
  examples: [
    ['project set-key web --key-file key.txt', 'read the key from key.txt'],
    ['project set-key web < key.txt', 'read the key from standard input'],
    ['project set-key web --no-check < key.txt', 'store the key even if the provider does not respond'],
  ],
  argument: ONE_PROJECT,
  options: { keyFile, check: noCheck },
  prints: () => PROJECT_CHANGED_FIELDS,
  async run({ args, options, input, output, connect }) {
    const given = checkedId('project', args[0] ?? '');
    const key = await upstreamKey(options.keyFile, input);
    const client = await connect();
    const id = await wholeIdOf(client, 'project', given);
    const project = await withCheckedKey(
      (check) => client.updateProject(id, { api_key: key, ...check }),
      options.check !== false,
      output,
    );
    if (output.format !== 'table') await output.one(project, projectView);
    // There is no undo, because the previous key can no longer be read.
    output.note(
      `Changed the key of ${shortId(project.id)} (${project.name}).${acceptance(project)} New requests use it.`,
    );
    return EXIT.done;
  },
});

const revokeTokens = command({
  path: ['manage', 'project', 'revoke-tokens'],
  summary: 'revoke all tokens of a project',
  examples: [
    ['project revoke-tokens web --yes', 'revoke all tokens issued so far'],
    ['project revoke-tokens web -n', 'show which tokens would be revoked'],
  ],
  argument: ONE_PROJECT,
  options: { dryRun },
  prints: ({ options }) => (options.dryRun ? TOKEN_FIELDS : TOKENS_REVOKED_FIELDS),
  run: (invocation) => revokeTokensOf(invocation.args[0] ?? '', invocation.options.dryRun === true, invocation),
});

const activate = command({
  path: ['manage', 'project', 'activate'],
  summary: 'activate projects, so that their tokens work again',
  examples: [['project activate web', 'allow its tokens again, except expired and revoked ones']],
  argument: PROJECTS,
  options: { dryRun },
  prints: () => PROJECT_FIELDS,
  run: (invocation) => onEachId(invocation, { ...PROJECT, change: activationChange }),
});

const deactivate = command({
  path: ['manage', 'project', 'deactivate'],
  summary: 'deactivate projects, so that their tokens are refused',
  examples: [['project deactivate web --reason "key leaked"', 'record a reason in the audit log']],
  argument: PROJECTS,
  options: { dryRun },
  prints: () => PROJECT_FIELDS,
  run: (invocation) => onEachId(invocation, { ...PROJECT, change: deactivationChange }),
});

const activationChange: BatchChange<WireProject> = {
  verb: 'Activate',
  pastTense: 'Activated',
  opposite: 'deactivate',
  apply: (client, id) => client.updateProject(id, { is_active: true }),
  isApplied: ({ is_active }) => is_active,
};

const deactivationChange: BatchChange<WireProject> = {
  verb: 'Deactivate',
  pastTense: 'Deactivated',
  opposite: 'activate',
  question: 'Its tokens will be refused until you activate it again.',
  apply: (client, id) => client.updateProject(id, { is_active: false }),
  isApplied: ({ is_active }) => !is_active,
};

const check = command({
  path: ['manage', 'project', 'check'],
  summary: 'check whether the provider of a project responds and accepts its key',
  examples: [
    ['project check web', 'request the list of models with the stored key; exit with 9 if something is wrong'],
    ['project check web -o json', 'print the result for a script'],
  ],
  argument: ONE_PROJECT,
  options: {},
  async run({ args, output, connect }) {
    const given = checkedId('project', args[0] ?? '');
    const client = await connect();
    const project = await client.project(await wholeIdOf(client, 'project', given));
    const checked = await output.during('waiting for the provider', client.checkProject(project.id));
    await output.one({ project_id: project.id, ...checked }, projectCheckView);
    return checked.result === 'accepted' || checked.result === 'not_confirmed' ? EXIT.done : EXIT.checkFailed;
  },
});

export const projectCommands = [create, list, get, update, setKey, check, activate, deactivate, revokeTokens];
