/** `llmp project update`: changes the name, the provider or the missing usage of a project. */
import { etagOf } from '../../daemon/api/client.js';
import type { WireProject } from '../../daemon/api/contract.js';
import { providerTitle } from '../../daemon/api/providers.js';
import { shellWord } from '../../console/escape.js';
import { EXIT, usage } from '../../console/failure.js';
import { shortId } from '../../console/columns/cell-text.js';
import { allowShown, budgetShown, limitsShown } from '../../console/columns/policies.js';
import { PROJECT_CHANGED_FIELDS, projectView } from '../../console/views.js';
import { ONE_PROJECT } from '../batch.js';
import { acceptance, keyFile, noCheck, upstreamKey, withCheckedKey } from '../checked-key.js';
import { command } from '../command.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { text } from '../option.js';
import { hasPolicies, policiesIn, policyOptions, policyOptionsOf, POLICY_OPTIONS_SHOWN } from '../policy-options.js';
import { missingUsageIn, missingUsageOption, optionsOf, upstreamIn, upstreamOptions } from '../upstream-options.js';

export const update = command({
  path: ['manage', 'project', 'update'],
  summary: 'change the name, the provider or other settings of a project',
  examples: [
    ['project update web --name website', 'rename web to website; ID, tokens and key do not change'],
    ['project update web --provider groq --key-file key.txt', 'use another provider, with its key'],
    ['project update web --provider default --key-file key.txt', 'use UPSTREAM_BASE_URL of the daemon again'],
    [
      'project update web --missing-usage inject',
      'count the model tokens of chat streams that do not ask for their usage',
    ],
    ['project update web --allow-model none', 'allow the tokens of web all models again'],
    ['project update web --rpm 600 --concurrent 20', 'limit all tokens of web together; other limits stay'],
    [
      'project update web --budget-usd 500 --budget-period month',
      'let all tokens of web together spend 500 US dollars each month',
    ],
  ],
  argument: ONE_PROJECT,
  options: {
    name: text('--name <TEXT>', 'a unique name of 1 to 100 characters'),
    ...upstreamOptions,
    ...missingUsageOption,
    ...policyOptions,
    keyFile: {
      ...keyFile,
      meaning: 'a file that contains the upstream key, which a provider on another host requires; - is standard input',
    },
    check: noCheck,
  },
  prints: () => PROJECT_CHANGED_FIELDS,
  async run({ args, options, input, output, connect }) {
    const { name, keyFile: file } = options;
    const plain = { ...(name !== undefined && { name }), ...upstreamIn(options), ...missingUsageIn(options) };
    if (Object.keys(plain).length === 0 && !hasPolicies(options)) {
      const advice = `Add --name TEXT, --provider NAME, --missing-usage HOW, ${POLICY_OPTIONS_SHOWN}`;
      throw usage('nothing to change', {
        advice: file === undefined ? advice : `${advice}. To change only the key: llmp project set-key`,
      });
    }
    const given = checkedId('project', args[0] ?? '');
    const key = file === undefined ? undefined : await upstreamKey(file, input);
    const client = await connect();
    const before = await client.project(await wholeIdOf(client, 'project', given));
    // What is not given must be as it is now.
    const changes = { ...plain, ...policiesIn(options, before) };
    // What is printed as the values before is what was changed.
    const ifMatch = etagOf(before) ?? '*';
    const after =
      key === undefined
        ? await client.updateProject(before.id, changes, { ifMatch })
        : await withCheckedKey(
            (check) => client.updateProject(before.id, { ...changes, api_key: key, ...check }, { ifMatch }),
            options.check !== false,
            output,
          );
    if (output.format !== 'table') await output.one(after, projectView);
    // There is no undo of a change with a key, because the previous key can no longer be read.
    const undo = key === undefined ? ` Undo: llmp project update ${after.id} ${undoOptions(before, after)}` : '';
    output.note(`${described(before, after)}${acceptance(after)}${undo}`);
    return EXIT.done;
  },
});

function described(before: WireProject, after: WireProject): string {
  const { upstream_base_url: baseUrl, upstream_auth: auth } = after;
  const where = baseUrl === null ? 'UPSTREAM_BASE_URL of the daemon' : baseUrl;
  const [id, name] = [shortId(after.id), after.name];
  const changes = [
    before.name !== name && `Renamed ${id} from ${before.name} to ${name}.`,
    isUpstreamChanged(before, after) &&
      `Changed the provider of ${id} (${name}) from ${providerTitle(before)} to ${providerTitle(after)}: ${where}, ${auth}. New requests use it.`,
    before.missing_usage !== after.missing_usage &&
      `Changed the missing usage of ${id} (${name}) from ${before.missing_usage} to ${after.missing_usage}.`,
    isChanged(before.allow, after.allow) && `The tokens of ${id} (${name}) may use ${allowShown(after.allow)}.`,
    isChanged(before.limits, after.limits) &&
      `The limits of all tokens of ${id} (${name}) together are now: ${limitsShown(after.limits)}.`,
    isChanged(before.budget, after.budget) &&
      `The budget of all tokens of ${id} (${name}) together is now: ${budgetShown(after.budget)}.`,
  ].filter((sentence) => sentence !== false);
  return changes.length === 0 ? `Changed ${id} (${name}).` : changes.join(' ');
}

function undoOptions(before: WireProject, after: WireProject): string {
  return [
    ...(before.name === after.name ? [] : [`--name ${shellWord(before.name)}`]),
    ...(isUpstreamChanged(before, after) ? [optionsOf(before)] : []),
    ...(before.missing_usage === after.missing_usage ? [] : [`--missing-usage ${before.missing_usage}`]),
    ...policyOptionsOf(before, after),
  ].join(' ');
}

const isChanged = (before: object | null, after: object | null) => JSON.stringify(before) !== JSON.stringify(after);

const isUpstreamChanged = (before: WireProject, after: WireProject) =>
  before.upstream_base_url !== after.upstream_base_url || before.upstream_auth !== after.upstream_auth;
