/** `llmp doctor`: runs all checks of a deployment at the same time, each group with its own time limit. */
import { MASK } from '../core/masking.js';
import { secretsIn, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { withTimeout } from '../core/timing.js';
import type { Clock } from '../core/ports.js';
import { keyFileChecks, logInChecks, roleChecks } from './doctor-access.js';
import { auditChecks } from './doctor-files.js';
import { databaseChecks } from './doctor-database.js';
import { type DoctorContext, codeOf, failed, type CheckGroup, type Finding } from './doctor-finding.js';
import { descriptorChecks, nodeChecks } from './doctor-host.js';
import { listeningChecks } from './doctor-listening.js';
import { fileChecks, settingsChecks } from './doctor-settings.js';
import { redisChecks } from './doctor-redis.js';
import { systemdChecks } from './doctor-systemd.js';
import { upstreamChecks } from './doctor-upstream.js';

export type { CheckGroup, Finding };

// Longer than the timeouts of the checks themselves, whose findings say more than a timeout of the whole group.
const LIMIT_MS = 6_000;

/** The time limit of a group, two of whose checks may wait for as long. */
export const limitFor = (timeoutMs: number) => Math.max(LIMIT_MS, 2 * timeoutMs);

export interface DoctorOptions {
  env: NodeJS.ProcessEnv;
  envFile: string | undefined;
  /** The current time in milliseconds since 1970. */
  now: number;
  /** Further checks, which the caller defines, such as that of the terminal. */
  more?: readonly CheckGroup[];
  /** Whether the deployment is being set up: that the name of the provider does not resolve is only a warning then. */
  isSetUp?: boolean;
  /** Time limit of each group of checks. */
  limitMs?: number;
  /** Aborted when the result is no longer needed. */
  signal?: AbortSignal;
}

/** Runs all checks, which change nothing. Findings contain no secrets. */
export async function runDoctor({
  env,
  envFile,
  now,
  more = [],
  isSetUp = false,
  limitMs = LIMIT_MS,
  signal,
}: DoctorOptions): Promise<Finding[]> {
  const { context, problems } = read(env, envFile, isSetUp);
  const families = [
    settingsChecks(context, problems),
    fileChecks(context),
    nodeChecks(now),
    descriptorChecks(context),
    databaseChecks(context),
    auditChecks(context),
    redisChecks(context),
    upstreamChecks(context),
    logInChecks(context),
    roleChecks(context),
    keyFileChecks(context),
    ...listeningChecks(context),
    systemdChecks(context),
    ...more,
  ];
  const found = await Promise.all(families.map((family) => runWithin(limitMs, family, signal)));
  const secrets = secretsIn(env, { file: context.file ?? undefined });
  return found.flat().map((finding) => masked(finding, secrets));
}

function read(
  env: NodeJS.ProcessEnv,
  path: string | undefined,
  isSetUp: boolean,
): { context: DoctorContext; problems: readonly string[] } {
  const context = {
    env,
    file: null,
    isFileUnreadable: false,
    envFileOption: path === undefined ? '' : ` --env-file ${path}`,
    isSetUp,
  };
  try {
    return { context: { ...context, file: path === undefined ? null : readEnvFile(path) }, problems: [] };
  } catch (error) {
    if (error instanceof SettingsError)
      return { context: { ...context, isFileUnreadable: true }, problems: error.problems };
    throw error;
  }
}

/** A clock whose timers keep the process alive, unlike those of the daemon: while a check hangs, nothing else may do so. */
const referencedClock: Pick<Clock, 'after'> = {
  after(ms, action) {
    const timer = setTimeout(action, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};

/** Runs a group of checks. If it does not finish in time, that is a finding too. */
async function runWithin(limitMs: number, { check, run }: CheckGroup, signal?: AbortSignal): Promise<Finding[]> {
  const found: Finding[] = [];
  const finished = new AbortController();
  const collect = async () => {
    for await (const finding of run(AbortSignal.any([finished.signal, ...(signal ? [signal] : [])])))
      found.push(finding);
    return null;
  };
  const ended = collect().catch((error: unknown) =>
    failed(check, `the check failed: ${codeOf(error)}`, 'Fix the cause, and run llmp doctor again'),
  );
  const last = await withTimeout(referencedClock, limitMs, ended, () =>
    failed(
      check,
      `no response within ${limitMs / 1000} s`,
      'Check whether the service or the disk that it needs hangs, or raise --timeout',
    ),
  );
  finished.abort();
  return last ? [...found, last] : [...found];
}

// Masking shorter values would garble ordinary words, and they are too short to be secrets.
const MIN_MASKED_LENGTH = 6;

function masked({ check, state, evidence, advice }: Finding, secrets: readonly string[]): Finding {
  const known = secrets.filter(({ length }) => length >= MIN_MASKED_LENGTH);
  const mask = (text: string) => known.reduce((shown, secret) => shown.replaceAll(secret, MASK), text);
  return { check, state, evidence: mask(evidence), advice: advice && mask(advice) };
}
