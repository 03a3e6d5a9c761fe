/**
 * Requests that once broke a proxy, byte for byte, and what each leads to. A title begins with the ID of its row in test/faults.md.
 * `{{token}}` is in place of the client's secret. One character is one byte.
 */
import {
  CODING_NOT_SUPPORTED,
  CREDENTIAL_IN_URL,
  elsewhere,
  type Expected,
  HEADERS_TOO_LARGE,
  MALFORMED,
  METHOD_NOT_ALLOWED,
  URI_TOO_LONG,
  VERSION_NOT_SUPPORTED,
} from '../../support/refusals.js';

export interface Outcome {
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
const thenBrokenOff = (outcome: Outcome): Outcome => ({ ...thenRefused(outcome, MALFORMED), isBrokenOff: true });
const PREFLIGHT: Outcome = { ...served(), isPreflight: true };
const REFUSED = refused(MALFORMED);
const UNSUPPORTED = refused(CODING_NOT_SUPPORTED);
const TOO_LARGE = refused(HEADERS_TOO_LARGE);
const BROKEN_OFF = thenBrokenOff(served());

const HOST = 'Host: llmp.test\r\n';
const TOKEN = 'Authorization: Bearer {{token}}\r\n';
const HEAD = HOST + TOKEN;
const LENGTH = 'Content-Length: 5\r\n';
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const HELLO = '5\r\nhello\r\n0\r\n\r\n';

const request = (start: string, fields = HEAD, body = '') => `${start}\r\n${fields}\r\n${body}`;
const models = (fields = '') => request('GET /v1/models HTTP/1.1', HEAD + fields);
const hosted = (host: string) => request('GET /v1/models HTTP/1.1', `Host: ${host}\r\n${TOKEN}`);
const echo = (fields = '', body = '') => request('POST /v1/echo HTTP/1.1', HEAD + fields, body);

/** What a reader that is misled takes for the next request. */
const SMUGGLED = request('GET /v1/smuggled HTTP/1.1');
const INSIDE = request('GET /v1/smuggled HTTP/1.1', HOST);
/** Two bytes, whose length is in `fields`. */
const sized = (fields: string) => echo(`${fields}\r\n`, `ab${SMUGGLED}`);
/** A body in chunks, whose coding is in `fields`. */
const coded = (fields: string) => echo(`${fields}\r\n`, HELLO + SMUGGLED);
/** A good chunk, and then others. */
const chunked = (others: string) => echo(CHUNKED, `4\r\ngood\r\n${others}${SMUGGLED}`);

const REQUESTS: Record<string, [text: string, outcome: Outcome]> = {
  'A01 chunked and length': [
    echo('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', `5c\r\n${SMUGGLED}\r\n0\r\n\r\n`),
    REFUSED,
  ],
  'A01 length and chunked': [
    echo('Content-Length: 150\r\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${SMUGGLED}`),
    REFUSED,
  ],
  'A02 length beyond 64 bits': [sized('Content-Length: 18446744073709551618'), REFUSED],
  'A02 length empty': [sized('Content-Length: '), REFUSED],
  'A02 length folded': [sized('Content-Length:\r\n 2'), REFUSED],
  'A02 length hexadecimal': [sized('Content-Length: 0x2'), REFUSED],
  'A02 length with minus': [sized('Content-Length: -1'), REFUSED],
  'A02 length with parameter': [sized('Content-Length: 2;a=b'), REFUSED],
  'A02 length with plus': [sized('Content-Length: +2'), REFUSED],
  'A02 length with space before colon': [sized('Content-Length : 2'), REFUSED],
  'A02 length with space inside': [sized('Content-Length: 2 0'), REFUSED],
  'A02 length with zeros in front': [echo('Content-Length: 002\r\n', 'ab'), served('POST /v1/echo ab')],
  'A02 list of lengths': [sized('Content-Length: 2, 2'), REFUSED],
  'A02 one length twice': [sized('Content-Length: 2\r\nContent-Length: 2'), REFUSED],
  'A02 two lengths': [sized('Content-Length: 2\r\nContent-Length: 0'), REFUSED],
  'A03 chunked in mixed case': [echo('TRANSFER-encoding: cHUNKED\r\n', HELLO), served('POST /v1/echo hello')],
  'A03 chunked in two fields': [coded('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked'), REFUSED],
  'A03 chunked then identity': [coded('Transfer-Encoding: chunked, identity'), REFUSED],
  'A03 chunked twice': [coded('Transfer-Encoding: chunked, chunked'), REFUSED],
  'A03 coding empty': [coded('Transfer-Encoding: '), REFUSED],
  'A03 coding folded': [coded('Transfer-Encoding: \r\n chunked'), REFUSED],
  'A03 coding quoted': [coded('Transfer-Encoding: "chunked"'), UNSUPPORTED],
  'A03 coding with comma': [coded('Transfer-Encoding: chunked,'), REFUSED],
  'A03 coding with nul': [coded('Transfer-Encoding: chunked\0'), REFUSED],
  'A03 coding with parameter': [coded('Transfer-Encoding: chunked;a=b'), UNSUPPORTED],
  'A03 coding with space before colon': [coded('Transfer-Encoding : chunked'), REFUSED],
  'A03 coding with vertical tab': [coded('Transfer-Encoding: \x0bchunked'), REFUSED],
  'A03 identity and chunked in two fields': [
    coded('Transfer-Encoding: identity\r\nTransfer-Encoding: chunked'),
    UNSUPPORTED,
  ],
  'A03 xchunked': [coded('Transfer-Encoding: xchunked'), UNSUPPORTED],
  'A04 gzip and chunked to manage': [
    request(
      'POST /manage/projects HTTP/1.1',
      HOST + 'Transfer-Encoding: gzip, chunked\r\nContent-Type: application/json\r\n',
      `2\r\n{}\r\n0\r\n\r\n${SMUGGLED}`,
    ),
    refused(elsewhere(CODING_NOT_SUPPORTED)),
  ],
  'A04 gzip and chunked': [coded('Transfer-Encoding: gzip, chunked'), UNSUPPORTED],
  'A04 gzip': [coded('Transfer-Encoding: gzip'), UNSUPPORTED],
  'A04 identity': [coded('Transfer-Encoding: identity'), UNSUPPORTED],
  'A05 delete in chunks with a request inside': [
    request('DELETE /v1/echo HTTP/1.1', HEAD + CHUNKED, `2e\r\n${INSIDE}\r\n0\r\n\r\n`),
    served(`DELETE /v1/echo ${INSIDE}`),
  ],
  'A05 get in chunks with a request inside': [
    request('GET /v1/echo HTTP/1.1', HEAD + CHUNKED, `2e\r\n${INSIDE}\r\n0\r\n\r\n`),
    served(`GET /v1/echo ${INSIDE}`),
  ],
  'A05 head in chunks with a request inside': [
    request('HEAD /v1/echo HTTP/1.1', HEAD + CHUNKED, `2e\r\n${INSIDE}\r\n0\r\n\r\n`),
    served(`HEAD /v1/echo ${INSIDE}`),
  ],
  'A05 options in chunks with a request inside': [
    request('OPTIONS /v1/echo HTTP/1.1', HEAD + CHUNKED, `2e\r\n${INSIDE}\r\n0\r\n\r\n`),
    PREFLIGHT,
  ],
  'A05 propfind in chunks with a request inside': [
    request('PROPFIND /v1/echo HTTP/1.1', HEAD + CHUNKED, `2e\r\n${INSIDE}\r\n0\r\n\r\n`),
    served(`PROPFIND /v1/echo ${INSIDE}`),
  ],
  'A06 get with 1001 headers then chunked': [
    request('GET /v1/echo HTTP/1.1', HEAD + 'A: b\r\n'.repeat(1001) + CHUNKED, HELLO + SMUGGLED),
    TOO_LARGE,
  ],
  'A07 credential after 1001 headers': [
    request('GET /v1/models HTTP/1.1', HOST + 'A: b\r\n'.repeat(1001) + TOKEN),
    TOO_LARGE,
  ],
  'A08 101 headers': [models('A: b\r\n'.repeat(99)), TOO_LARGE],
  'A08 15 kb of target': [request(`GET /v1/${'a'.repeat(15_000)} HTTP/1.1`), refused(URI_TOO_LONG)],
  'A08 40 kb of headers': [models(`A: ${'b'.repeat(40_960)}\r\n`), TOO_LARGE],
  'A08 more headers than the parser takes': [models(`A: ${'b'.repeat(50_000)}\r\n`), TOO_LARGE],
  'A08 more target than the parser takes': [
    request(`GET /v1/${'a'.repeat(50_000)} HTTP/1.1`),
    inPieces(refused(URI_TOO_LONG), HEADERS_TOO_LARGE),
  ],
  'A09 control in the target': [request('GET /v1/mod\x01els HTTP/1.1'), REFUSED],
  'A09 cr inside a header': [models('A: b\rC: d\r\n'), REFUSED],
  'A09 del in the target': [request('GET /v1/mod\x7fels HTTP/1.1'), REFUSED],
  'A09 first header indented': [request('GET /v1/models HTTP/1.1', ' Host: llmp.test\r\n' + TOKEN), REFUSED],
  'A09 folded header': [models('A: b\r\n c: d\r\n'), REFUSED],
  'A09 lf before the end of the head': [
    'GET /v1/models HTTP/1.1\r\nHost: llmp.test\r\nAuthorization: Bearer {{token}}\n\r\n',
    REFUSED,
  ],
  'A09 lf for crlf': ['GET /v1/models HTTP/1.1\nHost: llmp.test\nAuthorization: Bearer {{token}}\n\n', REFUSED],
  'A09 lf inside a header': [models('A: b\nC: d\r\n'), REFUSED],
  'A09 name empty': [models(': b\r\n'), REFUSED],
  'A09 name with space': [models('A B: c\r\n'), REFUSED],
  'A09 name without colon': [models('A\r\n'), REFUSED],
  'A09 not ascii in the target': [request('GET /v1/caf\xe9 HTTP/1.1'), REFUSED],
  'A09 nul in a header': [models('A: b\0\r\n'), REFUSED],
  'A09 nul in a name': [models('A\0: b\r\n'), REFUSED],
  'A09 nul in the target': [request('GET /v1/mod\0els HTTP/1.1'), REFUSED],
  'A09 space after the version': [request('GET /v1/models HTTP/1.1 '), REFUSED],
  'A09 space in the target': [request('GET /v1/mod els HTTP/1.1'), REFUSED],
  'A09 tabs in the request line': [request('GET\t/v1/models\tHTTP/1.1'), REFUSED],
  'A10 chunk ended by lf': [chunked('5\r\nhello\n0\r\n\r\n'), BROKEN_OFF],
  'A10 chunk longer than its size': [chunked('5\r\nhello world\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 chunk without crlf': [chunked('5\r\nhello0\r\n\r\n'), BROKEN_OFF],
  'A10 control in extension': [chunked('5;a=\x01\r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 crlf in quoted extension': [chunked('5;a="\r\n"\r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 extension empty': [chunked('5;\r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 extensions': [echo(CHUNKED, '4;a=b;c="d"\r\ngood\r\n0;e\r\n\r\n'), served('POST /v1/echo good')],
  'A10 last chunk of many zeros': [echo(CHUNKED, '4\r\ngood\r\n00000000\r\n\r\n'), served('POST /v1/echo good')],
  'A10 lf in extension': [chunked('5;a\nb\r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 size beyond 64 bits': [chunked('10000000000000005\r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 size empty': [chunked('\r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 size ended by cr cr lf': [chunked('5\r\r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 size ended by lf': [chunked('5\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 size negative': [chunked('-5\r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 size not hexadecimal': [chunked('zz\r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 size with 0x': [chunked('0x5\r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 size with space after it': [chunked('5 \r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 size with space before it': [chunked(' 5\r\nhello\r\n0\r\n\r\n'), BROKEN_OFF],
  'A10 trailer with a coding': [chunked('0\r\nTransfer-Encoding: chunked\r\n\r\n'), BROKEN_OFF],
  'A10 trailer with a length': [chunked('0\r\nContent-Length: 5\r\n\r\n'), BROKEN_OFF],
  'A10 trailer without colon': [chunked('0\r\ntrailer\r\n\r\n'), BROKEN_OFF],
  'A10 trailers': [
    echo(
      'Transfer-Encoding: chunked\r\nTrailer: X-After\r\n',
      '4\r\ngood\r\n0\r\nX-After: a\r\nAuthorization: Bearer other\r\n\r\n',
    ),
    served('POST /v1/echo good'),
  ],
  'A11 extension of 17 kb': [echo(CHUNKED, `4\r\ngood\r\n5;${'a'.repeat(17_408)}\r\nhello\r\n0\r\n\r\n`), BROKEN_OFF],
  'A12 second credential after the token': [models('Authorization: Bearer other\r\n'), REFUSED],
  'A12 second credential before the token': [
    request('GET /v1/models HTTP/1.1', 'Host: llmp.test\r\nauthorization: Bearer other\r\n' + TOKEN),
    REFUSED,
  ],
  'A13 host with list': [hosted('llmp.test, evil.example'), REFUSED],
  'A13 host with path': [hosted('llmp.test/v1'), REFUSED],
  'A13 host with space': [hosted('llmp.test evil.example'), REFUSED],
  'A13 host with user': [hosted('user@llmp.test'), REFUSED],
  'A13 host with wrong port': [hosted('llmp.test:port'), REFUSED],
  'A13 no host to manage': [request('GET /manage/projects HTTP/1.1', ''), refused(elsewhere(MALFORMED))],
  'A13 no host': [request('GET /v1/models HTTP/1.1', TOKEN), REFUSED],
  'A13 two hosts to a probe': [
    request('GET /live HTTP/1.1', HOST + 'Host: evil.example\r\n'),
    refused(elsewhere(MALFORMED)),
  ],
  'A13 two hosts': [models('Host: evil.example\r\n'), REFUSED],
  'A14 hello of tls': [
    '\x16\x03\x01\0\xc2\x01\0\0\xbe\x03\x03\0\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\0\0\x16\x13\x02\x13\x03\xc0+\xc0/\xc0,\xc00\xcc\xa9\xcc\xa8\xc0\x13\xc0\x14\0\x9c\0\x9d\x01\0\0\x81',
    REFUSED,
  ],
  'A14 http 0.9': [request('GET /v1/models HTTP/0.9'), refused(VERSION_NOT_SUPPORTED)],
  'A14 http 1.01': [request('GET /v1/models HTTP/1.01'), REFUSED],
  'A14 http 1.2': [request('GET /v1/models HTTP/1.2'), inPieces(refused(VERSION_NOT_SUPPORTED), MALFORMED)],
  'A14 http 2.0 to a probe': [request('GET /live HTTP/2.0', HOST), refused(elsewhere(VERSION_NOT_SUPPORTED))],
  'A14 http 2.0': [request('GET /v1/models HTTP/2.0'), refused(VERSION_NOT_SUPPORTED)],
  'A14 http 3': [request('GET /v1/models HTTP/3'), REFUSED],
  'A14 no version alone': [request('GET /v1/models', ''), refused(VERSION_NOT_SUPPORTED)],
  'A14 no version': [request('GET /v1/models'), refused(VERSION_NOT_SUPPORTED)],
  'A14 preface of http 2': [
    request('PRI * HTTP/2.0', '', 'SM\r\n\r\n\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0d\0\x04@\0\0\0\0\x02\0\0\0\0'),
    REFUSED,
  ],
  'A14 rtsp': [request('GET /v1/models RTSP/1.0') + SMUGGLED, last(served('GET /v1/models '))],
  'A15 http 1.0 in chunks': [request('POST /v1/echo HTTP/1.0', TOKEN + CHUNKED, HELLO + SMUGGLED), REFUSED],
  'A15 http 1.0 with a length': [
    request('POST /v1/echo HTTP/1.0', TOKEN + LENGTH, 'hello'),
    last(served('POST /v1/echo hello')),
  ],
  'A15 http 1.0 with keep alive': [
    request('GET /v1/models HTTP/1.0', TOKEN + 'Connection: keep-alive\r\n', SMUGGLED),
    last(served('GET /v1/models ')),
  ],
  'A15 http 1.0': [request('GET /v1/models HTTP/1.0', TOKEN), last(served('GET /v1/models '))],
  'A16 three pipelined requests': [
    models() + echo(LENGTH, 'hello') + request('DELETE /v1/files/1 HTTP/1.1'),
    served('GET /v1/models ', 'POST /v1/echo hello', 'DELETE /v1/files/1 '),
  ],
  'A17 request after connection close': [models('Connection: close\r\n') + SMUGGLED, last(served('GET /v1/models '))],
  'A18 garbage after a request': [`${models()}\0\0\0 garbage`, thenRefused(served('GET /v1/models '), MALFORMED)],
  'A18 more body than declared': [
    echo(LENGTH, `hello world${SMUGGLED}`),
    thenRefused(served('POST /v1/echo hello'), MALFORMED),
  ],
  'A23 absolute target': [
    request('GET http://evil.example/v1/models HTTP/1.1', 'Host: evil.example\r\n' + TOKEN),
    REFUSED,
  ],
  'A24 absolute target to manage': [request('GET http://llmp.test/manage/projects HTTP/1.1', HOST), REFUSED],
  'A26 target of a connect': [request('GET llmp.test:80 HTTP/1.1'), REFUSED],
  'A28 connect to v1': [request('CONNECT /v1/models HTTP/1.1'), refused(METHOD_NOT_ALLOWED)],
  'A28 connect with a request inside': [
    request('CONNECT evil.example:443 HTTP/1.1', 'Host: evil.example\r\n' + TOKEN, SMUGGLED),
    refused(METHOD_NOT_ALLOWED),
  ],
  'A29 trace': [request('TRACE /v1/models HTTP/1.1', HEAD + 'Cookie: secret=1\r\n'), open(refused(METHOD_NOT_ALLOWED))],
  'A31 method empty': [request(' /v1/models HTTP/1.1'), REFUSED],
  'A31 method in lower case': [request('get /v1/models HTTP/1.1'), REFUSED],
  'A31 method unknown': [request('FOO /v1/models HTTP/1.1'), REFUSED],
  'A34 names that could be read as others': [
    echo(
      'Content_Length: 500\r\nTransfer_Encoding: chunked\r\nX_Forwarded_For: 1.2.3.4\r\n__proto__: x\r\nconstructor: x\r\nprototype: x\r\nContent-Length: 5\r\n',
      'hello',
    ),
    served('POST /v1/echo hello'),
  ],
  'A35 delete with a length': [
    request('DELETE /v1/echo HTTP/1.1', HEAD + LENGTH, 'hello'),
    served('DELETE /v1/echo hello'),
  ],
  'A35 get with a length': [request('GET /v1/echo HTTP/1.1', HEAD + LENGTH, 'hello'), served('GET /v1/echo hello')],
  'A35 get with length 0': [request('GET /v1/echo HTTP/1.1', HEAD + 'Content-Length: 0\r\n'), served('GET /v1/echo ')],
  'A35 head with a length': [request('HEAD /v1/echo HTTP/1.1', HEAD + LENGTH, 'hello'), served('HEAD /v1/echo hello')],
  'A35 options with a length': [request('OPTIONS /v1/echo HTTP/1.1', HEAD + LENGTH, 'hello'), PREFLIGHT],
  'A35 post without a length': [echo(), served('POST /v1/echo ')],
  'A37 empty lines before a request': [`\r\n\r\n\r\n${models()}`, served('GET /v1/models ')],
  'A37 empty lines between requests': [`${models()}\r\n\r\n${models()}`, served('GET /v1/models ', 'GET /v1/models ')],
  'A38 second request with a broken chunk': [
    models() + echo(CHUNKED, '4\r\ngood\r\nzz\r\n'),
    thenBrokenOff(served('GET /v1/models ')),
  ],
  'A38 secret after letters in the target': [
    request('GET /v1/models{{token}} HTTP/1.1', HOST),
    open(refused(CREDENTIAL_IN_URL)),
  ],
};

export interface CorpusRequest {
  title: string;
  text: string;
}

export const CORPUS: readonly (CorpusRequest & { outcome: Outcome })[] = Object.entries(REQUESTS).map(
  ([title, [text, outcome]]) => ({ title, text, outcome }),
);

export const withSecret = (text: string, secret: string) => Buffer.from(text.replaceAll('{{token}}', secret), 'latin1');
