/**
 * Sends mutants of the corpus, many at a time, and checks the invariants after each batch. If a batch breaks one, its mutants are tried
 * alone, and the culprit is written to a file.
 */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import type { RawClient } from '../../support/raw.js';
import type { HttpSocket } from '../../../daemon/http/connection-ends.js';
import { withSecret } from './corpus.js';
import { type Mutant, mutant } from './mutations.js';
import { expectOneReading } from './second-reader.js';
import { FaultFixture } from './fault-fixture.js';
import type { Exchange } from './upstream.js';

const BATCH = 250;
const MOST_ON_ONE_STAGE = 40 * BATCH;
const AT_ONCE = 32;
// Detects a request that never ends, even on a busy machine.
const HANGS_AFTER_MS = 15_000;
const MINUTE_MS = 60_000;
const LARGEST_UPLOAD = '20KB';

export interface Fuzzed {
  /** Mutants that were forwarded because nothing was wrong with them. */
  forwarded: number;
  /** The statuses of refusals. */
  refused: Set<number>;
}

/** @throws for the first mutant that breaks something, with its seed and its file. */
export async function fuzz(seed: number, mutants: number): Promise<Fuzzed> {
  const result: Fuzzed = { forwarded: 0, refused: new Set() };
  const playBatch = async (stage: FaultFixture, first: number) => {
    const numbers = Array.from({ length: Math.min(BATCH, mutants - first) }, (_, i) => first + i);
    const batch = numbers.map((number) => mutant(seed, number));
    await play(stage, batch).catch(async (error: unknown) => {
      throw await culprit(seed, numbers, error);
    });
    result.forwarded += stage.upstream.exchanges.length;
    for (const { status, outcome } of stage.daemon.ended) if (outcome === 'refused') result.refused.add(status);
  };
  // The stage is replaced now and then, because it keeps its whole log.
  for (let first = 0; first < mutants; first += MOST_ON_ONE_STAGE) {
    await onStage(async (stage) => {
      const end = Math.min(first + MOST_ON_ONE_STAGE, mutants);
      for (let next = first; next < end; next += BATCH) await playBatch(stage, next);
    });
  }
  return result;
}

async function onStage(run: (stage: FaultFixture) => Promise<void>): Promise<void> {
  const stage = new FaultFixture({ env: { MAX_REQUEST_SIZE: LARGEST_UPLOAD } });
  await stage.open();
  try {
    await run(stage);
  } finally {
    await stage.close();
  }
}

/** Sends all mutants, then checks the invariants. */
async function play(stage: FaultFixture, mutants: readonly Mutant[], atOnce = AT_ONCE): Promise<void> {
  await stage.begin();
  stage.clientsMisplaceSecrets = true;
  stage.upstream.script = inManyWays();
  const rest = [...mutants];
  const worker = async () => {
    for (let next = rest.shift(); next; next = rest.shift()) await send(stage, next);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  await stage.allDisconnected();
  // Wrong attempts on /manage are counted per minute, with a timer.
  stage.daemon.clock.advance(2 * MINUTE_MS);
  await stage.checkInvariants();
  await expectOneReading(stage.upstream);
}

/** Responds with and without a length, after the request and before its end. */
function inManyWays(): (exchange: Exchange) => Promise<void> {
  let answers = 0;
  return async (exchange) => {
    answers += 1;
    if (answers % 8 !== 0) await exchange.whole();
    if (answers % 3 !== 0) exchange.respond();
    else exchange.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n');
  };
}

async function send(stage: FaultFixture, { text, pieces, leaves }: Mutant): Promise<void> {
  const bytes = withSecret(text, stage.secret);
  const client = await stage.client();
  const size = Math.ceil(bytes.length / pieces);
  for (let at = 0; at < bytes.length; at += size) {
    client.send(bytes.subarray(at, at + size));
    await turn();
  }
  await allDone(stage, client, bytes.length);
  if (leaves === 'closes') client.destroy();
  else if (leaves === 'resets') client.socket.resetAndDestroy();
  else client.socket.end();
}

/** Waits until everything is read and each complete request has its response, or until the connection is closed. */
async function allDone(stage: FaultFixture, client: RawClient, bytes: number): Promise<void> {
  const givesUpAtMs = performance.now() + HANGS_AFTER_MS;
  let socket: HttpSocket | undefined;
  for (let looks = 0; looks < 2 && !client.isClosed;) {
    await turn();
    socket ??= stage.serverSocketIfAny(client);
    const current = socket?._httpMessage;
    const isDone = socket?.bytesRead === bytes && (!current || !current.req.complete);
    looks = isDone ? looks + 1 : 0;
    if (performance.now() > givesUpAtMs)
      throw new Error('a complete request has no response, and its connection is not closed');
  }
}

/** A valid request. Before and after it the connections to the upstream are reused. */
const ORDINARY: Mutant = {
  text: 'GET /v1/models HTTP/1.1\r\nHost: llmp.test\r\nAuthorization: Bearer {{token}}\r\n\r\n',
  parents: [],
  pieces: 1,
  leaves: 'closes',
};

/** Finds the mutant of a batch that breaks something among ordinary requests. */
async function culprit(seed: number, batch: readonly number[], cause: unknown): Promise<Error> {
  for (const number of batch) {
    const one = mutant(seed, number);
    try {
      await onStage((stage) => play(stage, [ORDINARY, one, ORDINARY], 1));
    } catch (error) {
      const path = join(tmpdir(), `llmp-fuzz-${seed}-${number}.http`);
      writeFileSync(path, one.text, 'latin1');
      const from = `from ${one.parents.join(' and ')}, sent in ${one.pieces} pieces`;
      return new Error(`seed ${seed}, mutant ${number} (${from}) is in ${path}: ${String(error)}`, { cause: error });
    }
  }
  const numbers = `${batch[0] ?? 0} to ${batch.at(-1) ?? 0}`;
  return new Error(`seed ${seed}, mutants ${numbers} together, none alone: ${String(cause)}`, { cause });
}
