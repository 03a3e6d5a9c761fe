/**
 * `llmp token generate --from FILE` and `--query QUERY`: issues many tokens. All are checked before the first is issued. They are issued
 * one after the other, so that after a failure it is certain which were.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError, type ManagementClient, Unreachable } from '../../daemon/api/client.js';
import type { TokenCreate, WireProject, WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { counted } from '../../daemon/api/formats.js';
import type { ProblemCode } from '../../daemon/api/schemas/problem.js';
import {
  type Allow,
  type Budget,
  DEFAULT_DURATION_HOURS,
  type Limits,
  NO_POLICIES,
  type Policies,
  policiesOf,
} from '../../daemon/api/vocabulary.js';
import { allowShown, budgetShown, limitsShown } from '../../console/columns/policies.js';
import { shellWord } from '../../console/escape.js';
import { endedBy, EXIT, Failure, failureOf, usage } from '../../console/failure.js';
import { hoursOf, LONGEST_RECOMMENDED_HOURS, spanShown } from '../../console/span.js';
import { TableFile, TableText } from '../../console/table-file.js';
import { formatOfName, type TableFormat } from '../../console/table-format.js';
import type { View } from '../../console/table.js';
import { confirmed, undoOf } from '../batch.js';
import type { Invocation } from '../command.js';
import { stateFolder } from '../connection/contexts.js';
import { allProjects, checkedId, templateIdOf, wholeIdOf } from '../ids.js';
import { listed } from '../listing.js';
import { policiesIn } from '../policy-options.js';
import { lostSecret, type Output } from '../output.js';
import { queryIn } from '../query.js';
import { defaultProject, onlyActiveProject, requiredBeside } from './issuing.js';
import {
  MAX_FILE_BYTES,
  MAX_ROWS,
  placeOf,
  rowOptionsIn,
  RowProblems,
  type RowValues,
  tokenRows,
} from './token-rows.js';

export interface ManyWanted extends RowValues {
  from?: string | undefined;
  startLine?: number | undefined;
  query?: string | undefined;
  out?: string | undefined;
  dryRun?: boolean | undefined;
}

type Issuing = Omit<Invocation, 'options'> & { options: ManyWanted };

/** A token to issue. */
interface Planned {
  /** Of the file; null: like another token. */
  line: number | null;
  /** The ID of the token that it is like. */
  like: string | null;
  body: TokenCreate;
  /** What it will have, for people. */
  name: string | null;
  project: string;
  policies: Policies;
}

export async function issueMany(invocation: Issuing): Promise<number> {
  const { options, output } = invocation;
  const { out } = options;
  const format = formatOf(invocation);
  // Before the daemon is asked for anything.
  const rows = options.from === undefined ? null : await rowsOf(options.from, invocation);
  const client = await invocation.connect();
  const tokens = rows ? await planOfRows(rows, client, invocation) : await planOfQuery(client, invocation);
  warnOfLongLives(tokens, output);
  if (options.dryRun === true) return dryRun(tokens, output);
  if (tokens.length === 0) {
    output.note('No matching tokens.');
    return EXIT.done;
  }
  await confirmed(question(tokens), invocation);
  const sink =
    out === undefined ? toStdout(format, fieldsOf(tokens), output) : await toFile(out, format, fieldsOf(tokens));
  return issued(tokens, sink, client, invocation);
}

/** @throws {Failure} if the secrets would be lost with this output. */
function formatOf({ options: { out }, output }: Issuing): TableFormat {
  if (out !== undefined) return formatOfName(out) ?? 'csv';
  const { format } = output;
  if (format === 'table' || format === 'csv') return 'csv';
  if (format === 'json' || format === 'jsonl') return format;
  const option = format === 'jq' || format === 'template' ? `--${format}` : `-o ${format}`;
  throw usage(`${option} would lose secrets, which are shown only now`, {
    advice: 'Add --out FILE, or use -o csv or json',
  });
}

// ---- the tokens to issue

interface ReadRows {
  file: string;
  rows: ReturnType<typeof tokenRows>;
}

async function rowsOf(from: string, { input, options }: Issuing): Promise<ReadRows> {
  const file = from === '-' ? 'standard input' : from;
  const text = await input.textFrom(from, 'the tokens to issue', MAX_FILE_BYTES);
  const { startLine = 1 } = options;
  const rows = tokenRows(text, file).filter(({ line }) => line >= startLine);
  if (rows.length === 0) throw usage(`${file} has no row from line ${startLine} on`);
  return { file, rows };
}

