/** `llmp operator …`: manages operators, who have roles. */
import { oneOf } from '../../config/kinds.js';
import { etagOf, type ManagementClient } from '../../daemon/api/client.js';
import type { OperatorPatch, WireOperator, WireOperatorCreated } from '../../daemon/api/contract.js';
import { counted } from '../../daemon/api/formats.js';
import { ROLES } from '../../daemon/api/vocabulary.js';
import { ceilingsShown, OPERATOR_FIELDS } from '../../console/columns/access.js';
import { EXIT, usage } from '../../console/failure.js';
import { operatorCreatedView, operatorView } from '../../console/views.js';
import {
  CEILING_OPTIONS_SHOWN,
  ceilingOptions,
  ceilingsIn,
  expiryIn,
  expiryOption,
  projectsIn,
  projectsOption,
} from '../access-options.js';
import { type BatchChange, dryRun, ONE_OPERATOR, onEachId, OPERATORS } from '../batch.js';
import { command } from '../command.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { limit, listed } from '../listing.js';
import { flag, text, value } from '../option.js';
import { type MadeSecret, refuseToLoseSecret, secretIntoFile, showSecret } from '../secret-once.js';

const SECRET: MadeSecret<WireOperatorCreated, 'secret'> = {
  owner: { noun: 'operator', end: 'deactivate' },
  field: 'secret',
  view: operatorCreatedView,
  viewWithout: operatorView,
};

const role = value('--role <ROLE>', oneOf(...ROLES), `what the operator may do: ${ROLES.join(', ')}`);

const create = command({
  path: ['manage', 'operator', 'create'],
  summary: 'create an operator with a role, and show the secret once',
  examples: [
    ['operator create --name audit --role auditor', 'let somebody read everything'],
    [
      'operator create --name ana --role issuer --project-id web --max-duration 24h --max-active 5',
      'let ana issue tokens of up to a day for one project, five at a time',
    ],
    ['operator create --name ci --role operator --expires 90d --out ci.secret', 'write the secret to a file'],
  ],
  options: {
    name: text('--name <TEXT>', 'a unique name of 1 to 100 characters, which the audit log shows; it does not change'),
    role,
    projectId: projectsOption('all'),
    expires: expiryOption,
    ...ceilingOptions,
    out: text('--out <FILE>', 'write the secret to a new file with mode 0600 instead of printing it'),
  },
  prints: ({ options: { out } }) => (out === undefined ? [...OPERATOR_FIELDS, 'secret'] : OPERATOR_FIELDS),
  async run({ options, shell, output, connect }) {
    const { name, role: given, out } = options;
    if (name === undefined) throw usage('no operator name given', { advice: 'Add --name TEXT' });
    if (given === undefined) throw usage('no role given', { advice: `Add --role ${ROLES.join('|')}` });
    const projects = projectsIn(options.projectId);
    const ceilings = ceilingsIn(options, null);
    if (out === undefined) refuseToLoseSecret(output);
    const client = await connect();
    const body = {
      name,
      role: given,
      ...(projects && { projects: await projects(client) }),
      ...(options.expires !== undefined && { expires_at: expiryIn(options.expires, shell.now()) }),
      ...(ceilings !== undefined && { ceilings }),
    };
    const make = () => client.createOperator(body);
    if (out === undefined) await showSecret(await make(), SECRET, output);
    else await secretIntoFile(out, make, SECRET, output);
    output.note('Use it in place of the management token, for example in MANAGEMENT_TOKEN.');
    return EXIT.done;
  },
});

const list = command({
  path: ['manage', 'operator', 'list'],
  summary: 'list operators',
  examples: [['operator list', 'list operators with their roles; the newest come first']],
  options: { limit },
  async run({ options, output, connect }) {
    const client = await connect();
    const operators = await listed((page) => client.operators(page), options.limit, output);
    await output.list(operators, operatorView);
    if (operators.length === 0) {
      output.note('No operators. Create one: llmp operator create --name NAME --role ROLE');
    }
    return EXIT.done;
  },
});

const OPERATOR = {
  noun: 'operator',
  view: operatorView,
  lookUp: (client: ManagementClient, id: string) => client.operator(id),
} as const;

const show = command({
  path: ['manage', 'operator', 'show'],
  summary: 'show operators, without their secrets',
  examples: [['operator show ana', 'show what ana may do']],
  argument: OPERATORS,
  options: {},
  run: (invocation) => onEachId(invocation, OPERATOR),
});

