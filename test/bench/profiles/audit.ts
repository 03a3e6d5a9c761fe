/** A million records of changes in one SQLite file: how long pages of them take. */
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type AuditAction, auditRecord, type Caller } from '../../../daemon/core/audit.js';
import { openStores } from '../../../daemon/store/open.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../../support/daemon.js';
import { type Figure, median } from '../figures.js';
import type { Report } from '../run.js';

const RECORDS = 1_000_000;
const AT_ONCE = 1_000;
const PROJECTS = 20;
const APART_MS = 1_000;
const RUNS = 5;
const GOAL = { atMost: 100 };
const ACTIONS: readonly AuditAction[] = ['token.create', 'token.revoke', 'token.reactivate', 'project.update'];
const ACTORS: readonly Caller['actor'][] = ['cli', 'tui', 'admin', 'management'];

export async function audit(): Promise<Report> {
  const dir = temporaryFolder();
  const path = join(dir, 'llmp.db');
  await (await startDaemon({ dir })).stop();
  const projects = Array.from({ length: PROJECTS }, () => randomUUID());
  await makeRecords(path, projects);
  console.log(`${RECORDS} records, ${Math.round(statSync(path).size / 1e6)} MB`);
  // Their copy would be made first.
  const daemon = await startDaemon({ dir, env: { AUDIT_LOG_FILE: '' } });
  const figures: Figure[] = [];
  for (const [what, query] of Object.entries(pages(projects))) {
    const times: number[] = [];
    for (let run = 0; run < RUNS; run++) times.push(await timed(daemon, query));
    figures.push({ what, value: median(times), unit: 'ms', goal: GOAL });
  }
  await daemon.stop();
  return { figures };
}

async function makeRecords(path: string, projects: readonly string[]): Promise<void> {
  const stores = await openStores({ databasePath: path, encryptionKey: undefined });
  const beginMs = Date.now() - RECORDS * APART_MS;
  for (let first = 0; first < RECORDS; first += AT_ONCE) {
    await stores.records.change(async (tx) => {
      for (let n = first; n < first + AT_ONCE; n++) await tx.record(recordOf(n, projects, beginMs + n * APART_MS));
    });
  }
  await stores.close();
}

function recordOf(n: number, projects: readonly string[], timeMs: number) {
  const subject = {
    action: one(ACTIONS, n),
    projectId: one(projects, n),
    tokenId: randomUUID(),
    obfuscated: 'sk-wt-0000…0000',
    details: { number: n },
  };
  const caller: Caller = {
    actor: one(ACTORS, Math.floor(n / 3)),
    requestId: randomUUID(),
    clientIp: `10.0.${n % 200}.1`,
    reason: `as agreed with ${n % 5 === 0 ? 'finance' : 'research'}${n === RECORDS / 2 ? ' and Grandmother' : ''}`,
  };
  return auditRecord(subject, caller, n % 50 === 0 ? 'denied' : 'success', timeMs);
}

const one = <T>(values: readonly T[], n: number): T => values[n % values.length] as T;

function pages(projects: readonly string[]): Record<string, string> {
  const early = new Date(Date.now() - (RECORDS - 5_000) * APART_MS).toISOString();
  return {
    'no filter': '',
    'one project': `project_id=${one(projects, 3)}`,
    'an action': 'action=project.update',
    'an outcome of 2 %': 'outcome=denied',
    'an actor': 'actor=tui',
    'action, actor and outcome, which none has': 'action=token.revoke&actor=system&outcome=denied',
    'the oldest of an action': `action=token.create&until=${early}`,
    'a word in every record': 'q=agreed',
    'a word in every fifth record': 'q=finance',
    'a word in one record': 'q=grandm',
    'three words and an outcome': 'q=as agreed fin&outcome=denied',
    'a word in none': 'q=nowhere',
  };
}

async function timed(daemon: TestDaemon, query: string): Promise<number> {
  const begun = performance.now();
  const answer = await daemon.manage('GET', `/manage/audit?limit=100&${query}`);
  if (answer.status !== 200) throw new Error(`${query}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return performance.now() - begun;
}
