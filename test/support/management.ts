/** What tests of the management API check besides a single response: problems, whole lists, raw requests, the tables. */
import { expect } from 'chai';
import { request } from 'node:http';
import type { WireProblem } from '../../daemon/api/contract.js';
import type { Bind } from '../../daemon/store/sql/database.js';
import { MANAGEMENT_TOKEN, type TestResponse, type TestDaemon } from './daemon.js';
import { expectDescribed } from './description.js';
import { expectPlain } from './refusals.js';

/** Checks that a response is a problem with this status and code, in the common shape, and returns its `error`. */
export function problemOf(answer: TestResponse, status: number, code: string): string {
  const problem = answer.body as WireProblem;
  expect({ status: answer.status, code: problem.code }, problem.error).to.deep.equal({ status, code });
  expect(answer.headers.get('content-type')).to.equal('application/json; charset=utf-8');
  expectPlain({ ...problem });
  expect(problem.request_id).to.equal(answer.headers.get('x-request-id'));
  return problem.error;
}

/** Checks that a response is a success with this status, and returns its body. */
export async function bodyOf<Body>(answer: Promise<TestResponse> | TestResponse, status = 200): Promise<Body> {
  const got = await answer;
  expect(got.status, JSON.stringify(got.body)).to.equal(status);
  return got.body as Body;
}

/** The pages of a list from first to last, by following `Link`. */
export async function pagesOf<Item>(daemon: TestDaemon, path: string): Promise<Item[][]> {
  const pages: Item[][] = [];
  let next: string | undefined = path;
  do {
    const answer: TestResponse = await daemon.manage('GET', next);
    pages.push(await bodyOf<Item[]>(answer));
    expect(pages.length, 'pages without an end').to.be.lessThan(100);
    next = /^<([^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1];
  } while (next !== undefined);
  return pages;
}

/** A request with headers that fetch would reject or repair. `undefined` leaves the management token out. */
export async function rawRequest(daemon: TestDaemon, asked: RawRequest): Promise<RawManageResponse> {
  const answer = await sent(daemon.managementUrl, asked);
  expectDescribed(asked.method ?? 'GET', asked.path, answer);
  return answer;
}

function sent(url: string, { method, path, headers = {}, body, localAddress }: RawRequest): Promise<RawManageResponse> {
  const all: Record<string, string | undefined> = {
    authorization: `Bearer ${MANAGEMENT_TOKEN}`,
    // Node states no length for a DELETE, and the body would be read as the next request.
    ...(body !== undefined && !headers['transfer-encoding'] && { 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  };
  const given = Object.entries(all).filter((header): header is [string, string] => header[1] !== undefined);
  const options = { method, path, headers: Object.fromEntries(given), agent: false as const, localAddress };
  return new Promise((resolve, reject) => {
    const outgoing = request(url, options, (response) => {
      const pieces: Buffer[] = [];
      response.on('error', reject);
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('end', () => {
        const text = Buffer.concat(pieces).toString();
        resolve({
          status: response.statusCode ?? 0,
          headers: new Headers(response.headers as Record<string, string>),
          text,
          body: text === '' ? null : (JSON.parse(text) as unknown),
        });
      });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

export type RawManageResponse = TestResponse & { text: string };

export interface RawRequest {
  method?: string;
  path: string;
  headers?: Record<string, string | undefined>;
  body?: string | Buffer;
  /** The source address of the request, such as 127.0.0.2. */
  localAddress?: string;
}

export interface AuditRow {
  action: string;
  actor: string;
  reported_user: string | null;
  outcome: string;
  project_id: string | null;
  token_id: string | null;
  obfuscated: string | null;
  request_id: string | null;
  client_ip: string | null;
  reason: string | null;
  count: number | null;
  details: string | null;
}

export interface ChangeRow {
  seq: number;
  kind: string;
  project_id: string;
  token_id: string | null;
}

/** The audit records in the order in which they were written. */
export function auditOf({ daemon }: TestDaemon): Promise<AuditRow[]> {
  return daemon.stores.database.select<AuditRow>('SELECT * FROM audit ORDER BY rowid');
}

export async function lastAuditOf(daemon: TestDaemon): Promise<AuditRow> {
  const last = (await auditOf(daemon)).at(-1);
  if (!last) throw new Error('nothing was audited');
  return last;
}

export function changesOf({ daemon }: TestDaemon): Promise<ChangeRow[]> {
  return daemon.stores.database.select<ChangeRow>('SELECT seq, kind, project_id, token_id FROM changes ORDER BY rowid');
}

/** Changes the database without the daemon. */
export function write({ daemon }: TestDaemon, sql: string, bind: Bind = {}): Promise<number> {
  return daemon.stores.database.transact((tx) => tx.execute(sql, bind));
}

/** Everything that the management API stores, to be compared before and after. */
export async function storedIn({ daemon }: TestDaemon): Promise<Record<string, object[]>> {
  const stored: Record<string, object[]> = {};
  for (const table of ['projects', 'tokens', 'changes', 'change_seq', 'audit']) {
    stored[table] = await daemon.stores.database.select(`SELECT * FROM ${table} ORDER BY rowid`);
  }
  return stored;
}
