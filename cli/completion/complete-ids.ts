/** Completion candidates that come from files and from the daemon: names and IDs. */
import { Readable, Writable } from 'node:stream';
import type { ManagementClient } from '../../daemon/api/client.js';
import { matchShown } from '../../console/columns/access.js';
import { doerOf } from '../../daemon/api/vocabulary.js';
import type { FilteredScreen } from '../../console/query/types.js';
import type { Completes } from '../option.js';
import type { Globals } from '../globals.js';
import { Input } from '../input.js';
import { Output } from '../output.js';
import type { Shell } from '../shell.js';
import type { Tree } from '../help/tree.js';
import type { Line } from './line.js';

// Together with the start of the process this is less than the 800 ms that a shell waits (main.ts).
const ANSWER_WITHIN_MS = 450;
const GIVE_UP_AFTER_MS = 800;
const MAX_CANDIDATES = 200;

/**
 * Whether a word has no special meaning in any shell. Others are not offered: names come from the daemon and are not trusted. The pattern
 * for all of Unicode takes 0.5 ms to create, and most words are ASCII.
 */
const isHarmless = (word: string) => /^\w[\w.:,/-]*$/.test(word) || /^[\p{L}\p{N}_][\p{L}\p{N}_.:,/-]*$/u.test(word);

/** A word, and its description, which may be empty. */
export interface Candidate {
  word: string;
  meaning: string;
}

/** @returns the candidates; none if there is an error or the time is up, because a completion cannot show an explanation. */
export async function candidatesFor(
  what: Completes,
  beginning: string,
  line: Line,
  tree: Tree,
  shell: Shell,
): Promise<readonly Candidate[]> {
  const controller = new AbortController();
  const nothing: readonly Candidate[] = [];
  const late = shell.pause(ANSWER_WITHIN_MS, controller.signal).then(() => nothing);
  try {
    const candidates = await Promise.race([candidatesOf(what, beginning, line, tree, shell, controller.signal), late]);
    return candidates.filter(({ word }) => isHarmless(word));
  } catch {
    return nothing;
  } finally {
    controller.abort();
  }
}

async function candidatesOf(
  what: Completes,
  beginning: string,
  line: Line,
  tree: Tree,
  shell: Shell,
  signal: AbortSignal,
): Promise<readonly Candidate[]> {
  switch (what) {
    case 'topic':
      return topics(line, tree);
    case 'page': {
      const { pageWords } = await import('../help/man.js');
      return (await pageWords()).map(({ word, name }) => ({ word, meaning: name.replace(/\.(\d)$/, '($1)') }));
    }
    case 'context': {
      const { readContexts } = await import('../connection/contexts.js');
      const { contexts } = await readContexts(shell.env);
      return Object.entries(contexts).map(([word, { server }]) => ({ word, meaning: server }));
    }
    case 'query of tokens':
    case 'query of projects':
    case 'query of audit':
    case 'query of events':
    case 'query of top': {
      const screen = what.slice('query of '.length) as FilteredScreen;
      const candidates = await terms(screen, beginning, () => clientFor(line, shell), signal);
      return screen === 'top' ? [...(await firstWordsOfTop(line)), ...candidates] : candidates;
    }
    case 'project':
      return projects(await clientFor(line, shell), beginning, signal);
    case 'operator':
      return operators(await clientFor(line, shell), beginning, signal);
    case 'trust':
      return trusts(await clientFor(line, shell), signal);
    case 'model':
      return (await models(await clientFor(line, shell), signal)).map((word) => ({ word, meaning: '' }));
    case 'batch':
      return batches(await clientFor(line, shell), signal);
    case 'token':
      return tokens(await clientFor(line, shell), beginning, signal);
  }
}

async function topics({ args }: Line, tree: Tree): Promise<Candidate[]> {
  const { TOPICS } = await import('../help/topics.js');
  const path = tree.resolved(args) ?? args;
  const words = tree.wordsUnder(path).map(({ word, summary }) => ({ word, meaning: summary }));
  const named = args.length > 0 ? [] : Object.entries(TOPICS);
  return [...words, ...named.map(([word, { summary }]) => ({ word, meaning: summary }))];
}

async function projects(client: ManagementClient, beginning: string, signal: AbortSignal): Promise<Candidate[]> {
  const { items } = await client.projects({ limit: String(MAX_CANDIDATES) }, signal);
  return byNames(items, beginning);
}

async function operators(client: ManagementClient, beginning: string, signal: AbortSignal): Promise<Candidate[]> {
  const { items } = await client.operators({ limit: String(MAX_CANDIDATES) }, signal);
  return byNames(items, beginning);
}

/** Offers what has a unique name by that. It is offered by ID if the user is typing an ID, or if its name is not a single word for a shell. */
const byNames = (items: readonly { id: string; name: string; is_active: boolean }[], beginning: string): Candidate[] =>
  items.flatMap(({ id, name, is_active: isActive }) => {
    const byId = { word: id, meaning: name };
    if (!isHarmless(name)) return [byId];
    const byName = { word: name, meaning: `${id}${isActive ? '' : ', inactive'}` };
    return beginning !== '' && id.startsWith(beginning) ? [byName, byId] : [byName];
  });