async function planOfRows({ file, rows }: ReadRows, client: ManagementClient, invocation: Issuing): Promise<Planned[]> {
  const { options, output } = invocation;
  const problems = new RowProblems(file);
  const known = new Known(client, await allProjects(client));
  const own = rowOptionsIn(options);
  // All rows have the same columns.
  const given = { ...own, ...rows[0]?.values };
  const required = given.like === undefined ? await requiredBeside(given, client, output) : {};
  const all = rows.map(({ line, values }) => ({ line, values, wanted: { ...own, ...required, ...values } }));
  const needsProject = all.some(({ wanted }) => wanted.projectId === undefined && wanted.like === undefined);
  const fallback = needsProject ? (defaultProject(invocation) ?? (await onlyActiveProject(client, output))) : undefined;
  const tokens: Planned[] = [];
  for (const { line, values, wanted } of all) {
    let key: keyof RowValues = 'like';
    try {
      const template = wanted.like === undefined ? null : await known.template(wanted.like);
      key = 'projectId';
      const own = wanted.projectId ?? (template === null ? fallback : undefined);
      const project = await known.activeProject(own ?? template?.project_id ?? '');
      key = wanted.budgetPeriod === undefined ? 'budgetMode' : 'budgetPeriod';
      tokens.push({ line, ...plannedOf(wanted, template, project, own !== undefined) });
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      problems.add(line, placeOf(key, values, options), error.message);
    }
  }
  problems.check();
  return tokens;
}

/** @param isOwn whether the project is given, rather than that of the other token. */
function plannedOf(
  wanted: RowValues,
  template: WireToken | null,
  project: Pick<WireProject, 'id' | 'name'>,
  isOwn: boolean,
): Omit<Planned, 'line'> {
  const { duration, maxRequests, name } = wanted;
  const before = template ?? NO_POLICIES;
  const changes = policiesIn(wanted, before);
  return {
    like: template?.id ?? null,
    name: name ?? template?.name ?? null,
    project: project.name,
    body: {
      ...(template !== null && { like: template.id }),
      ...(isOwn && { project_id: project.id }),
      max_requests: maxRequests,
      name,
      ...changes,
      ...duration,
    },
    policies: { ...policiesOf(before), ...changes },
  };
}

/** What rows name, of which many name the same. */
class Known {
  readonly #client: ManagementClient;
  readonly #projects: readonly WireProject[];
  readonly #found = new Map<string, Promise<WireToken | WireProject>>();

  constructor(client: ManagementClient, projects: readonly WireProject[]) {
    this.#client = client;
    this.#projects = projects;
  }

  async template(given: string): Promise<WireToken> {
    return this.#once(`token ${given}`, async () => {
      const id = await templateIdOf(this.#client, checkedId('token', given));
      return this.#client.token(id).catch((error: unknown) => {
        throw error instanceof ApiError && error.status === 404 ? failureOf(error, '') : error;
      });
    }) as Promise<WireToken>;
  }

  async activeProject(given: string): Promise<WireProject> {
    return this.#once(`project ${given}`, async () => {
      const id = await wholeIdOf(this.#client, 'project', checkedId('project', given));
      const project = this.#projects.find((one) => one.id === id);
      if (!project) throw new Failure(EXIT.notFound, 'no project has this ID');
      if (!project.is_active) throw new Failure(EXIT.conflict, `project ${project.name} is inactive`);
      return project;
    }) as Promise<WireProject>;
  }

  #once(key: string, find: () => Promise<WireToken | WireProject>): Promise<WireToken | WireProject> {
    const found = this.#found.get(key) ?? find();
    this.#found.set(key, found);
    return found;
  }
}

async function planOfQuery(client: ManagementClient, invocation: Issuing): Promise<Planned[]> {
  const { options, output } = invocation;
  const { query: line = '' } = options;
  // It would select all tokens of all projects.
  if (line.trim() === '') throw usage('the query is empty', { advice: 'See: llmp help query' });
  const { query } = await queryIn([line], 'tokens', client);
  const matching = await listed((page) => client.tokens({ ...query, ...page }), MAX_ROWS, output);
  const projects = await allProjects(client);
  const { projectId } = options;
  const other = projectId === undefined ? null : await new Known(client, projects).activeProject(projectId);
  const active = new Set(projects.filter(({ is_active: isActive }) => isActive).map(({ id }) => id));
  const usable = matching.filter(({ project_id: id }) => other !== null || active.has(id));
  const leftOut = matching.length - usable.length;
  if (leftOut > 0) output.warn(`${counted(leftOut, 'token')} of inactive projects cannot be issued again`);
  return usable.map((template): Planned => {
    const own = { id: template.project_id, name: template.project_name };
    return { line: null, ...plannedOf(options, template, other ?? own, other !== null) };
  });
}

// ---- before they are issued