const update = command({
  path: ['manage', 'operator', 'update'],
  summary: 'change the role, the projects, the expiry or the ceilings of an operator',
  examples: [
    ['operator update ana --role operator', 'give ana another role, from the next request on'],
    ['operator update ana --project-id web,shop', 'let ana see two projects only'],
    ['operator update ana --max-active 10 --budget-usd none', 'change one ceiling and remove another; the others stay'],
    ['operator update ana --expires none', 'let the secret be valid until ana is deactivated'],
  ],
  argument: ONE_OPERATOR,
  options: {
    role,
    projectId: projectsOption('they do not change'),
    allProjects: flag('--all-projects', 'let the operator see all projects, also future ones'),
    expires: expiryOption,
    ...ceilingOptions,
  },
  prints: () => OPERATOR_FIELDS,
  async run({ args, options, shell, output, connect }) {
    const projects = projectsIn(options.projectId);
    if (projects && options.allProjects) {
      throw usage('--project-id and --all-projects exclude each other', { advice: 'Use one of them' });
    }
    const plain: OperatorPatch = {
      ...(options.role !== undefined && { role: options.role }),
      ...(options.allProjects && { projects: null }),
      ...(options.expires !== undefined && { expires_at: expiryIn(options.expires, shell.now()) }),
    };
    const hasCeilings = ceilingsIn(options, EVERY_CEILING) !== undefined;
    if (Object.keys(plain).length === 0 && !projects && !hasCeilings) {
      throw usage('nothing to change', {
        advice: `Add --role ROLE, --project-id IDS, --all-projects, --expires TIME, ${CEILING_OPTIONS_SHOWN}`,
      });
    }
    const given = checkedId('operator', args[0] ?? '');
    const client = await connect();
    const before = await client.operator(await wholeIdOf(client, 'operator', given));
    // What is not given must be as it is now.
    const ceilings = ceilingsIn(options, before.ceilings);
    const changes = {
      ...plain,
      ...(projects && { projects: await projects(client) }),
      ...(ceilings !== undefined && { ceilings }),
    };
    const after = await client.updateOperator(before.id, changes, {}, { ifMatch: etagOf(before) ?? '*' });
    if (output.format !== 'table') await output.one(after, operatorView);
    output.note(`Changed ${after.name}: ${described(after)}. This ended the sessions of ${after.name}.`);
    return EXIT.done;
  },
});

/** A budget can be changed in part only if there is one. */
const EVERY_CEILING = { budget: { usd: '1', period: 'none', mode: 'soft' } } as const;

function described({ role: name, projects, expires_at: expiry, ceilings }: WireOperator): string {
  const seen = projects === null ? 'all projects' : counted(projects.length, 'project');
  return `${name} of ${seen}, ${expiry === null ? 'without expiry' : `until ${expiry}`}; ceilings: ${ceilingsShown(ceilings)}`;
}

const keepTokens = flag('--keep-tokens', 'leave the tokens that the operator has issued as they are');

const deactivate = command({
  path: ['manage', 'operator', 'deactivate'],
  summary: 'deactivate operators, and revoke the tokens that they have issued',
  examples: [
    ['operator deactivate ana --reason "left the team"', 'end the secret, the sessions and the tokens of ana at once'],
    ['operator deactivate ana --keep-tokens', 'leave the tokens that ana has issued as they are'],
  ],
  argument: OPERATORS,
  options: { keepTokens, dryRun },
  prints: () => OPERATOR_FIELDS,
  run: (invocation) =>
    onEachId(invocation, { ...OPERATOR, change: deactivation(invocation.options.keepTokens === true) }),
});

function deactivation(keepsTokens: boolean): BatchChange<WireOperator> {
  const revoked = new Map<string, number>();
  return {
    verb: 'Deactivate',
    pastTense: 'Deactivated',
    opposite: 'reactivate',
    question: keepsTokens
      ? 'The secret and the sessions end at once.'
      : 'The secret and the sessions end at once, and the tokens that the operator has issued are revoked.',
    async apply(client, id) {
      const { revoked_count: count } = await client.deactivateOperator(id, keepsTokens ? { keep_tokens: 'true' } : {});
      revoked.set(id, count);
      return client.operator(id);
    },
    isApplied: ({ is_active: isActive }) => !isActive,
    remark: ({ id }) => (keepsTokens ? 'The tokens stay.' : `${counted(revoked.get(id) ?? 0, 'token')} revoked.`),
  };
}

const reactivate = command({
  path: ['manage', 'operator', 'reactivate'],
  summary: 'reactivate operators, with the same secret',
  examples: [['operator reactivate ana', 'let ana in again; tokens that were revoked stay revoked']],
  argument: OPERATORS,
  options: { dryRun },
  prints: () => OPERATOR_FIELDS,
  run: (invocation) => onEachId(invocation, { ...OPERATOR, change: reactivation }),
});

const reactivation: BatchChange<WireOperator> = {
  verb: 'Reactivate',
  pastTense: 'Reactivated',
  opposite: 'deactivate',
  apply: (client, id, options) => client.updateOperator(id, { is_active: true }, {}, options),
  isApplied: ({ is_active: isActive }) => isActive,
};

export const operatorCommands = [create, list, show, update, deactivate, reactivate];
