/** Findings of `llmp doctor`, and the context in which its checks run. */
import { type AllSettings, type Environment, loadPart, SettingsError } from '../../config/settings.js';
import type { EnvFile, Sources } from '../../config/sources.js';

/** Only `failed` makes the command exit with 9. `skipped`: does not apply, or could not be checked because of another failure. */
export type State = 'ok' | 'warning' | 'failed' | 'skipped';

export interface Finding {
  check: string;
  state: State;
  /** What was found. */
  evidence: string;
  /** What to do, or the command that fixes it; null if nothing needs to be done. */
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

/** Group of checks that depend on each other. They change nothing: they create no file, take no lock and migrate nothing. */
export interface CheckGroup {
  /** Name of the check that is reported if the group does not finish in time. */
  check: string;
  /** @param signal aborted when the result is no longer needed: the group must close what it opened. */
  run: (signal: AbortSignal) => AsyncIterable<Finding>;
}

/** A group of checks that need these settings: skipped if they are invalid. */
export const checksWith = <Wanted extends keyof AllSettings>(
  check: string,
  context: DoctorContext,
  keys: readonly Wanted[],
  run: (settings: Pick<AllSettings, Wanted>, signal: AbortSignal) => AsyncIterable<Finding>,
): CheckGroup => ({
  check,
  async *run(signal) {
    const settings = validSettings(context, keys);
    if (settings) yield* run(settings, signal);
    else yield skipped(check, INVALID_SETTINGS);
  },
});

/** The environment and the env file of the deployment. */
export interface DoctorContext {
  env: Environment;
  /** Null if there is no env file, or if it cannot be read. */
  file: EnvFile | null;
  /** Whether there is an env file that cannot be read: then the settings are unknown. */
  isFileUnreadable: boolean;
  /** ` --env-file FILE` or empty: appended to commands in advice, so that they read the same settings. */
  envFileOption: string;
  /** Whether the deployment is being set up, on a machine that may get its network later. */
  isSetUp: boolean;
}

export const sourcesOf = ({ env, file }: DoctorContext): Sources => ({ env, file: file ?? undefined });

/** Some settings, or null if they are invalid, which the check `settings` reports. */
export function validSettings<Wanted extends keyof AllSettings>(
  context: DoctorContext,
  keys: readonly Wanted[],
): Pick<AllSettings, Wanted> | null {
  if (context.isFileUnreadable) return null;
  try {
    return loadPart({ env: withoutNodeOptions(context.env), file: context.file ?? undefined }, keys).settings;
  } catch (error) {
    if (error instanceof SettingsError) return null;
    throw error;
  }
}

// Dangerous Node options are reported once by the check `settings`, and must not prevent the other checks.
function withoutNodeOptions({ NODE_TLS_REJECT_UNAUTHORIZED: _, NODE_OPTIONS: __, ...env }: Environment): Environment {
  return env;
}

export const INVALID_SETTINGS = 'not checked: its settings are invalid';

/** The code of a system error, such as ECONNREFUSED; otherwise the message. */
export function codeOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : error instanceof Error ? error.message : String(error);
}

/** The message of an error; its code if it has none. */
export const messageOf = (error: unknown): string =>
  error instanceof Error && error.message !== '' ? error.message : codeOf(error);

const MAX_SKEW_MS = 5_000;

/**
 * Compares another clock with the clock of this machine.
 *
 * @param theirMs the time of the other clock, in ms since the epoch.
 * @param askedMs the local time of the request.
 * @param answeredMs the local time of the response.
 * @param resolutionMs the resolution of the other clock.
 */
export function clockFinding(
  whose: string,
  theirMs: number,
  [askedMs, answeredMs]: readonly [number, number],
  resolutionMs = 1,
): Finding {
  const check = `clock, ${whose}`;
  // The other clock was read between request and response, and rounded down to its resolution.
  const behindMs = askedMs - (theirMs + resolutionMs);
  const aheadMs = theirMs - answeredMs;
  const skewMs = Math.max(behindMs, aheadMs, 0);
  if (skewMs <= MAX_SKEW_MS)
    return ok(check, `within ${Math.max(1, Math.ceil(skewMs / 1000))} s of this machine's clock`);
  const direction = behindMs > 0 ? 'behind' : 'ahead of';
  return warning(
    check,
    `${Math.round(skewMs / 1000)} s ${direction} this machine's clock, which decides when tokens expire`,
    'Synchronise the clocks: timedatectl set-ntp true',
  );
}
