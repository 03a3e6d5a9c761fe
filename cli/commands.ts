/** The tree of commands as data. */
import { aboutCommands, introductionCommand } from './about.js';
import type { Command } from './command.js';
import { daemonCommand } from './daemon.js';
import { demoCommand } from './demo.js';
import { dispatcherCommand } from './dispatcher.js';
import { statusCommand } from './status.js';

/** What runs when no command is named. */
export const rootCommand: Command = introductionCommand;

export interface Group {
  summary: string;
  /** Loaded when its word is on the line, so that starting costs the same however many commands there are. */
  load: () => Promise<readonly Command[]>;
}

const tokens = async () => (await import('./token.js')).tokenCommands;
const projects = async () => (await import('./project.js')).projectCommands;
const audit = async () => (await import('./audit.js')).auditCommands;
const cache = async () => (await import('./cache.js')).cacheCommands;
const events = async () => (await import('./events.js')).eventCommands;
const usage = async () => [(await import('./usage.js')).usageCommand];
const configuration = async () => (await import('./config.js')).configCommands;
const migrations = async () => (await import('./migrate.js')).migrateCommands;

/** By the words that lead to them. */
export const GROUPS: Readonly<Record<string, Group>> = {
  manage: {
    summary: 'projects, tokens and the cache, through the management API',
    load: async () => [
      ...(await tokens()),
      ...(await projects()),
      ...(await cache()),
      ...(await audit()),
      ...(await events()),
    ],
  },
  'manage token': { summary: 'issue, list, revoke and reactivate tokens', load: tokens },
  'manage project': { summary: 'create, list, activate and deactivate projects', load: projects },
  'manage cache': { summary: 'purge what the daemon keeps of answers', load: cache },
  'manage events': { summary: 'follow what happens', load: events },
  'manage audit': { summary: 'read, follow, export and verify the audit log', load: audit },
  token: { summary: 'short for manage token', load: tokens },
  project: { summary: 'short for manage project', load: projects },
  cache: { summary: 'short for manage cache', load: cache },
  audit: { summary: 'short for manage audit', load: audit },
  events: { summary: 'short for manage events', load: events },
  usage: { summary: 'what tokens were used for', load: usage },
  migrate: { summary: "the database's schema", load: migrations },
  config: { summary: "the daemon's settings", load: configuration },
};

/** The commands that `argv` can possibly name. */
export async function commandsFor(argv: readonly string[]): Promise<readonly Command[]> {
  const named = Object.entries(GROUPS).filter(([words]) => words.split(' ').every((word) => argv.includes(word)));
  const loaded = await Promise.all(named.map(([, group]) => group.load()));
  return [daemonCommand, dispatcherCommand, demoCommand, statusCommand, ...aboutCommands, ...new Set(loaded.flat())];
}

/** Every path a command goes by: what is under `manage` works without that word as well. */
export function pathsOf({ path }: Command): readonly (readonly string[])[] {
  return path[0] === 'manage' ? [path, path.slice(1)] : [path];
}
