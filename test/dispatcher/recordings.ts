/** What the vendors' SDKs send, kept so that a newer SDK that sends something else is noticed. */
import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

const FOLDER = resolve(import.meta.dirname, '../../../test/dispatcher/recordings');

/** Compares what an SDK sent just now with what is kept; with RECORD_SDKS=1 it is kept instead. */
export function isAsRecorded(name: string, sent: unknown): void {
  const file = resolve(FOLDER, `${name}.json`);
  if (process.env['RECORD_SDKS'] === '1') writeFileSync(file, `${JSON.stringify(sent, null, 2)}\n`);
  expect(sent).to.deep.equal(JSON.parse(readFileSync(file, 'utf8')));
}
