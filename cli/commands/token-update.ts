/** `llmp token update`: changes what a token may ask for. */
import { etagOf } from '../../daemon/api/client.js';
import { EXIT, usage } from '../../console/failure.js';
import { shortId } from '../../console/columns/cell-text.js';
import { allowShown } from '../../console/columns/policies.js';
import { TOKEN_FIELDS } from '../../console/columns/tokens.js';
import { tokenView } from '../../console/views.js';
import { ONE_TOKEN } from '../batch.js';
import { command } from '../command.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { allowIn, allowOptions, allowOptionsOf } from '../policy-options.js';

export const update = command({
  path: ['manage', 'token', 'update'],
  summary: 'change what a token may ask for',
  examples: [
    ["token update 3fa91c2e --allow-model 'gpt-5-mini,claude-*'", 'allow these models only, from the next request on'],
    ["token update 3fa91c2e --allow-route inference --allow-route 'GET /v1/models'", 'allow these routes only'],
    ['token update 3fa91c2e --allow-model none', 'allow all models again; a list of routes stays'],
  ],
  argument: ONE_TOKEN,
  options: allowOptions,
  prints: () => TOKEN_FIELDS,
  async run({ args, options, output, connect }) {
    if (Object.keys(allowIn(options, null)).length === 0) {
      throw usage('nothing to change', { advice: 'Add --allow-route ROUTE or --allow-model MODEL' });
    }
    const given = checkedId('token', args[0] ?? '');
    const client = await connect();
    const before = await client.token(await wholeIdOf(client, 'token', given));
    // A list that is not given must be the one of now.
    const after = await client.updateToken(before.id, allowIn(options, before.allow), {
      ifMatch: etagOf(before) ?? '*',
    });
    if (output.format !== 'table') await output.one(after, tokenView);
    output.note(
      `The token ${shortId(after.id)} may use ${allowShown(after.allow)}. Undo: llmp token update ${after.id} ${allowOptionsOf(before.allow)}`,
    );
    return EXIT.done;
  },
});
