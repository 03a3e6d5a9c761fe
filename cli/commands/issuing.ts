/** What the commands have in common that issue a token: `token generate` and `run`. */
import { integer } from '../../config/kinds.js';
import type { ManagementClient } from '../../daemon/api/client.js';
import type { TokenCreate, TokenCreateTerms } from '../../daemon/api/contract.js';
import { MAX_CAP } from '../../daemon/api/vocabulary.js';
import type { Invocation } from '../command.js';
import { text, value, type Values } from '../option.js';
import { usage } from '../../console/failure.js';
import { hoursOf, lifetime, type Lifetime, LONGEST_RECOMMENDED_HOURS } from '../../console/lifetime.js';
import { checkedId, wholeIdOf } from '../ids.js';
import type { Output } from '../output.js';

/** @param hours how long it lives unless said otherwise. */
export const issuingOptions = (hours: number, name: string) => ({
  projectId: text(
    '--project-id <ID>',
    'project, by name or ID (default: LLMP_PROJECT_ID, the project of the context, or the only active project)',
    'project',
  ),
  duration: value(
    '--duration <HOURS>',
    lifetime,
    `lifetime: hours, or a time such as 90m, 48h or 7d (default: ${hours}h)`,
  ),
  maxRequests: value('--max-requests <COUNT>', integer(0, MAX_CAP), 'request cap (default: 0, unlimited)'),
  name: text('--name <TEXT>', name),
});

type Wanted = Values<ReturnType<typeof issuingOptions>>;

/**
 * Connects, and finds out for which project the token is to be.
 *
 * @returns what to ask `createToken` for.
 * @throws {Failure} when no project was named and there is not exactly one that is active.
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
  const given = options.projectId ?? (shell.env.LLMP_PROJECT_ID || destination().context?.projectId);
  const project = given === undefined ? undefined : checkedId('project', given);
  const client = await connect();
  const terms: TokenCreateTerms = {
    project_id:
      project === undefined ? await onlyActiveProject(client, output) : await wholeIdOf(client, 'project', project),
    max_requests: options.maxRequests,
    name: options.name,
  };
  return { client, body: { ...terms, ...options.duration } };
}

function warnOfLongLife(duration: Lifetime | undefined, output: Output): void {
  const hours = hoursOf(duration);
  if (hours > LONGEST_RECOMMENDED_HOURS)
    output.warn(`${hours} hours is more than the recommended ${LONGEST_RECOMMENDED_HOURS} (30 days)`);
}

const CHOICES_SHOWN = 20;

async function onlyActiveProject(client: ManagementClient, output: Output): Promise<string> {
  const { items } = await client.projects({ is_active: 'true', limit: String(CHOICES_SHOWN) });
  const [only, ...others] = items;
  if (!only) {
    throw usage('there is no active project to issue a token for', {
      advice: 'Create one: llmp project create --name NAME --key-file FILE',
    });
  }
  if (others.length === 0) return only.id;
  for (const { id, name } of items) output.note(`${id}  ${name}`);
  throw usage('there are several active projects', { advice: 'Choose one with --project-id or LLMP_PROJECT_ID' });
}
