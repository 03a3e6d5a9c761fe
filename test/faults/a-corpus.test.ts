import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { RawClient } from '../support/raw.js';
import {
  CODING_NOT_SUPPORTED,
  elsewhere,
  type Expected,
  expectRefusal,
  HEADERS_TOO_LARGE,
  MALFORMED,
  METHOD_NOT_ALLOWED,
  CREDENTIAL_IN_URL,
  URI_TOO_LONG,
  VERSION_NOT_SUPPORTED,
} from '../support/refusals.js';
import { corpus, withSecret } from './support/corpus.js';
import { staged } from './support/fault-fixture.js';

interface Outcome {
  /** The requests that reach the upstream, each answered with 200: method, target and body. */
  served: readonly string[];
  /** The request is a preflight: it gets 204 and is not forwarded. */
  isPreflight?: boolean;
  /** The refusal after the responses to the served requests. */
  refused?: Expected;
  /** The refusal if the bytes arrive in small pieces, where the daemon can tell less exactly what is wrong. */
  refusedInPieces?: Expected;
  /** The refused request may have begun at the upstream, which must not see its end. */
  isBrokenOff?: boolean;
  /** Whether the connection is closed after the last response, whatever else was sent. */
  isClosed: boolean;
}

const served = (...requests: string[]): Outcome => ({ served: requests, isClosed: false });
const last = (outcome: Outcome): Outcome => ({ ...outcome, isClosed: true });
const thenRefused = (outcome: Outcome, refused: Expected): Outcome => ({ ...outcome, refused, isClosed: true });
const refused = (expected: Expected): Outcome => thenRefused(served(), expected);
const inPieces = (outcome: Outcome, refusedInPieces: Expected): Outcome => ({ ...outcome, refusedInPieces });
const open = (outcome: Outcome): Outcome => ({ ...outcome, isClosed: false });
const PREFLIGHT: Outcome = { ...served(), isPreflight: true };
const thenBrokenOff = (outcome: Outcome): Outcome => ({ ...thenRefused(outcome, MALFORMED), isBrokenOff: true });
const BROKEN_OFF = thenBrokenOff(served());
const INSIDE = 'GET /v1/smuggled HTTP/1.1\r\nHost: llmp.test\r\n\r\n';

