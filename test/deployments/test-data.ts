/**
 * What every deployment contains before the contract runs: more than one page of everything, many equal values, and values that only time
 * would bring about. The expected lists and reports are computed from the requests and the tables, never from the lists themselves.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { DAY_MS, HOUR_MS } from '../../daemon/core/usage.js';
import { SqlUsage } from '../../daemon/store/sql/usage.js';
import { UPSTREAM_KEY } from '../support/daemon.js';
import { aUsageRow } from '../support/factories.js';
import { ADD_PURSES } from '../support/many-tokens.js';
import { COMPLETION_TOKENS, each, PROMPT_TOKENS, type System } from './system.js';

const PROJECTS = 104;
const TOKENS = 260;
/** More than one page of the maximum size. They are inserted into the database directly, and their secrets are unknown. */
const MORE_TOKENS = 900;
const USED = 30;
export const MODELS = ['model-a', 'model-b', 'model-c'] as const;
/** Rows of usage of past days; as many records of uses in the audit log. */
const PAST_ROWS = 800;

/** Requests with one token, of one model, in one hour. */
export interface HourlyUse {
  tokenId: string;
  projectId: string;
  model: string;
  hourMs: number;
  requests: number;
  promptTokens: number;
  completionTokens: number;
}

export interface TestData {
  projects: WireProject[];
  /** Deactivated. */
  idle: WireProject;
  tokens: WireTokenCreated[];
  usage: HourlyUse[];
  /** When it began and when it finished. The usage is from well before up to between these. */
  beganMs: number;
}

export async function insertTestData(system: System): Promise<TestData> {
  const beganMs = Date.now();
  const projects = await createProjects(system);
  const [idle] = projects.slice(-1);
  if (!idle) throw new RangeError('no projects');
  const tokens = await createTokens(system, projects);
  const usage = [...(await useTokens(system, tokens)), ...(await usePast(system, tokens, beganMs))];
  await age(system, tokens, beganMs);
  await addTokens(system, projects, beganMs);
  await each(
    tokens.filter((_, n) => n % 9 === 4),
    ({ id }) => system.ask('DELETE', `/manage/tokens/${id}`, { headers: { 'x-audit-reason': 'not needed any more' } }),
  );
  await system.ask('PATCH', `/manage/projects/${idle.id}`, { body: { is_active: false } });
  return { projects, idle, tokens, usage, beganMs };
}

async function createProjects(system: System): Promise<WireProject[]> {
  const projects: WireProject[] = [];
  await each(Array.from({ length: PROJECTS }), async (_, n) => {
    const body = { name: `project ${String(n).padStart(3, '0')}`, api_key: UPSTREAM_KEY };
    projects[n] = await system.ask<WireProject>('POST', '/manage/projects', { body });
  });
  return projects;
}

// Of different lengths, cases and alphabets, and many of them equal: lists are in the order of bytes.
const NAMES = ['ci job', 'CI job', 'Ünïcode 😀', 'notebook', 'ｗide', 'a_b%c', 'zebra', '~'];

async function createTokens(system: System, projects: readonly WireProject[]): Promise<WireTokenCreated[]> {
  const tokens: WireTokenCreated[] = [];
  await each(Array.from({ length: TOKENS }), async (_, n) => {
    // Most are of the first project, some of the last.
    const project = projects[n % 10 === 9 ? projects.length - 1 : n % 3 === 0 ? n % 7 : 0];
    const body = {
      project_id: project?.id,
      duration_minutes: 60 + (n % 25) * 60,
      ...(n % 4 === 1 && { max_requests: 2 + (n % 3) }),
      ...(n % 6 !== 5 && { name: `${NAMES[n % NAMES.length]} ${n % 40}` }),
    };
    tokens[n] = await system.ask<WireTokenCreated>('POST', '/manage/tokens', { body });
  });
  return tokens;
}

