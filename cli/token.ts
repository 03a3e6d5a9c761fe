/** `llmp token …`: the records of tokens that were issued. Issuing one is in token-generate.ts. */
import { type Kind, oneOf } from '../config/kinds.js';
import type { TokenQuery } from '../daemon/api/contract.js';
import { confirmed, IDS, onEachId } from './batch.js';
import { command, flag, type Invocation, text, value } from './command.js';
import { EXIT, usage } from './failure.js';
import { checkedId, wholeIdOf } from './ids.js';
import { limit, listed } from './listing.js';
import { generate } from './token-generate.js';
import { shortId, TOKEN_STATES, tokensRevokedView, tokenView } from './views.js';

const SORT_FIELDS = ['created_at', 'expires_at', 'last_used_at', 'request_count', 'name'];
const sortOrder = oneOf(...SORT_FIELDS.flatMap((field) => [field, `-${field}`]));

const MS_PER: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds. Days too, unlike in the settings: this drives no timer. */
const span: Kind<number> = {
  accepts: 'a time such as 30m, 2h or 7d',
  parse(given) {
    const [, amount, unit] = /^(\d{1,6})([smhd])$/.exec(given) ?? [];
    return amount && unit ? Number(amount) * (MS_PER[unit] ?? NaN) : undefined;
  },
};

const list = command({
  path: ['manage', 'token', 'list'],
  summary: 'list tokens',
  examples: [
    ['token list --active-only --sort expires_at', 'what can be used now, the next to expire first'],
    ['token list --expires-within 2h -o csv', 'what expires in the next two hours, for a spreadsheet'],
  ],
  options: {
    projectId: text('--project-id <ID>', 'only of this project'),
    activeOnly: flag('--active-only', 'only those that can be used now'),
    state: value('--state <STATE>', oneOf(...TOKEN_STATES), `only in this state: ${TOKEN_STATES.join(', ')}`),
    expiresWithin: value('--expires-within <TIME>', span, 'only those that expire between now and then, such as 2h'),
    sort: value('--sort <FIELD>', sortOrder, `${SORT_FIELDS.join(', ')}; with - in front descending`),
    limit,
  },
  async run({ options, shell, output, connect }) {
    const project = options.projectId === undefined ? undefined : checkedId('project', options.projectId);
    const client = await connect();
    const query: TokenQuery = {};
    if (project !== undefined) query.project_id = await wholeIdOf(client, 'project', project);
    if (options.activeOnly) query.active_only = 'true';
    if (options.state) query.state = options.state;
    if (options.sort) query.sort = options.sort;
    if (options.expiresWithin !== undefined) {
      query.expires_after = new Date(shell.now()).toISOString();
      query.expires_before = new Date(shell.now() + options.expiresWithin).toISOString();
    }
    const tokens = await listed((page) => client.tokens({ ...query, ...page }), options.limit, output);
    await output.list(tokens, tokenView);
    if (tokens.length === 0) output.note('No such tokens.');
    return EXIT.done;
  },
});

const get = command({
  path: ['manage', 'token', 'get'],
  summary: 'show tokens, with their request counts',
  examples: [['token get 3fa91c2e', 'one token, by the beginning of its id']],
  argument: IDS,
  options: {},
  run: (invocation) => onEachId(invocation, { noun: 'token', view: tokenView, work: (client, id) => client.token(id) }),
});

const revoke = command({
  path: ['manage', 'token', 'revoke'],
  summary: 'refuse tokens from now on',
  examples: [
    ['token revoke 3fa91c2e --reason "leaked in CI log"', 'the reason goes into the audit record'],
    ['token revoke --project-id 77ab10f3 --yes', 'every token of a project'],
  ],
  argument: { ...IDS, required: false },
  options: { projectId: text('--project-id <ID>', 'every token of this project, instead of ids') },
  run(invocation) {
    const { projectId } = invocation.options;
    if (projectId === undefined) return setActive(invocation, false);
    if (invocation.args.length > 0) throw usage('ids and --project-id exclude each other', { advice: 'Give one' });
    return revokeTokensOf(projectId, invocation);
  },
});

const reactivate = command({
  path: ['manage', 'token', 'reactivate'],
  summary: 'let revoked tokens be used again',
  examples: [['token reactivate 3fa91c2e', 'it keeps its expiry and its request count']],
  argument: IDS,
  options: {},
  run: (invocation) => setActive(invocation, true),
});

function setActive(invocation: Invocation, isActive: boolean): Promise<number> {
  if (invocation.args.length === 0) throw usage('no id given', { advice: 'Give ids, or --project-id' });
  const change = isActive ? { verb: 'Reactivate', past: 'Reactivated' } : { verb: 'Revoke', past: 'Revoked' };
  const opposite = isActive ? 'revoke' : 'reactivate';
  return onEachId(invocation, {
    noun: 'token',
    view: tokenView,
    change,
    async work(client, id) {
      // Revoking by DELETE answers with a sentence only; this way there is a name to show.
      const token = await client.setTokenActive(id, isActive);
      const named = token.name === null ? '' : ` (${token.name})`;
      const but = isActive && token.state !== 'active' ? ` It still cannot be used: ${token.state}.` : '';
      const undo = `Undo: llmp token ${opposite} ${token.id}`;
      invocation.output.note(`${change.past} ${shortId(token.id)}${named}.${but} ${undo}`);
      return token;
    },
  });
}

async function revokeTokensOf(given: string, { globals, input, output, connect }: Invocation): Promise<number> {
  const checked = checkedId('project', given);
  await confirmed(`Revoke every token of project ${checked}?`, globals.yes === true, input);
  const client = await connect();
  const id = await wholeIdOf(client, 'project', checked);
  const revoked = await client.revokeTokensOf(id);
  if (output.format !== 'table') await output.one({ ...revoked, project_id: id }, tokensRevokedView);
  const count = `${revoked.revoked_count} token${revoked.revoked_count === 1 ? '' : 's'}`;
  output.note(
    `Revoked ${count} of project ${shortId(id)}. To undo, choose from: llmp token list --project-id ${id} --state revoked`,
  );
  return EXIT.done;
}

export const tokenCommands = [generate, list, get, revoke, reactivate];
