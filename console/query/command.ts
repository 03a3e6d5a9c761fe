/** The command line that lists what a screen of the terminal UI shows. */
import { shellWord } from '../escape.js';
import type { TopDimension, TopWindow } from '../../daemon/api/vocabulary.js';
import type { FilteredScreen } from './types.js';

const COMMANDS: Record<FilteredScreen, string> = {
  tokens: 'token list',
  projects: 'project list',
  audit: 'audit list',
  events: 'events tail',
  top: 'top',
};

export interface ListCommand {
  screen: FilteredScreen;
  /** The text of the filter line. */
  filter: string;
  /** The sort order, in the syntax of the API; null for the command's own order. */
  sort?: string | null;
  /** What a row of Top stands for, and how far back it reaches. */
  top?: { by: TopDimension; window: TopWindow };
  /** The name of the context; null if the daemon's address comes from the environment. */
  context?: string | null;
}

/** @returns for example `llmp token list 'project:web expires:<2h' --sort live -c prod`, quoted for a POSIX shell. */
export function listCommand({ screen, filter, sort = null, top, context = null }: ListCommand): string {
  const query = filter.trim();
  const words = ['llmp', COMMANDS[screen]];
  if (top) words.push(top.by);
  if (query !== '') words.push(shellWord(query));
  if (top) words.push('--window', top.window);
  if (sort !== null) words.push('--sort', sort);
  if (context !== null) words.push('-c', shellWord(context));
  return words.join(' ');
}
