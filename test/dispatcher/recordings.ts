/** Recordings of what the vendors' SDKs send, to notice if a newer SDK sends something else. */
import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

const FOLDER = resolve(import.meta.dirname, '../../../test/dispatcher/recordings');

/** Compares what an SDK sent with the recording. With RECORD_SDKS=1 it updates the recording first. */
export function isAsRecorded(name: string, sent: unknown): void {
  const file = resolve(FOLDER, `${name}.json`);
  if (process.env['RECORD_SDKS'] === '1') writeFileSync(file, `${JSON.stringify(sent, null, 2)}\n`);
  expect(sent).to.deep.equal(JSON.parse(readFileSync(file, 'utf8')));
}
