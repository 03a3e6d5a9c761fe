/** What `llmp doctor` finds, and what its checks look at. */
import { type AllSettings, type Environment, loadPart, SettingsError } from '../../config/settings.js';
import type { EnvFile, Sources } from '../../config/sources.js';

/** Only `failed` is a reason to exit 9. What does not apply, or cannot be looked at because of another failure, is `skipped`. */
export type State = 'ok' | 'warning' | 'failed' | 'skipped';

export interface Finding {
  check: string;
  state: State;
  /** What was seen. */
  evidence: string;
  /** The command that mends it, or what to do; null where nothing is to be done. */
  advice: string | null;
}

export const ok = (check: string, evidence: string): Finding => ({ check, state: 'ok', evidence, advice: null });
export const warning = (check: string, evidence: string, advice: string): Finding => ({
  check,
  state: 'warning',
  evidence,
  advice,
});
export const failed = (check: string, evidence: string, advice: string): Finding => ({
  check,
  state: 'failed',
  evidence,
  advice,
});
export const skipped = (check: string, evidence: string): Finding => ({
  check,
  state: 'skipped',
  evidence,
  advice: null,
});

/** Checks that build on each other. They change nothing: no file is made, no lock taken, nothing migrated. */
export interface Family {
  /** What it is called when it does not end in time. */
  check: string;
  /** @param signal aborted when nobody waits any more: what is open is to be let go. */
  look: (signal: AbortSignal) => AsyncIterable<Finding>;
}

export interface Around {
  env: Environment;
  /** Null without one, or when it cannot be read. */
  file: EnvFile | null;
  /** Whether there is one that cannot be read: then nobody knows what the settings are. */
  isFileUnread: boolean;
  /** Behind a command that is advised, so that it reads the same settings: ` --env-file FILE`. */
  withFile: string;
}

export const sourcesOf = ({ env, file }: Around): Sources => ({ env, file: file ?? undefined });

/** Those settings, or null when they are wrong: `settings` has said how. */
export function partOf<Wanted extends keyof AllSettings>(
  around: Around,
  keys: readonly Wanted[],
): Pick<AllSettings, Wanted> | null {
  if (around.isFileUnread) return null;
  try {
    return loadPart({ env: withoutDangers(around.env), file: around.file ?? undefined }, keys).settings;
  } catch (error) {
    if (error instanceof SettingsError) return null;
    throw error;
  }
}

// What is wrong with the process itself is wrong once, and no reason not to look at anything else.
function withoutDangers({ NODE_TLS_REJECT_UNAUTHORIZED: _, NODE_OPTIONS: __, ...env }: Environment): Environment {
  return env;
}

export const WRONG_SETTINGS = 'not looked at: its settings are wrong';

/** A system's error in a word, such as ECONNREFUSED, or what it says. */
export function codeOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : error instanceof Error ? error.message : String(error);
}

const MOST_SKEW_MS = 5_000;

/**
 * @param theirMs what the other clock said, in ms since the epoch.
 * @param askedMs ours when it was asked.
 * @param answeredMs ours when it had answered.
 * @param resolutionMs how finely it tells the time.
 */
export function clockFinding(
  whose: string,
  theirMs: number,
  [askedMs, answeredMs]: readonly [number, number],
  resolutionMs = 1,
): Finding {
  const check = `clock, ${whose}`;
  // It said so at some time in between, and what it did not say is below its resolution.
  const ahead = askedMs - (theirMs + resolutionMs);
  const behind = theirMs - answeredMs;
  const skewMs = Math.max(ahead, behind, 0);
  if (skewMs <= MOST_SKEW_MS) return ok(check, `within ${Math.max(1, Math.ceil(skewMs / 1000))} s of this machine's`);
  const direction = ahead > 0 ? 'behind' : 'ahead of';
  return warning(
    check,
    `${Math.round(skewMs / 1000)} s ${direction} this machine's: tokens expire by this one`,
    'timedatectl set-ntp true',
  );
}
