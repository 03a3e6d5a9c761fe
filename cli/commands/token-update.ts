/** `llmp token update`: changes what a token may ask for and spend, and how fast. */
import { etagOf } from '../../daemon/api/client.js';
import { EXIT, usage } from '../../console/failure.js';
import { shortId } from '../../console/columns/cell-text.js';
import { allowShown, budgetShown, limitsShown } from '../../console/columns/policies.js';
import { TOKEN_FIELDS } from '../../console/columns/tokens.js';
import { tokenView } from '../../console/views.js';
import { ONE_TOKEN } from '../batch.js';
import { command } from '../command.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { hasPolicies, policiesIn, policyOptions, policyOptionsOf, POLICY_OPTIONS_SHOWN } from '../policy-options.js';

export const update = command({
  path: ['manage', 'token', 'update'],
  summary: 'change what a token may ask for and spend, and how fast',
  examples: [
    ["token update 3fa91c2e --allow-model 'gpt-5-mini,claude-*'", 'allow these models only, from the next request on'],
    ["token update 3fa91c2e --allow-route inference --allow-route 'GET /v1/models'", 'allow these routes only'],
    ['token update 3fa91c2e --rpm 60', 'forward at most 60 requests in any 60 seconds; other limits stay'],
    ['token update 3fa91c2e --rpm none --concurrent 4', 'limit only what is under way at the same time'],
    ['token update 3fa91c2e --budget-usd 20 --budget-period month', 'let the token spend 20 US dollars each month'],
    [
      'token update 3fa91c2e --budget-mode hard',
      'refuse each request that could exceed the budget; the amount and period stay',
    ],
    ['token update 3fa91c2e --allow-model none', 'allow all models again; a list of routes stays'],
  ],
  argument: ONE_TOKEN,
  options: policyOptions,
  prints: () => TOKEN_FIELDS,
  async run({ args, options, output, connect }) {
    if (!hasPolicies(options)) throw usage('nothing to change', { advice: `Add ${POLICY_OPTIONS_SHOWN}` });
    const given = checkedId('token', args[0] ?? '');
    const client = await connect();
    const before = await client.token(await wholeIdOf(client, 'token', given));
    // What is not given must be as it is now.
    const after = await client.updateToken(before.id, policiesIn(options, before), {
      ifMatch: etagOf(before) ?? '*',
    });
    if (output.format !== 'table') await output.one(after, tokenView);
    const undo = policyOptionsOf(before, after);
    output.note(
      `The token ${shortId(after.id)} may use ${allowShown(after.allow)}; its limits: ${limitsShown(after.limits)}; its budget: ${budgetShown(after.budget)}.${
        undo.length === 0 ? '' : ` Undo: llmp token update ${after.id} ${undo.join(' ')}`
      }`,
    );
    return EXIT.done;
  },
});
