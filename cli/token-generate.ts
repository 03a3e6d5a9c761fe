/** `llmp token generate`: the one moment at which a secret can be seen. */
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { integer, type Kind } from '../config/kinds.js';
import type { ManagementClient } from '../daemon/api/client.js';
import type { TokenCreate, WireToken, WireTokenCreated } from '../daemon/api/contract.js';
import { command, text, value } from './command.js';
import { shellWord, visible } from './escape.js';
import { EXIT, Failure, usage } from './failure.js';
import { checkedId, wholeIdOf } from './ids.js';
import type { Output } from './output.js';
import { tokenCreatedView, tokenView } from './views.js';

type Lifetime = Pick<TokenCreate, 'duration_hours' | 'duration_minutes'>;

const LONGEST_HOURS = 8760;
// Beyond 30 days a token no longer withers so much as it lingers.
const RECOMMENDED_HOURS = 720;

const lifetime: Kind<Lifetime> = {
  accepts: `hours from 1 to ${LONGEST_HOURS} such as 48, or with a unit such as 48h or 90m`,
  parse(given) {
    const [, digits, unit] = /^(\d{1,6})([hm]?)$/.exec(given) ?? [];
    const amount = Number(digits);
    if (!digits || amount < 1 || amount > LONGEST_HOURS * (unit === 'm' ? 60 : 1)) return undefined;
    return unit === 'm' ? { duration_minutes: amount } : { duration_hours: amount };
  },
};

const variableName: Kind<string> = {
  accepts: 'the name of a variable: letters, digits and _, not beginning with a digit',
  parse: (given) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(given) ? given : undefined),
};

const options = {
  projectId: text(
    '--project-id <ID>',
    'whose upstream key it stands for, by name or id; LLMP_PROJECT_ID, or the only active one',
  ),
  duration: value('--duration <HOURS>', lifetime, 'hours until it expires, or such as 90m; 24 unless given'),
  maxRequests: value('--max-requests <COUNT>', integer(0, 2_147_483_647), 'how often it can be used; 0 is unlimited'),
  name: text('--name <TEXT>', 'what it is for'),
  out: text('--out <FILE>', 'write the secret there, mode 0600, instead of showing it; the file must not exist'),
  env: value('--env <VAR>', variableName, "print export VAR='…' instead, for a shell to evaluate"),
};

export const generate = command({
  path: ['manage', 'token', 'generate'],
  summary: 'issue a token and show its secret, once',
  examples: [
    ['token generate --duration 48', 'for 48 hours, for the only active project'],
    ['token generate --max-requests 500 --out token.txt', 'at most 500 requests, the secret in a file'],
    ['token generate -q', 'the secret and nothing else'],
    ['token generate --env OPENAI_API_KEY', "export OPENAI_API_KEY='sk-wt-…'"],
  ],
  options,
  async run({ options: given, shell, output, connect }) {
    if (given.out !== undefined && given.env !== undefined) {
      throw usage('--out and --env exclude each other', { advice: 'Give one' });
    }
    if (output.format === 'id' && given.out === undefined && given.env === undefined && !output.isQuiet) {
      throw usage('-o id would lose the secret, which is shown only now', { advice: 'Add --out FILE' });
    }
    warnOfLongLife(given.duration, output);
    const projectGiven = given.projectId ?? (shell.env.LLMP_PROJECT_ID || undefined);
    const project = projectGiven === undefined ? undefined : checkedId('project', projectGiven);
    const client = await connect();
    const body: TokenCreate = {
      project_id:
        project === undefined ? await onlyActiveProject(client, output) : await wholeIdOf(client, 'project', project),
      ...given.duration,
      max_requests: given.maxRequests,
      name: given.name,
    };
    if (given.out === undefined) await show(await client.createToken(body), given.env, output);
    else await intoFile(given.out, () => client.createToken(body), output);
    return EXIT.done;
  },
});

function warnOfLongLife(duration: Lifetime | undefined, output: Output): void {
  const hours = duration?.duration_hours ?? (duration?.duration_minutes ?? 0) / 60;
  if (hours > RECOMMENDED_HOURS)
    output.warn(`${hours} hours is more than the recommended ${RECOMMENDED_HOURS} (30 days)`);
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

async function show(issued: WireTokenCreated, variable: string | undefined, output: Output): Promise<void> {
  const secret = visible(issued.token);
  if (variable !== undefined) output.text(`export ${variable}=${shellWord(secret)}`);
  else if (output.isQuiet) output.text(secret);
  else await output.one(issued, tokenCreatedView);
  output.note(`The secret is shown only this once. Undo: llmp token revoke ${issued.id}`);
}

/** The file is made first: a token whose secret then cannot be kept must not be issued. */
async function intoFile(path: string, issue: () => Promise<WireTokenCreated>, output: Output): Promise<void> {
  const file = await newFile(path);
  const issued = await issue().catch(async (error: unknown) => {
    await file.close();
    await unlink(path);
    throw error;
  });
  try {
    await file.writeFile(`${issued.token}\n`);
    await file.close();
  } catch (error) {
    throw new Failure(EXIT.refused, `cannot write the secret to ${path}, so it is lost`, {
      why: (error as NodeJS.ErrnoException).code ?? 'failed',
      advice: `Revoke the token: llmp token revoke ${issued.id}`,
      cause: error,
    });
  }
  const shown: WireToken & { token?: string } = { ...issued };
  delete shown.token;
  if (!output.isQuiet) await output.one(shown, tokenView);
  output.note(`The secret is in ${path}, readable by you only. Undo: llmp token revoke ${issued.id}`);
}

const OWNER_ONLY = 0o600;

async function newFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', OWNER_ONLY);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw usage(`${path} exists already and is not overwritten`, { advice: 'Name a new file' });
    throw usage(`cannot create ${path}`, { why: code ?? 'failed', cause: error });
  }
}
