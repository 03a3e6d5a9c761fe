/** What SIGHUP changes: the reloadable settings, as far as their feature is in this build. */
import { type AllSettings, DECLARED, type Reloadable } from './declarations.js';
import { isReloadable, type Loaded, shown } from './settings.js';

export interface Reloaded {
  /** In force from now on. */
  loaded: Loaded;
  /** What changed and applies, as it may be logged. */
  changed: Record<string, { from: string | null; to: string | null }>;
  /** The names of what changed and waits for a restart. */
  waiting: string[];
}

/** @param fresh as read anew; of it only what is reloadable comes into force. */
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
    changed[name] = { from: shown(key, was), to: shown(key, is) };
  }
  const { settings } = before;
  const { warnings } = fresh;
  return { loaded: { settings, reloadable: reloadable as Reloadable, found, warnings }, changed, waiting };
}
