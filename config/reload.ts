/** Computes the effect of SIGHUP: which settings change, and which need a restart. */
import { type AllSettings, DECLARED, type Reloadable } from './declarations.js';
import { isReloadable, type Loaded, maskedText } from './settings.js';

export interface Reloaded {
  /** The settings that are effective now. */
  loaded: Loaded;
  /** Changed and applied settings, by name, with secrets masked for the log. */
  changed: Record<string, { from: string | null; to: string | null }>;
  /** The names of changed settings that need a restart. */
  waiting: string[];
}

/** @param fresh the settings as read again. Only the reloadable ones are applied. */
export function reloaded(before: Loaded, fresh: Loaded): Reloaded {
  const reloadable: Record<string, unknown> = { ...before.reloadable };
  const found = new Map(before.found);
  const changed: Reloaded['changed'] = {};
  const waiting: string[] = [];
  for (const key of Object.keys(DECLARED) as (keyof AllSettings)[]) {
    const { name } = DECLARED[key];
    const [was, is] = [before.found.get(key), fresh.found.get(key)];
    if (was?.text === is?.text) continue;
    if (!isReloadable(key)) {
      waiting.push(name);
      continue;
    }
    reloadable[key] = fresh.reloadable[key];
    if (is) found.set(key, is);
    else found.delete(key);
    changed[name] = { from: maskedText(key, was), to: maskedText(key, is) };
  }
  const { settings } = before;
  const { warnings } = fresh;
  return { loaded: { settings, reloadable: reloadable as Reloadable, found, warnings }, changed, waiting };
}
