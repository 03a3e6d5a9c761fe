/** A million records of changes in one SQLite file: how long pages of them take. */
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditAction } from '../../../daemon/api/vocabulary.js';
import type { Caller } from '../../../daemon/core/audit.js';
import { openStores } from '../../../daemon/store/open.js';
import { TestClock } from '../../support/clock.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../../support/daemon.js';
import { type Figure, median } from '../figures.js';
import type { Report } from '../run.js';

const RECORDS = 1_000_000;
const AT_ONCE = 20_000;
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
  // Otherwise they would be copied to the file first.
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

/** As `SqlChange.record` writes them, but without a query for each. */
async function makeRecords(path: string, projects: readonly string[]): Promise<void> {
  const stores = await openStores(
    { database: { driver: 'sqlite', path }, encryptionKey: undefined },
    { clock: new TestClock() },
  );
  const { database } = stores;
  const beginMs = Date.now() - RECORDS * APART_MS;
  for (let first = 1; first <= RECORDS; first += AT_ONCE) {
    await database.transact(async (tx) => {
      await tx.execute(
        `WITH RECURSIVE n(i) AS (SELECT $first UNION ALL SELECT i + 1 FROM n WHERE i < $first + ${AT_ONCE} - 1)
         INSERT INTO audit (seq, id, recorded_at, action, actor, outcome, project_id, token_id, obfuscated, request_id, client_ip, reason, details)
         SELECT i, ${SOME_ID}, $beginMs + i * ${APART_MS}, ${oneOf(ACTIONS, 'i')}, ${oneOf(ACTORS, 'i / 3')},
           CASE WHEN i % 50 = 0 THEN 'denied' ELSE 'success' END, ${oneOf(projects, 'i')}, ${SOME_ID}, 'sk-wt-0000…0000', ${SOME_ID},
           '10.0.' || i % 200 || '.1',
           'as agreed with ' || CASE WHEN i % 5 = 0 THEN 'finance' ELSE 'research' END || CASE WHEN i = ${RECORDS / 2} THEN ' and grandmother' ELSE '' END,
           '{"number":' || i || '}'
         FROM n`,
        { first, beginMs },
      );
      await tx.execute(
        `INSERT INTO audit_words (rowid, words)
         SELECT recorded_at * 1048576 + seq % 1048576, '→action' || REPLACE(action, '.', '') || ' →actor' || actor || ' →outcome' || outcome
           || ' →project' || REPLACE(project_id, '-', '') || ' →token' || REPLACE(token_id, '-', '') || ' '
           || REPLACE(project_id || ' ' || token_id || ' ' || request_id, '-', ' ') || ' ' || REPLACE(client_ip, '.', ' ') || ' ' || reason
         FROM audit WHERE seq >= $first AND seq < $first + ${AT_ONCE} ORDER BY seq`,
        { first },
      );
    });
  }
  await database.transact((tx) => tx.execute('UPDATE change_seq SET seq = $seq', { seq: RECORDS }));
  await stores.close();
}

const SOME_ID = "LOWER(HEX(RANDOMBLOB(4)) || '-' || HEX(RANDOMBLOB(2)) || '-4000-a000-' || HEX(RANDOMBLOB(6)))";

const oneOf = (values: readonly string[], number: string) =>
  `CASE (${number}) % ${values.length} ${values.map((value, i) => `WHEN ${i} THEN '${value}'`).join(' ')} END`;

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
