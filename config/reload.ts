/** What SIGHUP changes: the reloadable settings, as far as their feature is in this build. */
import { DECLARED, type Settings } from './declarations.js';
import { type Loaded, shown } from './settings.js';

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
  const settings: Record<string, unknown> = { ...before.settings };
  const found = new Map(before.found);
  const changed: Reloaded['changed'] = {};
  const waiting: string[] = [];
  for (const key of Object.keys(DECLARED) as (keyof Settings)[]) {
    const { name, isReloadable } = DECLARED[key];
    const [was, is] = [before.found.get(key), fresh.found.get(key)];
    if (was?.text === is?.text) continue;
    if (!isReloadable) {
      waiting.push(name);
      continue;
    }
    settings[key] = fresh.settings[key];
    if (is) found.set(key, is);
    else found.delete(key);
    changed[name] = { from: shown(key, was), to: shown(key, is) };
  }
  return { loaded: { settings: settings as Settings, found, warnings: fresh.warnings }, changed, waiting };
}
