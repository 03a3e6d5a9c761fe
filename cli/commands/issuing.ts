/** Shared parts of the commands that issue tokens: `token generate`, `token print` and `run`. */
import { integer } from '../../config/kinds.js';
import type { ManagementClient } from '../../daemon/api/client.js';
import type { TokenCreate } from '../../daemon/api/contract.js';
import { DEFAULT_DURATION_HOURS, MAX_CAP, NO_POLICIES, policiesWithin } from '../../daemon/api/vocabulary.js';
import type { Invocation } from '../command.js';
import { text, value, type Values } from '../option.js';
import { shortShellWord } from '../../console/escape.js';
import { usage } from '../../console/failure.js';
import { hoursOf, lifetime, type Lifetime, LONGEST_RECOMMENDED_HOURS } from '../../console/span.js';
import { checkedId, templateIdOf, wholeIdOf } from '../ids.js';
import type { Output } from '../output.js';
import { hasPolicies, optionsOf, policiesIn, policyOptions } from '../policy-options.js';

/** The terms of a token. @param hours the default lifetime. @param name the meaning of --name. */
export const issuingOptions = (hours: number, name: string) => ({
  projectId: text(
    '--project-id <ID>',
    "project of the token, by name or ID (default: LLMP_PROJECT_ID, the context's project, or the only active project)",
    'project',
  ),
  duration: value(
    '--duration <HOURS>',
    lifetime,
    `lifetime in hours, or with a unit, for example 90m, 48h, 7d or 2w (default: ${hours}h)`,
  ),
  maxRequests: value('--max-requests <COUNT>', integer(0, MAX_CAP), 'request cap (default: 0, unlimited)'),
  name: text('--name <TEXT>', name),
  ...policyOptions,
});

/** The template of a new token, for `token generate`. */
export const likeOption = text(
  '--like <TOKEN>',
  'issue a token with the project, name, cap, lifetime, routes, models, limits and budget of this token, except those given',
  'token',
);

type Terms = Values<ReturnType<typeof issuingOptions>>;
type Wanted = Terms & Values<{ like: typeof likeOption }>;

/**
 * What the ceilings of the caller require and is not given: the most that they allow. Says what that is.
 *
 * @param given for all tokens that the command issues.
 */
export async function requiredBeside(given: Terms, client: ManagementClient, output: Output): Promise<Terms> {
  const ceilings = (await client.self()).ceilings ?? {};
  const { hours = Infinity, requests } = ceilings;
  const most: Terms = {
    ...(hours < DEFAULT_DURATION_HOURS && { duration: { duration_hours: hours } }),
    ...(requests !== undefined && { maxRequests: requests }),
    ...optionsOf(policiesWithin(ceilings)),
  };
  const missing = Object.entries(most).filter(([key]) => given[key as keyof Terms] === undefined);
  if (missing.length > 0) {
    const shown = missing.map(([key, its]) => optionShown(key as keyof Terms, its));
    output.note(`As your ceilings require: ${shown.join(' ')}`);
  }
  return Object.fromEntries(missing);
}

const OPTIONS = issuingOptions(DEFAULT_DURATION_HOURS, '');

/** As it is written. */
function optionShown(key: keyof Terms, given: Terms[keyof Terms]): string {
  const shown = Array.isArray(given)
    ? given.join(',')
    : typeof given === 'object'
      ? `${hoursOf(given)}h`
      : String(given);
  return `${OPTIONS[key].flags.replace(/ .*/, '')} ${shortShellWord(shown)}`;
}

/**
 * Connects, and determines the project of the new token.
 *
 * @returns the body for `createToken`.
 * @throws {Failure} if neither a project nor a template was given and there is not exactly one active project.
 */
export async function tokenWanted({
  options,
  shell,
  output,
  destination,
  connect,
}: Pick<Invocation, 'shell' | 'output' | 'destination' | 'connect'> & { options: Wanted }): Promise<{
  client: ManagementClient;
  body: TokenCreate;
}> {
  warnOfLongLife(options.duration, output);
  const like = options.like === undefined ? undefined : checkedId('token', options.like);
  // A default project must not replace the project of the template.
  const fallback = like === undefined ? defaultProject({ shell, destination }) : undefined;
  const given = options.projectId ?? fallback;
  const project = given === undefined ? undefined : checkedId('project', given);
  const client = await connect();
  const { name } = options;
  if (like !== undefined) {
    const template = await templateIdOf(client, like);
    const other = project === undefined ? {} : { project_id: await wholeIdOf(client, 'project', project) };
    // What is not given is that of the other token.
    const policies = hasPolicies(options) ? policiesIn(options, await client.token(template)) : {};
    const { duration, maxRequests } = options;
    return { client, body: { like: template, ...other, max_requests: maxRequests, name, ...policies, ...duration } };
  }
  const projectId =
    project === undefined ? await onlyActiveProject(client, output) : await wholeIdOf(client, 'project', project);
  const all = { ...options, ...(await requiredBeside(options, client, output)) };
  const { duration, maxRequests } = all;
  const body = { project_id: projectId, max_requests: maxRequests, name, ...policiesIn(all, NO_POLICIES), ...duration };
  return { client, body };
}

/** The project of new tokens, by name or ID, if the command line names none. */
export const defaultProject = ({ shell, destination }: Pick<Invocation, 'shell' | 'destination'>) =>
  shell.env.LLMP_PROJECT_ID || destination().context?.projectId;

function warnOfLongLife(duration: Lifetime | undefined, output: Output): void {
  const hours = hoursOf(duration);
  if (hours > LONGEST_RECOMMENDED_HOURS)
    output.warn(
      `a lifetime of ${hours} hours exceeds the recommended maximum of ${LONGEST_RECOMMENDED_HOURS} (30 days)`,
    );
}

const CHOICES_SHOWN = 20;

/** @throws {Failure} if there is not exactly one. */
export async function onlyActiveProject(client: ManagementClient, output: Output): Promise<string> {
  const { items } = await client.projects({ is_active: 'true', limit: String(CHOICES_SHOWN) });
  const [only, ...others] = items;
  if (!only) {
    throw usage('there is no active project', {
      advice: 'Create a project: llmp project create --name NAME --key-file FILE',
    });
  }
  if (others.length === 0) return only.id;
  for (const { id, name } of items) output.note(`${id}  ${name}`);
  throw usage('there are several active projects', { advice: 'Select one with --project-id or LLMP_PROJECT_ID' });
}
