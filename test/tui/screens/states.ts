/** States as they come to be: by the reducer, from answers as the daemon gives them. */
import type { WireProject, WireToken } from '../../../daemon/api/contract.js';
import * as press from '../../../tui/keys/press.js';
import { begin } from '../../../tui/state/beginning.js';
import type { Action, Effect, Place } from '../../../tui/state/exchange.js';
import type { Look, State, Tab } from '../../../tui/state/state.js';
import { update } from '../../../tui/state/update.js';

export const NOW_MS = Date.UTC(2026, 10, 23, 14, 3, 11);
const MINUTE_MS = 60_000;

export const at = (minutes: number) => new Date(NOW_MS + minutes * MINUTE_MS).toISOString();

export const PLACE: Place = {
  server: 'llmp.example:8443',
  context: 'prod',
  color: 'red',
  isProtected: true,
  isReadonly: false,
  project: null,
};

export interface Setting {
  columns?: number;
  rows?: number;
  tab?: Tab;
  look?: Partial<Look>;
  place?: Partial<Place>;
  tokens?: readonly WireToken[];
  projects?: readonly WireProject[];
}

export const UNICODE: Look = { ascii: false, hasColor: true, isStill: false };

export function act(state: State, action: Action, atMs = state.nowMs): State {
  const [next, ...effects] = update(state, { ...action, atMs }, press);
  return answeredAll(next, effects);
}

export const pressed = (state: State, ...keys: string[]): State =>
  keys.reduce((now, key) => act(now, { on: 'key', key }), state);

let answers: Setting = {};

/** What is asked is answered at once, as far as `setting` says with what. */
function answeredAll(state: State, effects: readonly Effect[]): State {
  const asked = effects.flatMap((effect) => (effect.do === 'ask' ? [effect.question] : []));
  return asked.reduce((now, question): State => {
    const { tokens = [], projects = [] } = answers;
    if (question.of === 'tokens') {
      const total = tokens.length;
      return act(now, { on: 'answered', question, answer: { items: [...tokens], next: null, total } });
    }
    if (question.of === 'projects') return act(now, { on: 'answered', question, answer: projects });
    return now;
  }, state);
}

/** Begun, with all that it asked for answered. */
export function stateWith(setting: Setting = {}): State {
  answers = setting;
  const { columns = 100, rows = 24, tab = 'tokens', look = {}, place = {} } = setting;
  const state = begin({
    size: { columns, rows },
    look: { ...UNICODE, ...look },
    place: { ...PLACE, ...place },
    nowMs: NOW_MS,
    tab,
    refreshMs: 2_000,
  });
  return act(state, { on: 'began' });
}

export const project = (number: number, fields: Partial<WireProject> = {}): WireProject => ({
  id: `b0a1c2d3-0000-4000-8000-${String(number).padStart(12, '0')}`,
  name: `project-${number}`,
  is_active: true,
  api_key_hint: '9f2c',
  created_at: at(-60 * 24 * 30 - number),
  updated_at: at(-60 * 5 - number),
  deactivated_at: null,
  ...fields,
});

export const token = (number: number, fields: Partial<WireToken> = {}): WireToken => ({
  id: `${(0x3fa91c2e + number * 7_919_317).toString(16).padStart(8, '0')}-0000-4000-8000-${String(number).padStart(12, '0')}`,
  project_id: project(1).id,
  name: `token-${number}`,
  is_active: true,
  state: 'active',
  expires_at: at(12 + number * 36),
  max_requests: 5_000,
  request_count: 4_211,
  cache_hit_count: 2_610,
  created_at: at(-600),
  last_used_at: at(-0.05 - number),
  obfuscated: 'sk-wt-…a9Fz',
  ...fields,
});
