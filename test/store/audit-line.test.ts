import { expect } from 'chai';
import { usdOf } from '../../daemon/api/money.js';
import type { NumberedRecord } from '../../daemon/core/ports.js';
import { type AuditedUse, fieldsOfRecord, UseFields } from '../../daemon/store/audit-file/fields.js';
import { SOME_REQUEST } from '../support/request-follower.js';

// `audit verify` compares every line ever written with its record. A change of this format would make it report older lines as
// forged.
const LINE =
  '"seq":42,"id":"01890a5d-ac96-774b-bcce-b302099a8057","time":"2030-01-31T12:00:00.123Z","action":"token.revoke","actor":"cli",' +
  '"outcome":"success","project_id":"16763be4-6022-406e-a950-fcd5018633ca","token_id":"8d16957c-ebd1-49f3-87d9-804058b65bca",' +
  '"obfuscated":"sk-wt-3uCj…czXf","request_id":"6fba524ea60c6b7723a1980c8d06d6e2","client_ip":"203.0.113.7",' +
  '"reason":"lost \\"laptop\\" \\u202e","count":null,"details":{"revoked_at":"2030-01-31T12:00:00.123Z","n":1}}';

const RECORD: NumberedRecord = {
  seq: 42,
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  timeMs: Date.parse('2030-01-31T12:00:00.123Z'),
  action: 'token.revoke',
  actor: 'cli',
  user: null,
  outcome: 'success',
  projectId: '16763be4-6022-406e-a950-fcd5018633ca',
  tokenId: '8d16957c-ebd1-49f3-87d9-804058b65bca',
  obfuscated: 'sk-wt-3uCj…czXf',
  requestId: '6fba524ea60c6b7723a1980c8d06d6e2',
  clientIp: '203.0.113.7',
  reason: 'lost "laptop" \u202e',
  count: null,
  details: { revoked_at: '2030-01-31T12:00:00.123Z', n: 1 },
  batch: null,
  undoOf: null,
};

describe('a line of the audit file', () => {
  it('has the same format in all releases', () => {
    expect(fieldsOfRecord(RECORD)).to.equal(LINE);
  });

  it('has the user of the front end, if it reported one', () => {
    const record = { ...RECORD, user: 'ana@laptop' };
    const line = LINE.replace('"actor":"cli",', '"actor":"cli","user":"ana@laptop",');
    expect(fieldsOfRecord(record)).to.equal(line);
  });

  it('of a use has its own values after any other use', () => {
    const usage = { promptTokens: 1, completionTokens: 2, totalTokens: 3, cacheReadTokens: 4, cacheWriteTokens: 5 };
    const others: Partial<AuditedUse>[] = [
      { requestId: 'other' },
      { timeMs: 61_234 },
      { tokenId: 'u', projectId: 'q', obfuscated: 'sk-wt-3uCj…czXf' },
      { clientIp: '203.0.113.7' },
      { method: 'POST' },
      { path: '/v1/"\u202e' },
      { status: 502 },
      { code: 'upstream_error' },
      { outcome: 'revoked' },
      { outcome: 'upstream_error' },
      { cache: 'hit' },
      { durationMs: 7 },
      { model: 'gpt' },
      { usage },
      { costNano: 1_234_567_890 },
      { costNano: null },
    ];
    const fields = new UseFields();
    for (const other of others) {
      for (const use of [SOME_REQUEST, { ...SOME_REQUEST, ...other }]) {
        const line = fields.of(use).join('');
        expect(line).to.equal(new UseFields().of(use).join(''));
        const { details, ...rest } = JSON.parse(`{${line}`) as Record<string, unknown> & { details: object };
        expect(rest).to.include({ id: use.requestId, client_ip: use.clientIp, token_id: use.tokenId });
        expect(details).to.include({ path: use.path, status: use.status, outcome: use.outcome, model: use.model });
        expect(details).to.include({ cost_usd: use.costNano === null ? null : usdOf(use.costNano) });
      }
    }
  });
});
