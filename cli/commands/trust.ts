/** `llmp trust …`: manages what exchanges JWTs of an issuer for tokens. */
import { integer } from '../../config/kinds.js';
import { etagOf, type ManagementClient } from '../../daemon/api/client.js';
import type { TrustPatch, WireTrust } from '../../daemon/api/contract.js';
import { MAX_CAP, NO_POLICIES } from '../../daemon/api/vocabulary.js';
import { shortId } from '../../console/columns/cell-text.js';
import { matchShown, TRUST_FIELDS } from '../../console/columns/access.js';
import { EXIT, usage } from '../../console/failure.js';
import { hoursOf, type Lifetime, lifetime } from '../../console/span.js';
import { trustView } from '../../console/views.js';
import { claimsIn, countOrNone } from '../access-options.js';
import { type BatchChange, dryRun, ONE_TRUST, onEachId, TRUSTS } from '../batch.js';
import { command } from '../command.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { limit, listed } from '../listing.js';
import { flag, text, texts, value, type Values } from '../option.js';
import { hasPolicies, NONE, orNone, policiesIn, policyOptions } from '../policy-options.js';
import { defaultProject, onlyActiveProject } from './issuing.js';

const MINUTES_BY_DEFAULT = 60;

const terms = {
  audience: text('--audience <TEXT>', 'the `aud` that a JWT must have'),
  match: texts(
    '--match <CLAIM=VALUE...>',
    'a claim that a JWT must have, with this value, in which * stands for any characters (can be repeated); one of them must identify the owner, without *',
  ),
  duration: value('--duration <HOURS>', lifetime, 'lifetime of the tokens, in hours or with a unit, for example 30m'),
  maxRequests: value('--max-requests <COUNT>', integer(0, MAX_CAP), 'request cap of the tokens; 0: unlimited'),
  name: text(
    '--name <TEXT>',
    "name of the tokens, in which {claim} stands for a claim of the JWT, for example 'gha {repository}#{run_id}'",
  ),
  jwksFile: value(
    '--jwks-file <NAME>',
    orNone({ accepts: 'the name of a file', parse: (given) => given || undefined }, ''),
    `name of a file in JWKS_DIR of the daemon, with the public keys of the issuer; ${NONE}: the issuer publishes them`,
  ),
  maxActive: value(
    '--max-active <COUNT>',
    countOrNone,
    `maximum number of tokens that are active at the same time; ${NONE}: no maximum`,
  ),
  perHour: value('--per-hour <COUNT>', countOrNone, `maximum number of tokens in an hour; ${NONE}: no maximum`),
  ...policyOptions,
};

type Terms = Values<typeof terms>;

/** The fields of the API, without the policies. Empty without any of the options. */
function termsIn(given: Terms): TrustPatch {
  const { audience, match, duration, maxRequests, name, jwksFile, maxActive, perHour } = given;
  return {
    ...(audience !== undefined && { audience }),
    ...(match && { match: claimsIn(match) }),
    ...(duration && { duration_minutes: minutesOf(duration) }),
    ...(maxRequests !== undefined && { max_requests: maxRequests }),
    ...(name !== undefined && { name }),
    ...(jwksFile !== undefined && { jwks_file: jwksFile || null }),
    ...(maxActive !== undefined && { max_active: maxActive || null }),
    ...(perHour !== undefined && { per_hour: perHour || null }),
  };
}

const minutesOf = (given: Lifetime | undefined): number | undefined => given && hoursOf(given) * 60;

const create = command({
  path: ['manage', 'trust', 'create'],
  summary: 'exchange JWTs of an issuer for tokens of a project',
  examples: [
    [
      "trust create --project-id web --issuer https://token.actions.githubusercontent.com --audience llmp --match repository=acme/web --match ref=refs/heads/main --duration 30m --name 'gha {repository}#{run_id}'",
      'let the main branch of a repository get tokens in GitHub Actions',
    ],
    [
      'trust create --project-id web --issuer https://kubernetes.default.svc --audience llmp --jwks-file cluster.json --match sub=system:serviceaccount:shop:worker --max-active 20',
      'let the pods of a service account get tokens, with public keys from a file',
    ],
  ],
  options: {
    issuer: text('--issuer <URL>', 'the `iss` of the JWTs: a URL with https, or http for loopback'),
    projectId: text(
      '--project-id <ID>',
      "project of the tokens, by name or ID (default: LLMP_PROJECT_ID, the context's project, or the only active project)",
      'project',
    ),
    ...terms,
    duration: { ...terms.duration, meaning: `${terms.duration.meaning} (default: 1h)` },
  },
  prints: () => TRUST_FIELDS,
  async run({ options, shell, destination, output, connect }) {
    const { issuer, audience, match } = options;
    if (issuer === undefined) throw usage('no issuer given', { advice: 'Add --issuer URL' });
    if (audience === undefined) throw usage('no audience given', { advice: 'Add --audience TEXT' });
    if (match === undefined) throw usage('no claims given', { advice: 'Add --match CLAIM=VALUE' });
    const given = options.projectId ?? defaultProject({ shell, destination });
    const project = given === undefined ? undefined : checkedId('project', given);
    const policies = policiesIn(options, NO_POLICIES);
    const body = {
      ...termsIn(options),
      duration_minutes: minutesOf(options.duration) ?? MINUTES_BY_DEFAULT,
      issuer,
      audience,
      match: claimsIn(match),
      ...policies,
    };
    const client = await connect();
    const projectId =
      project === undefined ? await onlyActiveProject(client, output) : await wholeIdOf(client, 'project', project);
    const trust = await client.createTrust({ ...body, project_id: projectId });
    await output.one(trust, trustView);
    output.note(`Created trust ${shortId(trust.id)} for ${trust.project_name}. Undo: llmp trust delete ${trust.id}`);
    return EXIT.done;
  },
});

