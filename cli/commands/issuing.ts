/** What the commands have in common that issue a token: `token generate` and `run`. */
import { integer, type Kind } from '../../config/kinds.js';
import type { ManagementClient } from '../../daemon/api/client.js';
import type { TokenCreate } from '../../daemon/api/contract.js';
import { type Invocation, text, value, type Values } from '../command.js';
import { usage } from '../console/failure.js';
import { checkedId, wholeIdOf } from '../ids.js';
import type { Output } from '../output.js';

type Lifetime = Pick<TokenCreate, 'duration_hours' | 'duration_minutes'>;

const LONGEST_HOURS = 8760;
// Beyond 30 days a token no longer withers so much as it lingers.
export const LONGEST_RECOMMENDED_HOURS = 720;

export const lifetime: Kind<Lifetime> = {
  accepts: `hours from 1 to ${LONGEST_HOURS} such as 48, or a time with a unit such as 90m, 48h or 7d`,
  parse(given) {
    const [, digits, unit] = /^(\d{1,6})([mhd]?)$/.exec(given) ?? [];
    const amount = Number(digits) * (unit === 'd' ? 24 : 1);
    if (!digits || amount < 1 || amount > LONGEST_HOURS * (unit === 'm' ? 60 : 1)) return undefined;
    return unit === 'm' ? { duration_minutes: amount } : { duration_hours: amount };
  },
};

/** @param hours how long it lives unless said otherwise. */
export const issuingOptions = (hours: number, name: string) => ({
  projectId: text(
    '--project-id <ID>',
    'whose upstream key it stands for, by name or id; LLMP_PROJECT_ID, that of the context, or the only active one',
    'project',
  ),
  duration: value(
    '--duration <HOURS>',
    lifetime,
    `lifetime: hours, or a time such as 90m, 48h or 7d (default: ${hours}h)`,
  ),
  maxRequests: value('--max-requests <COUNT>', integer(0, 2_147_483_647), 'how often it can be used; 0 is unlimited'),
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
  const body: TokenCreate = {
    project_id:
      project === undefined ? await onlyActiveProject(client, output) : await wholeIdOf(client, 'project', project),
    ...options.duration,
    max_requests: options.maxRequests,
    name: options.name,
  };
  return { client, body };
}

function warnOfLongLife(duration: Lifetime | undefined, output: Output): void {
  const hours = duration?.duration_hours ?? (duration?.duration_minutes ?? 0) / 60;
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