const CORPUS: Record<string, Outcome> = {
  'A01-chunked-and-length': refused(MALFORMED),
  'A01-length-and-chunked': refused(MALFORMED),
  'A02-length-beyond-64-bits': refused(MALFORMED),
  'A02-length-empty': refused(MALFORMED),
  'A02-length-folded': refused(MALFORMED),
  'A02-length-hexadecimal': refused(MALFORMED),
  'A02-length-with-minus': refused(MALFORMED),
  'A02-length-with-parameter': refused(MALFORMED),
  'A02-length-with-plus': refused(MALFORMED),
  'A02-length-with-space-before-colon': refused(MALFORMED),
  'A02-length-with-space-inside': refused(MALFORMED),
  'A02-length-with-zeros-in-front': served('POST /v1/echo ab'),
  'A02-list-of-lengths': refused(MALFORMED),
  'A02-one-length-twice': refused(MALFORMED),
  'A02-two-lengths': refused(MALFORMED),
  'A03-chunked-in-mixed-case': served('POST /v1/echo hello'),
  'A03-chunked-in-two-fields': refused(MALFORMED),
  'A03-chunked-then-identity': refused(MALFORMED),
  'A03-chunked-twice': refused(MALFORMED),
  'A03-coding-empty': refused(MALFORMED),
  'A03-coding-folded': refused(MALFORMED),
  'A03-coding-quoted': refused(CODING_NOT_SUPPORTED),
  'A03-coding-with-comma': refused(MALFORMED),
  'A03-coding-with-nul': refused(MALFORMED),
  'A03-coding-with-parameter': refused(CODING_NOT_SUPPORTED),
  'A03-coding-with-space-before-colon': refused(MALFORMED),
  'A03-coding-with-vertical-tab': refused(MALFORMED),
  'A03-identity-and-chunked-in-two-fields': refused(CODING_NOT_SUPPORTED),
  'A03-xchunked': refused(CODING_NOT_SUPPORTED),
  'A04-gzip': refused(CODING_NOT_SUPPORTED),
  'A04-gzip-and-chunked': refused(CODING_NOT_SUPPORTED),
  'A04-gzip-and-chunked-to-manage': refused(elsewhere(CODING_NOT_SUPPORTED)),
  'A04-identity': refused(CODING_NOT_SUPPORTED),
  'A05-delete-in-chunks-with-a-request-inside': served(`DELETE /v1/echo ${INSIDE}`),
  'A05-get-in-chunks-with-a-request-inside': served(`GET /v1/echo ${INSIDE}`),
  'A05-head-in-chunks-with-a-request-inside': served(`HEAD /v1/echo ${INSIDE}`),
  'A05-options-in-chunks-with-a-request-inside': PREFLIGHT,
  'A05-propfind-in-chunks-with-a-request-inside': served(`PROPFIND /v1/echo ${INSIDE}`),
  'A06-get-with-1001-headers-then-chunked': refused(HEADERS_TOO_LARGE),
  'A07-credential-after-1001-headers': refused(HEADERS_TOO_LARGE),
  'A08-101-headers': refused(HEADERS_TOO_LARGE),
  'A08-15-kb-of-target': refused(URI_TOO_LONG),
  'A08-40-kb-of-headers': refused(HEADERS_TOO_LARGE),
  'A08-more-headers-than-the-parser-takes': refused(HEADERS_TOO_LARGE),
  'A08-more-target-than-the-parser-takes': inPieces(refused(URI_TOO_LONG), HEADERS_TOO_LARGE),
  'A09-control-in-the-target': refused(MALFORMED),
  'A09-cr-inside-a-header': refused(MALFORMED),
  'A09-del-in-the-target': refused(MALFORMED),
  'A09-first-header-indented': refused(MALFORMED),
  'A09-folded-header': refused(MALFORMED),
  'A09-lf-before-the-end-of-the-head': refused(MALFORMED),
  'A09-lf-for-crlf': refused(MALFORMED),
  'A09-lf-inside-a-header': refused(MALFORMED),
  'A09-name-empty': refused(MALFORMED),
  'A09-name-with-space': refused(MALFORMED),
  'A09-name-without-colon': refused(MALFORMED),
  'A09-not-ascii-in-the-target': refused(MALFORMED),
  'A09-nul-in-a-header': refused(MALFORMED),
  'A09-nul-in-a-name': refused(MALFORMED),
  'A09-nul-in-the-target': refused(MALFORMED),
  'A09-space-after-the-version': refused(MALFORMED),
  'A09-space-in-the-target': refused(MALFORMED),
  'A09-tabs-in-the-request-line': refused(MALFORMED),
  'A10-chunk-ended-by-lf': BROKEN_OFF,
  'A10-chunk-longer-than-its-size': BROKEN_OFF,
  'A10-chunk-without-crlf': BROKEN_OFF,
  'A10-control-in-extension': BROKEN_OFF,
  'A10-crlf-in-quoted-extension': BROKEN_OFF,
  'A10-extension-empty': BROKEN_OFF,
  'A10-extensions': served('POST /v1/echo good'),
  'A10-last-chunk-of-many-zeros': served('POST /v1/echo good'),
  'A10-lf-in-extension': BROKEN_OFF,
  'A10-size-beyond-64-bits': BROKEN_OFF,
  'A10-size-empty': BROKEN_OFF,
  'A10-size-ended-by-cr-cr-lf': BROKEN_OFF,
  'A10-size-ended-by-lf': BROKEN_OFF,
  'A10-size-negative': BROKEN_OFF,
  'A10-size-not-hexadecimal': BROKEN_OFF,
  'A10-size-with-0x': BROKEN_OFF,
  'A10-size-with-space-before-it': BROKEN_OFF,
  'A10-size-with-space-after-it': BROKEN_OFF,
  'A10-trailer-with-a-coding': BROKEN_OFF,
  'A10-trailer-with-a-length': BROKEN_OFF,
  'A10-trailer-without-colon': BROKEN_OFF,
  'A10-trailers': served('POST /v1/echo good'),
  'A11-extension-of-17-kb': BROKEN_OFF,
  'A12-second-credential-before-the-token': refused(MALFORMED),
  'A12-second-credential-after-the-token': refused(MALFORMED),
  'A13-host-with-list': refused(MALFORMED),
  'A13-host-with-path': refused(MALFORMED),
  'A13-host-with-space': refused(MALFORMED),
  'A13-host-with-user': refused(MALFORMED),
  'A13-host-with-wrong-port': refused(MALFORMED),
  'A13-no-host': refused(MALFORMED),
  'A13-no-host-to-manage': refused(elsewhere(MALFORMED)),
  'A13-two-hosts': refused(MALFORMED),
  'A13-two-hosts-to-a-probe': refused(elsewhere(MALFORMED)),
  'A14-hello-of-tls': refused(MALFORMED),
  'A14-http-0.9': refused(VERSION_NOT_SUPPORTED),
  'A14-http-1.01': refused(MALFORMED),
  'A14-http-1.2': inPieces(refused(VERSION_NOT_SUPPORTED), MALFORMED),
  'A14-http-2.0': refused(VERSION_NOT_SUPPORTED),
  'A14-http-2.0-to-a-probe': refused(elsewhere(VERSION_NOT_SUPPORTED)),
  'A14-http-3': refused(MALFORMED),
  'A14-no-version': refused(VERSION_NOT_SUPPORTED),
  'A14-no-version-alone': refused(VERSION_NOT_SUPPORTED),
  'A14-preface-of-http-2': refused(MALFORMED),
  'A14-rtsp': last(served('GET /v1/models ')),
  'A15-http-1.0': last(served('GET /v1/models ')),
  'A15-http-1.0-in-chunks': refused(MALFORMED),
  'A15-http-1.0-with-keep-alive': last(served('GET /v1/models ')),
  'A15-http-1.0-with-a-length': last(served('POST /v1/echo hello')),
  'A16-three-pipelined-requests': served('GET /v1/models ', 'POST /v1/echo hello', 'DELETE /v1/files/1 '),
  'A17-request-after-connection-close': last(served('GET /v1/models ')),
  'A18-garbage-after-a-request': thenRefused(served('GET /v1/models '), MALFORMED),
  'A18-more-body-than-declared': thenRefused(served('POST /v1/echo hello'), MALFORMED),
  'A23-absolute-target': refused(MALFORMED),
  'A24-absolute-target-to-manage': refused(MALFORMED),
  'A26-target-of-a-connect': refused(MALFORMED),
  'A28-connect-to-v1': refused(METHOD_NOT_ALLOWED),
  'A28-connect-with-a-request-inside': refused(METHOD_NOT_ALLOWED),
  'A29-trace': open(refused(METHOD_NOT_ALLOWED)),
  'A31-method-empty': refused(MALFORMED),
  'A31-method-in-lower-case': refused(MALFORMED),
  'A31-method-unknown': refused(MALFORMED),
  'A34-names-that-could-be-read-as-others': served('POST /v1/echo hello'),
  'A35-delete-with-a-length': served('DELETE /v1/echo hello'),
  'A35-get-with-a-length': served('GET /v1/echo hello'),
  'A35-get-with-length-0': served('GET /v1/echo '),
  'A35-head-with-a-length': served('HEAD /v1/echo hello'),
  'A35-options-with-a-length': PREFLIGHT,
  'A35-post-without-a-length': served('POST /v1/echo '),
  'A37-empty-lines-before-a-request': served('GET /v1/models '),
  'A37-empty-lines-between-requests': served('GET /v1/models ', 'GET /v1/models '),
  'A38-second-request-with-a-broken-chunk': thenBrokenOff(served('GET /v1/models ')),
  'A38-secret-after-letters-in-the-target': open(refused(CREDENTIAL_IN_URL)),
};