/** Trusts by ID: their names have claims in braces. */
async function trusts(client: ManagementClient, signal: AbortSignal): Promise<Candidate[]> {
  const { items } = await client.trusts({ limit: String(MAX_CANDIDATES) }, signal);
  return items.map(({ id, issuer, match }) => ({ word: id, meaning: `${issuer}: ${matchShown(match)}` }));
}

/**
 * Offers tokens by name, those that can be used first. A token is offered by ID if the user is typing an ID, if another token has the same
 * name, or if the name is not a single word for a shell.
 */
async function tokens(client: ManagementClient, beginning: string, signal: AbortSignal): Promise<Candidate[]> {
  const query = { limit: String(MAX_CANDIDATES), sort: 'live', ...(beginning !== '' && { q: beginning }) };
  const { items, next } = await client.tokens(query, signal);
  const counts = new Map<string | null, number>();
  for (const { name } of items) counts.set(name, (counts.get(name) ?? 0) + 1);
  return items.flatMap(({ id, name, state }) => {
    const byId = { word: id, meaning: name === null ? state : `${name}, ${state}` };
    // Of an incomplete list it is not known whether a name is unique.
    if (name === null || !isHarmless(name) || counts.get(name) !== 1 || next !== null) return [byId];
    const byName = { word: name, meaning: `${id}, ${state}` };
    return beginning !== '' && id.startsWith(beginning) ? [byName, byId] : [byName];
  });
}

/** The last batches. */
async function batches(client: ManagementClient, signal: AbortSignal): Promise<Candidate[]> {
  const { items } = await client.auditRecords({ group: 'batch', limit: String(MAX_CANDIDATES) }, signal);
  return items.flatMap(({ batch, action, count, time, ...record }) =>
    batch === null ? [] : [{ word: batch, meaning: `${action}, ${count ?? 1}, ${time}, ${doerOf(record)}` }],
  );
}

/** The models of the last 24 hours, those with the most requests first. */
async function models(client: ManagementClient, signal: AbortSignal): Promise<string[]> {
  const query = { by: 'model', window: '24h', sort: 'requests', limit: String(MAX_CANDIDATES) };
  const { rows } = await client.top(query, signal);
  // A model has a row for each project.
  return [...new Set(rows.flatMap(({ model }) => model ?? []))];
}

/** Offers the keys of a query, and the values of the key that the user is typing. */
async function terms(
  screen: FilteredScreen,
  beginning: string,
  connected: () => Promise<ManagementClient>,
  signal: AbortSignal,
): Promise<Candidate[]> {
  const [{ suggest }, { termsOf }] = await Promise.all([
    import('../../console/query/filter.js'),
    import('../../console/query/terms.js'),
  ]);
  const key = termsOf(beginning).at(-1)?.key;
  const { from, options } = suggest(beginning, beginning.length, screen, {
    projects:
      key === 'project' ? (await (await connected()).projects({ limit: String(MAX_CANDIDATES) }, signal)).items : [],
    models: key === 'model' || key === 'allows' ? await models(await connected(), signal) : [],
  });
  return options.map(({ insert, what }) => ({ word: beginning.slice(0, from) + insert, meaning: what }));
}

/** What a row stands for and the window, which come before the query of `llmp top`: those that the line does not have yet. */
async function firstWordsOfTop({ args, given }: Line): Promise<Candidate[]> {
  const [{ topWords }, { TOP_DIMENSIONS, TOP_WINDOWS }, { PLURALS }] = await Promise.all([
    import('../../console/query/top-terms.js'),
    import('../../daemon/api/vocabulary.js'),
    import('../../daemon/api/top-words.js'),
  ]);
  const { by, window, filter } = topWords(args.join(' '));
  if (filter.trim() !== '') return [];
  const dimensions = by === null && given.by === undefined ? TOP_DIMENSIONS : [];
  const windows = window === null && given.window === undefined && given.since === undefined ? TOP_WINDOWS : [];
  return [
    ...dimensions.map((word) => ({ word, meaning: `the busiest ${PLURALS[word]}` })),
    ...windows.map((word) => ({ word, meaning: 'how far back' })),
  ];
}

/** A client with the command line's settings. It never prompts, runs no command and prints nothing. */
async function clientFor({ given }: Line, shell: Shell): Promise<ManagementClient> {
  const [{ connect }, { destinationOf }, { serverOf }] = await Promise.all([
    import('../connection/connection.js'),
    import('../connection/destination.js'),
    import('../connection/server.js'),
  ]);
  const { server, context, managementToken, managementTokenFile } = given;
  const globals: Globals = { server, context, managementToken, managementTokenFile, timeout: GIVE_UP_AFTER_MS };
  // Made when they are used, which is seldom.
  const mute = () =>
    new Writable({
      write: (_piece, _encoding, done) => {
        done();
      },
    });
  const silent = Object.create(shell, {
    stdin: { get: () => Readable.from([]) },
    stdout: { get: mute },
    stderr: { get: mute },
  }) as Shell;
  const destination = await destinationOf(globals, shell.env);
  // Without a warning, which completion cannot show, the token must not be sent in clear text.
  if (serverOf(destination.server).isClearText) throw new Error('in clear text');
  delete destination.context?.tokenCommand;
  const options = {
    format: 'table',
    quiet: true,
    verbose: false,
    color: false,
    pager: false,
    secrets: [],
    commands: [],
  } as const;
  const output = new Output(silent, options);
  const input = new Input(silent, false);
  return connect({ shell: silent, globals, input, output, destination: () => destination });
}
