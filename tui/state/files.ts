/** Completion of paths on the command line, from the names in the folder that the line names. */
import type { Suggestion } from '../../console/query/filter.js';
import { fuzzyFound } from '../../console/fuzzy.js';
import type { CommandLine } from './layers.js';
import { type State, type Transition, withLayer } from './state.js';

const EXPORT = /^\s*export\s+(.*)$/;

/** The folder of a path, with the slash at its end; empty: the current one. */
const folderOf = (path: string) => path.slice(0, path.lastIndexOf('/') + 1);

/** Shows a line, and requests the names in the folder that it names, unless they are known. */
export function withCommandLine(state: State, top: CommandLine): Transition {
  const next = withLayer(state, top);
  const [, path] = EXPORT.exec(top.line.text) ?? [];
  if (path === undefined) return [next];
  const folder = folderOf(path);
  if (state.files?.folder === folder) return [next];
  // Those of another folder would be wrong.
  return [
    { ...next, files: { folder, entries: [] } },
    { do: 'load', request: { of: 'files', folder } },
  ];
}

/** The names that may be meant. Hidden ones are offered only if the name begins with a dot. */
export function pathsFor({ files }: State, text: string): Suggestion {
  const before = text.length - text.trimStart().length;
  const from = before + folderOf(text.trimStart()).length;
  const begun = text.slice(from);
  const entries = files?.folder === text.slice(before, from) ? files.entries : [];
  const shown = entries.filter(
    ({ name, isFolder }) => isOffered(name, isFolder) && (begun.startsWith('.') || !name.startsWith('.')),
  );
  const options = fuzzyFound(begun.trimEnd(), shown, ({ name }) => name).map(({ name, isFolder }) => ({
    insert: isFolder ? `${name}/` : name,
    what: isFolder ? 'folder' : 'exists; asks before it is replaced',
  }));
  return { from, to: text.length, options };
}

const isOffered = (name: string, isFolder: boolean) => isFolder || /\.(?:csv|jsonl?)$/i.test(name);