function summaryOf({ served, isPreflight, refused, isBrokenOff }: Outcome): string {
  const results =
    served.length > 0 ? [`${served.length === 1 ? 'a request' : `${served.length} requests`} served`] : [];
  if (isPreflight) results.push('204, not forwarded');
  if (refused) results.push(`${refused.status}${isBrokenOff ? ', the upstream request is aborted' : ''}`);
  return results.join(', then ');
}

const SMALL_BYTES = 3_000;

describe('A: the corpus of requests that once broke a proxy', () => {
  const { stage, it } = staged();

  async function sendInPieces(client: RawClient, bytes: Buffer): Promise<void> {
    const size = bytes.length > SMALL_BYTES ? 1_000 : 1;
    for (let at = 0; at < bytes.length; at += size) {
      client.send(bytes.subarray(at, at + size));
      await turn();
    }
  }

  /** @param before the number of requests that had reached the upstream before. */
  async function expectOutcome(client: RawClient, outcome: Outcome, before: number): Promise<void> {
    for (const request of outcome.served) {
      expect((await client.response(request.split(' ')[0])).status).to.equal(200);
    }
    if (outcome.isPreflight) expect((await client.response()).status).to.equal(204);
    if (outcome.refused) expectRefusal(await client.response(), outcome.refused);
    if (outcome.isClosed) {
      await client.closed;
    } else {
      // The next request is read from its first byte, and nothing else was responded to in between.
      client.send(stage.get({}, '/v1/next'));
      expect((await client.response()).status).to.equal(200);
    }
    expect(client.pending.toString('latin1'), 'bytes after the last response').to.equal('');
    const exchanges = stage.upstream.exchanges.slice(before);
    const broken = exchanges.splice(outcome.isBrokenOff ? outcome.served.length : Infinity);
    expect(broken.length).to.be.at.most(1);
    await broken[0]?.closed();
    expect(broken[0]?.request.isComplete ?? false, 'complete at the upstream').to.equal(false);
    const requests = exchanges.map(({ method, target, request: { body } }) => `${method} ${target} ${body.toString()}`);
    expect(requests).to.deep.equal([...outcome.served, ...(outcome.isClosed ? [] : ['GET /v1/next '])]);
  }

  for (const { name, text } of corpus()) {
    const outcome = CORPUS[name];
    const title = `${name.slice(0, 3)} ${name.slice(4).replaceAll('-', ' ')}`;
    it(outcome ? `${title}: ${summaryOf(outcome)}` : title, async () => {
      if (!outcome) throw new Error(`add the expected outcome of ${name}.http to CORPUS`);
      const bytes = withSecret(text, stage.secret);
      await expectOutcome(await stage.client(bytes), outcome, 0);
      const before = stage.upstream.exchanges.length;
      const client = await stage.client();
      await sendInPieces(client, bytes);
      const refused = outcome.refusedInPieces ?? outcome.refused;
      await expectOutcome(client, { ...outcome, ...(refused && { refused }) }, before);
    });
  }
});
