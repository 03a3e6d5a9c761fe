/** `llmp doctor`: every check of a deployment, beside each other, each in its own time. */
import { secretsAround, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { inTime } from '../core/in-time.js';
import type { Clock } from '../core/ports.js';
import { auditFamily } from './doctor-audit.js';
import { databaseFamily } from './doctor-database.js';
import { type Around, codeOf, failed, type Family, type Finding } from './doctor-finding.js';
import { descriptorsFamily, nodeFamily } from './doctor-host.js';
import { listeningFamily } from './doctor-listening.js';
import { filesFamily, settingsFamily } from './doctor-settings.js';
import { redisFamily } from './doctor-redis.js';
import { systemdFamily } from './doctor-systemd.js';
import { upstreamFamily } from './doctor-upstream.js';

export type { Family, Finding };

// Longer than any of the limits that connections have by themselves: what they say is more than that it took too long.
const LIMIT_MS = 6_000;

export interface DoctorOptions {
  env: NodeJS.ProcessEnv;
  envFile: string | undefined;
  /** Checks that are somebody else's to make, such as of the terminal. */
  more?: readonly Family[];
  /** How long the checks of a family may take together. */
  limitMs?: number;
  /** Aborted when nobody waits any more. */
  signal?: AbortSignal;
}

/** Looks at everything and changes nothing. No secret is in what it finds. */
export async function examine({
  env,
  envFile,
  more = [],
  limitMs = LIMIT_MS,
  signal,
}: DoctorOptions): Promise<Finding[]> {
  const { around, problems } = read(env, envFile);
  const families = [
    settingsFamily(around, problems),
    filesFamily(around),
    nodeFamily(),
    descriptorsFamily(around),
    databaseFamily(around),
    auditFamily(around),
    redisFamily(around),
    upstreamFamily(around),
    ...listeningFamily(around),
    systemdFamily(around),
    ...more,
  ];
  const found = await Promise.all(families.map((family) => within(limitMs, family, signal)));
  const secrets = secretsAround(env, { file: around.file ?? undefined });
  return found.flat().map((finding) => masked(finding, secrets));
}

function read(env: NodeJS.ProcessEnv, path: string | undefined): { around: Around; problems: readonly string[] } {
  const around = { env, file: null, isFileUnread: false, withFile: path === undefined ? '' : ` --env-file ${path}` };
  try {
    return { around: { ...around, file: path === undefined ? null : readEnvFile(path) }, problems: [] };
  } catch (error) {
    if (error instanceof SettingsError) return { around: { ...around, isFileUnread: true }, problems: error.problems };
    throw error;
  }
}

/** Unlike the daemon's its timers keep the process alive: nothing else may while what is looked at hangs. */
const wakefulClock: Pick<Clock, 'after'> = {
  after(ms, action) {
    const timer = setTimeout(action, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};

/** What a family found in that time; one that hangs is a finding too. */
async function within(limitMs: number, { check, look }: Family, signal?: AbortSignal): Promise<Finding[]> {
  const found: Finding[] = [];
  const enough = new AbortController();
  const gather = async () => {
    for await (const finding of look(AbortSignal.any([enough.signal, ...(signal ? [signal] : [])])))
      found.push(finding);
    return null;
  };
  const ended = gather().catch((error: unknown) => failed(check, `cannot be looked at: ${codeOf(error)}`, 'See why'));
  const last = await inTime(wakefulClock, limitMs, ended, () =>
    failed(check, `no answer within ${limitMs / 1000} s`, 'Look whether what it depends on stands still'),
  );
  enough.abort();
  return last ? [...found, last] : [...found];
}

const MASK = '********';
// To mask less would garble words, and is no secret.
const SHORTEST_MASKED = 6;

function masked({ check, state, evidence, advice }: Finding, secrets: readonly string[]): Finding {
  const withoutSecrets = (text: string) =>
    secrets
      .filter(({ length }) => length >= SHORTEST_MASKED)
      .reduce((shown, secret) => shown.replaceAll(secret, MASK), text);
  return { check, state, evidence: withoutSecrets(evidence), advice: advice && withoutSecrets(advice) };
}