function warnOfLongLives(tokens: readonly Planned[], output: Output): void {
  const long = tokens.filter(({ body }) => hoursOf(body) > LONGEST_RECOMMENDED_HOURS).length;
  if (long > 0)
    output.warn(
      `${counted(long, 'token')} with a lifetime of more than the recommended ${LONGEST_RECOMMENDED_HOURS} hours (30 days)`,
    );
}

function question(tokens: readonly Planned[]): string {
  const projects = [...new Set(tokens.map(({ project }) => project))];
  const [only = ''] = projects;
  return `Issue ${counted(tokens.length, 'token')} for ${projects.length === 1 ? `project ${only}` : counted(projects.length, 'project')}?`;
}

async function dryRun(tokens: readonly Planned[], output: Output): Promise<number> {
  await output.list(tokens.map(shownOf), plannedView);
  output.note(`Would issue ${counted(tokens.length, 'token')}. Nothing was changed.`);
  return EXIT.done;
}

interface PlannedShown {
  line: number | null;
  like: string | null;
  name: string | null;
  project: string;
  lifetime: string | null;
  max_requests: number | null;
  allow: Allow | null;
  limits: Limits | null;
  budget: Budget | null;
}

const shownOf = ({ line, like, name, project, body, policies }: Planned): PlannedShown => ({
  line,
  like,
  name,
  project,
  lifetime: lifetimeOf(body) ?? (like === null ? `${DEFAULT_DURATION_HOURS}h` : null),
  max_requests: body.max_requests ?? (like === null ? 0 : null),
  ...policies,
});

function lifetimeOf({ duration_hours: hours, duration_minutes: minutes }: TokenCreate): string | null {
  if (hours === undefined && minutes === undefined) return null;
  return spanShown(((hours ?? 0) * 60 + (minutes ?? 0)) * 60_000);
}

const asBefore = (value: string | null) => value ?? 'as before';

const plannedView: View<PlannedShown> = {
  idOf: ({ line, like }) => like ?? String(line),
  fields: ['line', 'like', 'name', 'project', 'lifetime', 'max_requests', 'allow', 'limits', 'budget'],
  columns: [
    { title: 'LINE', rank: 3, alignRight: true, show: ({ line }) => String(line ?? '') },
    { title: 'LIKE', rank: 2, show: ({ like }) => like?.slice(0, 8) ?? '' },
    { title: 'NAME', rank: 0, shrinks: true, show: ({ name }) => name ?? '' },
    { title: 'PROJECT', rank: 0, shrinks: true, show: ({ project }) => project },
    { title: 'LIFETIME', rank: 1, show: ({ lifetime }) => asBefore(lifetime) },
    {
      title: 'CAP',
      rank: 1,
      alignRight: true,
      show: ({ max_requests: cap }) => (cap === 0 ? 'none' : asBefore(cap === null ? null : String(cap))),
    },
    { title: 'ALLOWS', rank: 4, shrinks: true, show: ({ allow }) => allowShown(allow) },
    { title: 'LIMITS', rank: 4, shrinks: true, show: ({ limits }) => limitsShown(limits) },
    { title: 'BUDGET', rank: 4, shrinks: true, show: ({ budget }) => budgetShown(budget) },
  ],
};

// ---- issuing

const FIELDS = ['id', 'token', 'name', 'project_id', 'project_name', 'expires_at', 'max_requests'] as const;

/** After the fields of the token, what it was issued for: the line, or the other token. */
const fieldsOf = (tokens: readonly Planned[]): string[] => [
  ...FIELDS,
  ...(tokens.some(({ line }) => line !== null) ? ['line'] : []),
  ...(tokens.some(({ like }) => like !== null) ? ['like'] : []),
];

/** Where the secrets go. */
interface Sink {
  /** Resolves when the secret is written. */
  add(issued: WireTokenCreated, planned: Planned): Promise<void>;
  end(isEmpty: boolean): Promise<void>;
  /** The file; null: standard output. */
  path: string | null;
}

const rowOf = (issued: WireTokenCreated, { line, like }: Planned) => ({ ...issued, line, like });

function toStdout(format: TableFormat, fields: readonly string[], output: Output): Sink {
  const text = new TableText(format, fields);
  let current = '';
  let isBegun = false;
  output.secretOf(() => current);
  const begin = () => {
    const before = isBegun ? '' : text.begin;
    isBegun = true;
    return before;
  };
  return {
    path: null,
    async add(issued, planned) {
      current = issued.id;
      await output.piece(begin() + text.rows([rowOf(issued, planned)]));
    },
    end: () => output.piece(begin() + text.end),
  };
}

