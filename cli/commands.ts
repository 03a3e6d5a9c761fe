/** The command tree. No command imports this file: a command that needs the others, such as `man`, gets them as a parameter. */
import type { Command } from './command.js';
import { daemonCommand, dispatcherCommand } from './commands/services.js';
import { demoCommand } from './commands/demo.js';
import { statusCommand } from './commands/status.js';
import { aboutCommands, introductionCommand } from './help/about.js';
import { type Group, Tree, type TreeFor } from './help/tree.js';

/** Runs if no command is given. */
export const rootCommand: Command = introductionCommand;

const tokens = async () => (await import('./commands/token.js')).tokenCommands;
const projects = async () => (await import('./commands/project.js')).projectCommands;
const operators = async () => (await import('./commands/operator.js')).operatorCommands;
const trusts = async () => (await import('./commands/trust.js')).trustCommands;
const audit = async () => (await import('./commands/audit.js')).auditCommands;
const cache = async () => (await import('./commands/cache.js')).cacheCommands;
const events = async () => (await import('./commands/events.js')).eventCommands;
const usage = async () => [(await import('./commands/usage.js')).usageCommand];
const prices = async () => (await import('./commands/prices.js')).priceCommands;
const top = async () => [(await import('./commands/top.js')).topCommand];
const init = async () => [(await import('./init/init.js')).initCommand];
const doctor = async () => [(await import('./commands/doctor.js')).doctorCommand];
const undo = async () => [(await import('./commands/undo.js')).undoCommand];
const runs = async () => [(await import('./commands/run.js')).runCommand];
const connects = async () => [(await import('./commands/connect.js')).connectCommand];
const selves = async () => [(await import('./commands/self.js')).selfCommand];
const logins = async () => [(await import('./commands/session.js')).loginCommand];
const logouts = async () => [(await import('./commands/session.js')).logoutCommand];
const whoamis = async () => [(await import('./commands/session.js')).whoamiCommand];
const configuration = async () => (await import('./commands/config.js')).configCommands;
const contexts = async () => (await import('./commands/context.js')).contextCommands;
const migrations = async () => (await import('./commands/migrate.js')).migrateCommands;
const backups = async () => (await import('./commands/backup.js')).backupCommands;
const admin = async () => [(await import('./commands/admin.js')).adminCommand];
const tui = async () => [(await import('./commands/tui.js')).tuiCommand];
const completion = async () => [(await import('./completion/completion.js')).completionCommand];
const completing = async () => [(await import('./completion/complete.js')).completeCommand(treeFor)];
const manual = async () => [(await import('./help/man.js')).manCommand(treeFor)];

/** Commands on the management API. */
const MANAGED: Readonly<Record<string, Group>> = {
  token: { summary: 'issue, list, change, revoke and reactivate tokens', load: tokens },
  project: { summary: 'create, list, activate and deactivate projects', load: projects },
  operator: { summary: 'create, list, change and deactivate operators with roles', load: operators },
  trust: { summary: 'manage which JWTs are exchanged for tokens', load: trusts },
  cache: { summary: 'inspect and purge the response cache', load: cache },
  audit: { summary: 'read, follow, export and verify the audit log', load: audit },
  events: { summary: 'stream live requests and changes', load: events },
};

/** Command groups by the words that name them. */
export const GROUPS: Readonly<Record<string, Group>> = {
  ...MANAGED,
  manage: {
    summary: `long form of ${Object.keys(MANAGED).join(', ')}`,
    load: async () => (await Promise.all(Object.values(MANAGED).map((group) => group.load()))).flat(),
  },
  ...Object.fromEntries(Object.entries(MANAGED).map(([word, group]) => [`manage ${word}`, group])),
  admin: { summary: 'run the Admin UI as a separate process', load: admin },
  tui: { summary: 'open the terminal UI', load: tui },
  usage: { summary: 'report requests and model tokens', load: usage },
  top: { summary: 'list the busiest tokens, projects or models', load: top },
  prices: { summary: 'show what models cost, and which have no price', load: prices },
  undo: { summary: 'undo the changes of a command', load: undo },
  run: { summary: 'run a command with a temporary token that is revoked when the command ends', load: runs },
  connect: { summary: 'print the settings that point an agent at the daemon', load: connects },
  self: { summary: 'show what is left of the token in the environment', load: selves },
  migrate: { summary: 'manage the database schema', load: migrations },
  backup: { summary: 'back up a SQLite database', load: backups },
  restore: { summary: 'restore a SQLite database', load: backups },
  context: { summary: 'manage contexts (named daemons)', load: contexts },
  login: { summary: "log in with the company's identity provider", load: logins },
  logout: { summary: 'end the session of the context', load: logouts },
  whoami: { summary: 'show who you are, and what you may do', load: whoamis },
  init: { summary: 'set up a server', load: init },
  doctor: { summary: 'diagnose a deployment and suggest fixes', load: doctor },
  config: { summary: 'show and check settings', load: configuration },
  completion: { summary: 'print a shell completion script', load: completion },
  man: { summary: 'show a manual page', load: manual },
  __complete: { summary: 'list completions for a command line', load: completing, isHidden: true },
};

const ALWAYS: readonly Command[] = [daemonCommand, dispatcherCommand, demoCommand, statusCommand, ...aboutCommands];

/** The words that can follow `llmp`. */
export const COMMAND_WORDS: readonly string[] = [
  ...ALWAYS.flatMap(({ path: [word] }) => word ?? []),
  ...Object.entries(GROUPS).flatMap(([words, { isHidden }]) => (words.includes(' ') || isHidden ? [] : [words])),
];

/** The commands that `argv` can name. Only their modules are loaded, which keeps startup fast. */
export async function commandsFor(argv: readonly string[]): Promise<readonly Command[]> {
  const named = Object.entries(GROUPS).filter(([words]) => words.split(' ').every((word) => argv.includes(word)));
  const loaded = await Promise.all(named.map(([, group]) => group.load()));
  return [...ALWAYS, ...new Set(loaded.flat())];
}

/** The command tree with the commands that `argv` can name. */
export const treeFor: TreeFor = async (argv) => new Tree(await commandsFor(argv), GROUPS);

/** The complete command tree. It loads every command. */
export const wholeTree = () => treeFor(Object.keys(GROUPS));
