/** The places of the terminal UI where keys mean something, and a daemon that has something for each. */
import { operator, project, record, SimulatedDaemon, token, topRow, trust } from './simulated.js';

export const full = (): SimulatedDaemon => {
  const daemon = new SimulatedDaemon({
    tokens: [token(0), token(1, { is_active: false }), token(2, { state: 'expired' })],
    projects: [project('web'), project('off', { is_active: false })],
  });
  daemon.operators = [operator('ana'), operator('gone', { is_active: false })];
  daemon.topRows = [topRow(0)];
  daemon.trusts = [trust('gha')];
  daemon.records = Array.from({ length: 400 }, (_, index) => record(index));
  daemon.contexts = [
    { name: 'here', server: 'x', isCurrent: true, isProtected: false, isReadonly: false, color: null },
    { name: 'prod', server: 'y', isCurrent: false, isProtected: true, isReadonly: false, color: 'red' },
  ];
  return daemon;
};

/** How to reach each scope. */
export const WAYS: Record<string, readonly string[]> = {
  overview: ['1'],
  tokens: ['2'],
  token: ['2', 'enter'],
  projects: ['3'],
  'tokens of a project': ['3', 'enter'],
  audit: ['4'],
  'an open record': ['4', 'enter'],
  cache: ['5'],
  events: ['6'],
  top: ['7'],
  operators: ['O'],
  operator: ['O', 'enter'],
  'the form of an operator': ['O', 'n'],
  'the deactivation of an operator': ['O', 'd'],
  trusts: ['T'],
  trust: ['T', 'enter'],
  'top models': ['7', 'm'],
  'a dialog': ['2', 'x'],
  'the form of a token': ['2', 'n'],
  'the choices of a field': ['2', 'n', 'shift+tab', 'space'],
  'the form of a project': ['3', 'n'],
  'a purge': ['5', 'x'],
  'a secret': ['2', 'n', 'enter', 'enter', 'enter', 'enter', 'enter'],
  'a path': ['2', 'n', 'enter', 'enter', 'enter', 'enter', 'enter', 'w'],
  'the filter': ['2', '/'],
  'the command line': ['2', ':'],
  help: ['2', '?'],
  'a search in help': ['2', '?', '/', 'x'],
  contexts: ['2', 'c'],
  columns: ['2', 'C'],
};