/** Created first: if the secrets cannot be saved, no token must be issued. */
async function toFile(path: string, format: TableFormat, fields: readonly string[]): Promise<Sink> {
  const file = await TableFile.create(path, { format, fields }).catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw usage(`${path} already exists and is not overwritten`, { advice: 'Name a new file' });
    throw usage(`cannot create ${path}`, { why: code ?? 'failed', cause: error });
  });
  return {
    path,
    add: (issued, planned) => file.add([rowOf(issued, planned)]),
    end: (isEmpty) => (isEmpty ? file.discard() : file.close()),
  };
}

async function issued(
  tokens: readonly Planned[],
  sink: Sink,
  client: ManagementClient,
  invocation: Issuing,
): Promise<number> {
  const { output, shell } = invocation;
  const done: WireTokenCreated[] = [];
  const stopped = new AbortController();
  const issueAll = async (tick: () => void): Promise<Failure | null> => {
    for (const planned of tokens) {
      if (stopped.signal.aborted) return null;
      let created: WireTokenCreated;
      try {
        created = await client.createToken(planned.body);
      } catch (error) {
        return notIssued(error, planned, invocation);
      }
      try {
        await sink.add(created, planned);
      } catch (error) {
        return lostSecret(created.id, error, sink.path === null ? '' : ` to ${sink.path}`);
      }
      done.push(created);
      tick();
    }
    return null;
  };
  const failure = await shell.interruptible(output.counting('Issuing', tokens.length, issueAll), (signal) => {
    stopped.abort(signal);
  });
  await sink.end(done.length === 0).catch((error: unknown) => {
    throw failure ?? incomplete(sink, error);
  });
  const words = reportOf(tokens, done.length, sink, client);
  if (done.length === tokens.length) {
    output.note(words);
    return EXIT.done;
  }
  // There is no rest if the role may issue none.
  if (failure && done.length === 0 && failure.explanation.code === NOT_PERMITTED) throw failure;
  const advice = adviceOf(tokens, done.length, invocation);
  if (failure) {
    const { exitCode, message, explanation } = failure;
    throw new Failure(exitCode, message, {
      ...explanation,
      details: [...(explanation.details ?? []), words],
      advice: [explanation.advice, advice].filter(Boolean).join('; '),
    });
  }
  output.warn(`${words} ${advice}`);
  return endedBy(stopped.signal);
}

const NOT_PERMITTED: ProblemCode = 'not_permitted';

/** Names the token. Without a response it may have been issued. */
function notIssued(error: unknown, { line, like }: Planned, { server }: Issuing): Failure {
  const failure = failureOf(error, server);
  const { exitCode, message, explanation } = failure;
  if (explanation.code === NOT_PERMITTED) return failure;
  const isUnknown = error instanceof Unreachable || (error instanceof ApiError && error.status >= 500);
  const details = isUnknown ? ['It may have been issued all the same: llmp token list --sort -created_at'] : [];
  const what = line === null ? `the token like ${like ?? ''}` : `line ${line}`;
  return new Failure(exitCode, `${what}: ${message}`, { ...explanation, details });
}

const incomplete = ({ path }: Sink, error: unknown): Failure =>
  new Failure(EXIT.refused, `cannot complete ${path ?? 'the output'}`, {
    code: 'secret_lost',
    why: (error as NodeJS.ErrnoException).code ?? 'failed',
    advice: 'Revoke the tokens that it lacks: llmp token list --sort -created_at',
    cause: error,
  });

function reportOf(tokens: readonly Planned[], done: number, { path }: Sink, client: ManagementClient): string {
  const of = counted(tokens.length, 'token');
  if (done === 0) return `Issued none of ${of}.`;
  const where = path === null ? '' : ` The secrets are in ${path}, readable by you only.`;
  return `Issued ${done === tokens.length ? of : `${done} of ${of}`}.${where} ${undoOf(client)}`;
}

/** How to issue the rest. */
function adviceOf(tokens: readonly Planned[], done: number, { options, shell }: Issuing): string {
  const rest = tokens.slice(done);
  const [next] = rest;
  const other = options.out === undefined || done === 0 ? '' : ' and another --out';
  if (next?.line !== null) return `Issue the rest with --start-line ${next?.line ?? ''}${other}`;
  // The same query also selects the tokens that were issued.
  const file = restFile(rest, shell);
  const ids = file === null ? 'a file with a column like' : shellWord(file);
  return `Issue the rest with --from ${ids} in place of --query${other}`;
}

function restFile(rest: readonly Planned[], shell: Issuing['shell']): string | null {
  const folder = stateFolder(shell.env);
  if (folder === undefined) return null;
  const path = join(folder, `to-issue-${shell.now()}.csv`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(path, `like\n${rest.map(({ like }) => `${like ?? ''}\n`).join('')}`, { mode: 0o600, flag: 'wx' });
    return path;
  } catch {
    return null;
  }
}