const list = command({
  path: ['manage', 'trust', 'list'],
  summary: 'list trusts',
  examples: [['trust list', 'list which JWTs are exchanged for tokens; the newest come first']],
  options: { limit },
  async run({ options, output, connect }) {
    const client = await connect();
    const trusts = await listed((page) => client.trusts(page), options.limit, output);
    await output.list(trusts, trustView);
    if (trusts.length === 0) output.note('No trusts. See: llmp help trust create');
    return EXIT.done;
  },
});

const TRUST = {
  noun: 'trust',
  view: trustView,
  lookUp: (client: ManagementClient, id: string) => client.trust(id),
} as const;

const show = command({
  path: ['manage', 'trust', 'show'],
  summary: 'show trusts',
  examples: [['trust show 3fa91c2e', 'show a trust by the first characters of its ID']],
  argument: TRUSTS,
  options: {},
  run: (invocation) => onEachId(invocation, TRUST),
});

const update = command({
  path: ['manage', 'trust', 'update'],
  summary: 'change a trust; tokens that exist keep their terms',
  examples: [
    ['trust update 3fa91c2e --duration 15m --max-active 5', 'change what the next tokens get'],
    ['trust update 3fa91c2e --match repository=acme/web', 'replace all claims that a JWT must have'],
    ['trust update 3fa91c2e --inactive', 'exchange no more JWTs for now'],
  ],
  argument: ONE_TRUST,
  options: {
    ...terms,
    match: { ...terms.match, meaning: `${terms.match.meaning}; replaces all claims` },
    active: flag('--active', 'exchange JWTs again'),
    inactive: flag('--inactive', 'exchange no JWTs until the trust is active again'),
  },
  prints: () => TRUST_FIELDS,
  async run({ args, options, output, connect }) {
    const { active, inactive } = options;
    if (active && inactive) throw usage('--active and --inactive exclude each other', { advice: 'Use one of them' });
    const plain: TrustPatch = { ...termsIn(options), ...((active ?? inactive) && { is_active: active === true }) };
    if (Object.keys(plain).length === 0 && !hasPolicies(options)) {
      throw usage('nothing to change', { advice: 'See: llmp help trust update' });
    }
    const given = checkedId('trust', args[0] ?? '');
    const client = await connect();
    const before = await client.trust(await wholeIdOf(client, 'trust', given));
    // What is not given must be as it is now.
    const changes = { ...plain, ...policiesIn(options, before) };
    const after = await client.updateTrust(before.id, changes, { ifMatch: etagOf(before) ?? '*' });
    if (output.format !== 'table') await output.one(after, trustView);
    const what = after.is_active ? `exchanges JWTs with ${matchShown(after.match)}` : 'exchanges no JWTs';
    output.note(`Changed trust ${shortId(after.id)}: it ${what}. See: llmp trust show ${after.id}`);
    return EXIT.done;
  },
});

const deletion: BatchChange<WireTrust> = {
  verb: 'Delete',
  pastTense: 'Deleted',
  question: 'Its JWTs will not be exchanged any more. There is no undo.',
  async apply(client, id) {
    const trust = await client.trust(id);
    await client.deleteTrust(id);
    return trust;
  },
  isApplied: () => false,
  remark: () => 'Tokens that exist stay as they are.',
};

const remove = command({
  path: ['manage', 'trust', 'delete'],
  summary: 'delete trusts; tokens that exist stay as they are',
  examples: [['trust delete 3fa91c2e --reason "repository archived"', 'exchange no more JWTs of an issuer']],
  argument: TRUSTS,
  options: { dryRun },
  prints: () => TRUST_FIELDS,
  run: (invocation) => onEachId(invocation, { ...TRUST, change: deletion }),
});

export const trustCommands = [create, list, show, update, remove];