/** Uses each of the first tokens once, twice or three times, in turn, through the proxy. */
async function useTokens(system: System, tokens: readonly WireTokenCreated[]): Promise<HourlyUse[]> {
  const usage: HourlyUse[] = [];
  const used = tokens.filter((_, n) => n % 10 !== 9).slice(0, USED);
  await each(used, async (token, n) => {
    const requests = Math.min(1 + (n % 3), token.max_requests || Infinity);
    const model = MODELS[n % MODELS.length] ?? '';
    for (let nth = 0; nth < requests; nth++) {
      const status = await system.completion(token.token, model);
      if (status !== 200) throw new Error(`a new token: ${status}`);
      usage.push(usedNow(token, model));
    }
    await system.settled(token.id, requests);
  });
  return usage;
}

/** One request, as usage reports have it. */
export const usedNow = (token: WireTokenCreated, model: string): HourlyUse => ({
  tokenId: token.id,
  projectId: token.project_id,
  model,
  hourMs: hourOf(Date.now()),
  ...counted(1),
});

/** Usage as earlier daemons would have written it, over the last twenty days. */
async function usePast(system: System, tokens: readonly WireTokenCreated[], nowMs: number): Promise<HourlyUse[]> {
  const usage = Array.from({ length: PAST_ROWS }, (_, n): HourlyUse => {
    const token = tokens[(n * 7) % 50];
    if (!token) throw new RangeError('no token');
    const hourMs = hourOf(nowMs) - DAY_MS - Math.floor(n / 4) * 2 * HOUR_MS;
    const model = MODELS[n % MODELS.length] ?? '';
    return { tokenId: token.id, projectId: token.project_id, model, hourMs, ...counted(1 + (n % 5)) };
  });
  const rows = usage.map((used) => aUsageRow(used.hourMs, { ...used, withTokens: used.requests }));
  await new SqlUsage(system.store).add({ instanceId: 'of-the-past', seq: 1, nowMs, rows });
  return usage;
}

const counted = (requests: number) => ({
  requests,
  promptTokens: requests * PROMPT_TOKENS,
  completionTokens: requests * COMPLETION_TOKENS,
});

/** Some tokens were issued long ago, many of them at the same moment, and some have expired. */
async function age(system: System, tokens: readonly WireTokenCreated[], nowMs: number): Promise<void> {
  const issuedMs = nowMs - 10 * DAY_MS;
  const old = tokens.filter((_, n) => n % 5 === 0).map(({ id }) => id);
  await system.write(
    `UPDATE tokens SET created_at = ${issuedMs}, last_used_at = CASE WHEN last_used_at = 0 THEN ${issuedMs} ELSE last_used_at END
     WHERE id IN ('${old.join("', '")}')`,
  );
  const over = tokens.filter((_, n) => n % 8 === 3).map(({ id }) => id);
  await system.write(`UPDATE tokens SET expires_at = expires_at - ${3 * DAY_MS} WHERE id IN ('${over.join("', '")}')`);
}

async function addTokens(system: System, projects: readonly WireProject[], nowMs: number): Promise<void> {
  const rows = Array.from({ length: MORE_TOKENS }, (_, n) => {
    const id = randomUUID();
    const digest = randomBytes(32).toString('hex');
    const name = `more ${n % 300}`;
    const times = `${nowMs + (1 + (n % 70)) * HOUR_MS}, ${nowMs - Math.floor(n / 3) * 60_000}`;
    return `('${id}', '${digest}', '${projects[1 + (n % 5)]?.id}', '${name}', '${name}', ${times}, ${n % 3 === 0 ? 50 : 0}, 'sk-wt-0000…0000', $yes)`;
  });
  await system.write(
    `INSERT INTO tokens (id, digest, project_id, name, name_folded, expires_at, created_at, max_requests, obfuscated, is_active)
     VALUES ${rows.join(', ')}`,
    { yes: true },
  );
  await system.write(ADD_PURSES);
}

const hourOf = (ms: number) => ms - (ms % HOUR_MS);
