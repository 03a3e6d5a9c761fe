/**
 * Parsers of untrusted bytes: from clients, providers, Redis and files.
 *
 * Each parser must meet two limits. Its time is linear in its input, so that one request cannot block the daemon; and it takes at most 20
 * ms of a turn of the event loop for the largest input that its caller accepts, so that other requests do not wait. Each is tested with
 * its worst cases. Add new parsers of untrusted bytes to this table.
 */
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { BodyCapture } from '../../../daemon/core/content/body-capture.js';
import { modelNameFrom, maskedModelName } from '../../../daemon/core/content/facts.js';
import { CompressedData } from '../../../daemon/core/content/compressed-data.js';
import { DecodingBudget } from '../../../daemon/core/content/decoding-budget.js';
import { JsonScanner } from '../../../daemon/core/content/json-scanner.js';
import { BODY_MEMBERS, EVENT_MEMBERS } from '../../../daemon/core/content/response-members.js';
import { StreamedMessage } from '../../../daemon/core/content/streamed-message.js';
import { RequestedModel } from '../../../daemon/core/content/requested-model.js';
import { ClientMessages } from '../../../daemon/core/content/client-messages.js';
import { ProviderMessages } from '../../../daemon/core/content/provider-messages.js';
import { EventStreamReader } from '../../../daemon/core/content/event-stream-reader.js';
import { directivesOf } from '../../../daemon/core/cache/cache-control.js';
import { isNotModified, storagePolicyOf } from '../../../daemon/core/cache/caching.js';
import { fieldsOf } from '../../../daemon/core/cache/field-values.js';
import { httpDateMs } from '../../../daemon/core/cache/http-date.js';
import { holdsSecret, withoutSecrets } from '../../../daemon/core/masking.js';
import { unauthorized } from '../../../daemon/core/refusal.js';
import { pathWithoutSecrets } from '../../../daemon/core/token-in-text.js';
import { requestDirectivesOf } from '../../../daemon/core/cache/request-directives.js';
import { cookiesOf } from '../../../daemon/admin/sessions.js';
import { EventStreamParser } from '../../../daemon/api/event-stream.js';
import * as schemas from '../../../daemon/api/schemas.js';
import { deliveryOf } from '../../../daemon/dispatcher/stream.js';
import { addressesBehind } from '../../../daemon/http/client-identity.js';
import { preflightFields } from '../../../daemon/http/cors.js';
import { openDecoder } from '../../../daemon/http/proxy/decoding.js';
import { EventBoundary } from '../../../daemon/http/proxy/termination-notice.js';
import { FrameReader } from '../../../daemon/http/proxy/websocket-frames.js';
import { bearerOf, checkNoCredentialIn, requestIdOf, subprotocolsOf } from '../../../daemon/http/client-identity.js';
import {
  isNormalizedTarget,
  MAX_HEADER_BYTES,
  MAX_TARGET_LENGTH,
  readFields,
  withoutTokens,
} from '../../../daemon/http/request-head.js';
import { clientResponseHeaders } from '../../../daemon/http/proxy/headers.js';
import { ambiguityIn } from '../../../daemon/http/json-text.js';
import { pageRequest } from '../../../daemon/http/manage/paging.js';
import { tokenFilter } from '../../../daemon/http/manage/wire.js';
import { wordingFor } from '../../../daemon/http/wording.js';
import { maskText } from '../../../daemon/process/log.js';
import { UseFields } from '../../../daemon/store/audit-file/fields.js';
import { linkOf } from '../../../daemon/store/audit-file/chain.js';
import { eventText } from '../../../daemon/store/event-text.js';
import { wordsIn } from '../../../daemon/store/sql/audit-words.js';
import { SOME_REQUEST } from '../../support/request-follower.js';

function readFrames(frames: FrameReader, piece: Buffer): void {
  for (let at = 0; at < piece.length && !frames.isMalformed;) at = frames.read(piece, at);
}

const MB = 1024 * 1024;
const KB = 1024;
/** Twice the limit, since the machine may do something else too. On one that needs longer for the reference work: in proportion. */
const MOST_MS = 2 * 20;
const REFERENCE_MS = 3;
/** Growth of the time for twice the input. Quadratic time would give 4. */
const MOST_GROWTH = 3;
// Shorter times are too inexact to compare; a quadratic parser is far above this.
const LEAST_COMPARED_MS = 12;
const MOST_RUNS = 10;
const PARTS = 8;

interface Reader<T> {
  /** Largest input that its caller accepts, in characters or bytes; 1 MB if there is no limit. */
  most: number;
  /** Inputs of a given size. */
  worst: Record<string, (size: number) => T>;
  read: (input: T) => unknown;
  /** Called often, or in a process that serves no requests: only the growth of its time is limited. */
  isInTurns?: boolean;
}

const filled = (unit: string, size: number) => unit.repeat(Math.ceil(size / unit.length)).slice(0, size);
const bytes = (text: string) => Buffer.from(text, 'latin1');
const CHUNK = 64 * KB; // Size of one read from a socket.

const TEXTS: Record<string, (size: number) => string> = {
  'the beginning of a secret': (size) => filled('sk-', size),
  'beginnings of secrets that are too short': (size) => filled('sk-wt-a sk-proj-b AIza gsk_ ', size),
  'one secret': (size) => `sk-${filled('a', size)}`,
  'beginnings of other keys': (size) => filled('AIzagsk_xai-hf_r8_pplx-', size),
  spaces: (size) => filled(' ', size),
  dashes: (size) => filled('-', size),
  'passwords in connection strings': (size) => filled('://a:b', size),
  colons: (size) => `://${filled(':', size)}`,
  'a password without an end': (size) => `://a:${filled('b', size)}`,
  schemes: (size) => filled('bearer basic password=', size),
};
const VALUES: Record<string, (size: number) => string> = {
  commas: (size) => filled(',', size),
  spaces: (size) => `a${filled(' ', size)}`,
  'spaces after names': (size) => filled('a  ', size),
  quotes: (size) => filled('"', size),
  'quotes with a name': (size) => filled('a="', size),
  'a quote without an end': (size) => `a="${filled('b,', size)}`,
  backslashes: (size) => `a="${filled('\\', size)}`,
  'escaped quotes': (size) => filled('a="\\"', size),
  'weak tags': (size) => filled('W/"', size),
  dots: (size) => filled('1.', size),
  semicolons: (size) => filled(';=', size),
  digits: (size) => filled('9', size),
};
// Each begins like a token in base64; other text is skipped immediately.
const TOKENS: Record<string, (size: number) => string> = {
  'runs of base64 that are too short': (size) => filled('c2std3Qt ', 9) + filled(`${'a'.repeat(72)} `, size - 9),
  'runs of base64': (size) => filled('c2std3Qt ', 9) + filled(`${'a'.repeat(73)} `, size - 9),
  'one run of base64': (size) => filled('c2std3Qt', 8) + filled('a', size - 8),
  'the same, percent-encoded': (size) => filled('c2std3Qt', 8) + filled('%61', size - 8),
  'the same, percent-encoded three times': (size) => filled('c2std3Qt', 8) + filled('%25252561', size - 8),
  'tokens that are too short': (size) => filled(`sk-wt-${'a'.repeat(48)}-`, size),
  'percent signs': (size) => filled('sk-wt-%', size),
  parameters: (size) => filled('%61=b&', size),
};
const FORMS: Record<string, (size: number) => Buffer> = {
  'the name repeated': (size) => bytes(`--b\r\n${filled('content-disposition:;name="model"\r\n', size - 8)}\r\n`),
  'lines of a header without an end': (size) =>
    bytes(`--b\r\ncontent-disposition: form-data; name="model"${filled('\r\na', size)}`),
  'one long line': (size) => bytes(`--b\r\ncontent-disposition:${filled('; name="model"', size)}`),
  delimiters: (size) => bytes(filled('--b\r\n', size)),
  'empty parts': (size) => bytes(filled('--b\r\n\r\n\r\n', size)),
  'beginnings of delimiters': (size) => bytes(`--${'a'.repeat(100)}\r\n\r\n${filled(`\r\n--${'a'.repeat(99)}`, size)}`),
  'line ends': (size) => bytes(`--${'\r'.repeat(50)}\r\n\r\n${filled('\r', size)}`),
  dashes: (size) => bytes(`--b\r\n\r\n${filled('-', size)}`),
};
const JSONS: Record<string, (size: number) => Buffer> = {
  'the member after everything that can be parsed': (size) =>
    bytes(`{"a":[${filled('1,', size - 400)}"${'"model":"x",'.repeat(20)}`),
  'the member in strings': (size) => bytes(`{${filled('"a":"b","c":[{"model":"x","usage":{}}],', size - 2)}}`),
  'the member in each element': (size) => bytes(`[${filled('{"model":"x","usage":{"a":1}},', size)}`),
  'the member outside of an object': (size) => bytes(filled('"model":"x"', size)),
  'members without a value': (size) => bytes(filled('"model"', size)),
  'space after the member': (size) => bytes(`{${filled(`"model"${' '.repeat(100)}`, size)}`),
  space: (size) => bytes(`{"model"${filled(' ', size)}`),
  'a string without an end': (size) => bytes(`{"model":"${filled('\\"', size)}`),
  'nested objects': (size) => bytes(`${filled('{"model":', size)}1`),
  'nested arrays': (size) => bytes(`{"model":"x","usage":${filled('[', size)}`),
  quotes: (size) => bytes(`{${filled('"', size)}`),
  'members with an invalid end': (size) => bytes(`{${filled('"usage":{},', size)}`),
};
const EVENTS: Record<string, (size: number) => Buffer> = {
  'empty lines': (size) => bytes(filled('\n', size)),
  'line ends with CR only': (size) => bytes(filled('\r', size)),
  'events without data': (size) => bytes(filled('data:\n\n', size)),
  comments: (size) => bytes(filled(':\n\n', size)),
  'small events': (size) => bytes(filled('data:1\n\n', size)),
  'lines of data': (size) => bytes(filled('data:1\n', size)),
  'an event without an end': (size) => bytes(filled('data: {"usage": 1,', size)),
  'invalid usage': (size) => bytes(filled('data: {"usage": null}\n\n', size)),
  usage: (size) => bytes(filled('data: {"usage": {"prompt_tokens": 1}}\n\n', size)),
  'usage everywhere': (size) => bytes(filled('data: {"usage": {"usage": {"usage": {"usage": {"usage":{\n\n', size)),
  'usage of Anthropic': (size) =>
    bytes(filled('data: {"message": {"usage": {"input_tokens": 1, "output_tokens": 1}}}\n\n', size)),
  'names that begin like usage': (size) => bytes(filled('data: {"usageMetadat":{"usage":{"usageX"\n\n', size)),
  models: (size) => bytes(filled('data: {"a":{"model":"m"},"b":{"model":"m"}}\n\n', size)),
};
const deltas = (unit: string) => (size: number) =>
  Array.from({ length: size / 100 }, () =>
    bytes(JSON.stringify({ choices: [{ index: 0, delta: { content: unit } }] })),
  );

const NO_LIMIT = { httpCacheDefaultTtlSeconds: 1, httpCacheDefaultTtlPaths: [], httpCacheMaxObjectBytes: MB };
const headers = (name: string, value: string) => fieldsOf([name, value]);
const request = (fields: Record<string, string>) => ({ headers: fields }) as never;
const many = (name: string, value: string) =>
  Array.from({ length: 100 }, (_, n) => [
    name,
    value.slice((n * value.length) / 100, ((n + 1) * value.length) / 100),
  ]).flat();

const capture = (text: Buffer, type: string) => {
  const captured = new BodyCapture(MB);
  const context = { isServed: true, requestType: () => type, upstreamKey: 'sk-upstream-key' };
  captured.responseStarted(type);
  captured.chunk(text);
  return [captured.requestBody(text, text.length, context), captured.responseBody(context)];
};

function requestedModel(body: Buffer | null, target?: string): string | null {
  const requested = new RequestedModel(null);
  if (body) requested.whole(body);
  return requested.name(target);
}

function allBy<T>(reader: Reader<T>) {
  return reader as Reader<unknown>;
}

const READERS: Record<string, Reader<unknown>> = {
  'the model in a form': allBy({ most: MB, worst: FORMS, read: (body) => requestedModel(body) }),
  'the model in a request': allBy({
    most: MB,
    worst: JSONS,
    read: (body) => requestedModel(body),
  }),
  'the members of a response': allBy({
    most: MB,
    worst: JSONS,
    read: (body) => {
      const scanner = new JsonScanner(BODY_MEMBERS.wanted);
      scanner.scan(body);
      return [BODY_MEMBERS.usageIn(scanner), BODY_MEMBERS.modelIn(scanner), BODY_MEMBERS.errorIn(scanner)];
    },
  }),
  'the members of an event': allBy({
    most: 64 * KB,
    worst: JSONS,
    read: (body) => {
      new JsonScanner(EVENT_MEMBERS.wanted).scan(body);
    },
  }),
  'a response, byte by byte': allBy({
    most: MB,
    worst: JSONS,
    isInTurns: true,
    read: (body) => {
      const scanner = new JsonScanner(BODY_MEMBERS.wanted);
      for (let at = 0; at < body.length; at++) scanner.scan(body, at, at + 1);
    },
  }),
  'a compressed response': allBy({
    most: CHUNK,
    worst: EVENTS,
    read: (body) => {
      const budget = new DecodingBudget({ monotonic: () => 0 });
      const reader = new EventStreamReader(null);
      const data = new CompressedData({ budget, open: openDecoder, projectId: 'p' }, 'gzip', (slice) => {
        reader.chunk(slice);
      });
      data.add(gzipSync(Buffer.concat(Array.from({ length: 32 }, () => body))));
      data.end();
    },
  }),
  'the model in a path': allBy({
    most: MAX_HEADER_BYTES,
    worst: { ...VALUES, names: (size) => filled('/models/a', size) },
    read: (target) => requestedModel(null, target),
  }),
  'the name of a model': allBy({
    most: MB,
    worst: { ...TEXTS, ...VALUES },
    read: (text) => [
      modelNameFrom(text),
      modelNameFrom(text.slice(0, 400)),
      maskedModelName(text.slice(0, 400), 'key'),
    ],
  }),
  'a chunk of an event stream': allBy({
    most: CHUNK,
    worst: EVENTS,
    read: (piece) => {
      const reader = new EventStreamReader(null);
      reader.chunk(piece);
      reader.end();
    },
  }),
  'a complete event stream': allBy({
    most: MB,
    worst: EVENTS,
    isInTurns: true,
    read: (body) => {
      const reader = new EventStreamReader(null);
      for (let at = 0; at < body.length; at += 1000) reader.chunk(body.subarray(at, at + 1000));
      reader.end();
    },
  }),
  'a chunk of a captured event stream': allBy({
    most: CHUNK,
    worst: EVENTS,
    read: (piece) => {
      const message = new StreamedMessage(MB);
      const reader = new EventStreamReader((data) => {
        message.event(data);
      });
      reader.chunk(piece);
      reader.end();
      return message.assembled();
    },
  }),
  'frames of a WebSocket from a client': allBy({
    most: CHUNK,
    worst: {
      'empty frames': (size) => bytes(filled('\x81\x80\x00\x00\x00\x00', size)),
      requests: (size) => bytes(filled('\x81\x9a\x00\x00\x00\x00{"type":"response.create"}', size)),
      'escaped keys': (size) =>
        bytes(`\x81\xff\0\0\0\0\0\x0f\xff\xff\0\0\0\0{${filled('"\\u0074\\u0079\\u0070\\u0065":1,', size)}`),
      'repeated keys': (size) => bytes(`\x81\xff\0\0\0\0\0\x0f\xff\xff\0\0\0\0{${filled('"type":"a",', size)}`),
      pings: (size) => bytes(filled('\x89\x80\x00\x00\x00\x00', size)),
    },
    read: (piece) => {
      readFrames(new FrameReader(true, new ClientMessages()), piece);
    },
  }),
  'frames of a WebSocket from a provider': allBy({
    most: CHUNK,
    worst: {
      'empty frames': (size) => bytes(filled('\x81\x00', size)),
      'responses without usage': (size) => bytes(filled('\x81\x20{"usage":{,"usage":{"response.done"', size)),
      'large ones': (size) => bytes(filled(`\x81\x7e\x0f\xff"response.done"${'{"usage":'.repeat(453)}   `, size)),
      pings: (size) => bytes(filled('\x89\x00', size)),
    },
    read: (piece) => {
      readFrames(new FrameReader(false, new ProviderMessages(() => undefined)), piece);
    },
  }),
  'the parts of a message': allBy({
    most: 4 * MB,
    worst: { 'of one character': deltas('a'), 'of several': deltas('abcdefgh') },
    isInTurns: true,
    read: (events) => {
      const message = new StreamedMessage(MB);
      for (const event of events) message.event(event);
      return message.assembled();
    },
  }),
  'a captured body': allBy({
    most: MB,
    worst: TEXTS,
    read: (text) => capture(bytes(text), 'text/plain'),
  }),
  // Large enough that an eighth of it exceeds the default of OBSERVABILITY_MAX_BODY_BYTES and must be truncated too, since truncation
  // adds a step in the time.
  'the event of a captured body': allBy({
    most: MB,
    worst: {
      ...TEXTS,
      quotes: (size) => filled('"', size),
      'control characters': (size) => filled('\u0001', size),
      'half pairs': (size) => filled('\ud800', size),
    },
    read: (text) =>
      eventText({ kind: 'request', ended: { ...SOME_REQUEST, requestBody: text, responseBody: text } }, 'i'),
  }),
  'the audit line of a use': allBy({
    most: MAX_TARGET_LENGTH,
    worst: { ...TEXTS, 'control characters': (size) => filled('\u0001', size) },
    read: (path) => new UseFields().of({ ...SOME_REQUEST, path, model: path }).join(''),
  }),
  'secrets in a text': allBy({ most: MB, worst: TEXTS, read: (text) => [withoutSecrets(text), holdsSecret(text)] }),
  // Error texts of upstreams and libraries. A body is never logged, and a header is far smaller.
  'a text that is logged': allBy({ most: 256 * KB, worst: TEXTS, read: maskText }),
  'a target': allBy({
    most: MAX_TARGET_LENGTH,
    worst: {
      dots: (size) => `/v1/${filled('.', size - 4)}`,
      'segments of dots': (size) => `/v1${filled('/..;', size - 3)}`,
      'encoded dots': (size) => `/v1/${filled('%2e', size - 4)}`,
      slashes: (size) => `/v1${filled('/a', size - 3)}`,
      'a name': (size) => `/v1/${filled('a', size - 5)}!`,
      'percent signs': (size) => `/v1/${filled('%25', size - 4)}`,
      semicolons: (size) => `/v1/${filled(';', size - 4)}`,
    },
    read: isNormalizedTarget,
  }),
  'credentials in a target': allBy({
    most: MAX_TARGET_LENGTH,
    worst: { ...TOKENS, ...VALUES },
    read: (text) => {
      checkNoCredentialIn(`/v1/${text}`);
      checkNoCredentialIn(`/v1/a?${text}`);
      return pathWithoutSecrets(text);
    },
  }),
  'tokens in the headers of a request': allBy({
    most: MAX_HEADER_BYTES,
    worst: { ...TOKENS, ...VALUES },
    read: (value) => [withoutTokens(readFields(['a', value])), withoutTokens(readFields(many('a', value)))],
  }),
  'the texts of a refusal': allBy({
    most: MAX_HEADER_BYTES,
    worst: { ...TOKENS, ...VALUES, 'names of programs': (size) => filled(' ai-sd codex litell', size) },
    read: (value) =>
      ['a', 'Authorization', 'User-Agent', 'Sec-WebSocket-Protocol'].flatMap((name) =>
        [[name, value], many(name, value), many(value.slice(0, 100), name)].map((rawHeaders) =>
          wordingFor(unauthorized(), { rawHeaders, headers: { [name.toLowerCase()]: value } } as never, {
            errorShape: 'auto',
          }),
        ),
      ),
  }),
  'the headers of a request': allBy({
    most: MAX_HEADER_BYTES,
    worst: VALUES,
    read: (value) =>
      ['Connection', 'Cache-Control', 'CDN-Loop', 'X-Forwarded-For', 'Transfer-Encoding', 'X-Request-ID', 'a'].map(
        (name) => [readFields([name, value]), readFields(many(name, value))],
      ),
  }),
  'the headers of a response': allBy({
    most: MAX_HEADER_BYTES,
    worst: VALUES,
    read: (value) =>
      ['Connection', 'Cache-Control', 'Vary', 'Content-Type', 'X-Request-ID', 'a'].map((name) =>
        clientResponseHeaders(many(name, value).map(bytes), {
          status: 200,
          requestId: 'r',
          upstreamKey: 'sk-upstream-key',
          upstreamMs: 1,
          proxyMs: 1,
          expiresAt: 1,
          remaining: null,
          cors: {},
        } as never),
      ),
  }),
  'a credential': allBy({
    most: MAX_HEADER_BYTES,
    worst: VALUES,
    read: (value) => [bearerOf(`Bearer ${value}`), bearerOf(value)],
  }),
  'a request ID': allBy({ most: MAX_HEADER_BYTES, worst: { ...VALUES, ...TEXTS }, read: requestIdOf }),
  subprotocols: allBy({ most: MAX_HEADER_BYTES, worst: VALUES, read: subprotocolsOf }),
  'forwarded addresses': allBy({
    most: MAX_HEADER_BYTES,
    worst: {
      ...VALUES,
      proxies: (size) => filled('10.0.0.1,', size),
      brackets: (size) => filled('[', size),
      colons: (size) => filled(':', size),
    },
    read: (value) =>
      addressesBehind([{ address: '10.0.0.0', prefix: 8, family: 'ipv4' }])(
        { remoteAddress: '10.0.0.1' } as never,
        value,
      ),
  }),
  'a preflight': allBy({
    most: MAX_HEADER_BYTES,
    worst: VALUES,
    read: (value) =>
      preflightFields(
        { corsAllowedOrigins: ['https://a'] },
        request({ origin: 'https://a', 'access-control-request-headers': value }),
      ),
  }),
  cookies: allBy({ most: MAX_HEADER_BYTES, worst: VALUES, read: (cookie) => cookiesOf(request({ cookie })) }),
  'Cache-Control directives': allBy({ most: MAX_HEADER_BYTES, worst: VALUES, read: directivesOf }),
  'a date': allBy({ most: MAX_HEADER_BYTES, worst: VALUES, read: (date) => httpDateMs(date, 0) }),
  'the cache directives of a request': allBy({
    most: MAX_HEADER_BYTES,
    worst: VALUES,
    read: (value) => [
      requestDirectivesOf({ method: 'GET', hasBody: false, cacheControl: value }, () => headers('pragma', value)),
      requestDirectivesOf({ method: 'GET', hasBody: false, cacheControl: undefined }, () => headers('pragma', value)),
    ],
  }),
  'whether a client already has a response': allBy({
    most: MAX_HEADER_BYTES,
    worst: VALUES,
    read: (value) =>
      isNotModified(
        { ifNoneMatch: value, ifModifiedSince: value },
        {
          status: 200,
          headers: ['etag', '"x"', 'last-modified', value],
        } as never,
        0,
      ),
  }),
  'the lifetime of a stored response': allBy({
    most: MAX_HEADER_BYTES,
    worst: VALUES,
    read: (value) =>
      ['cache-control', 'vary', 'age', 'expires', 'pragma', 'date', 'content-length'].map((name) =>
        storagePolicyOf(
          { method: 'GET', path: '/v1/a', isOptedIn: true },
          { status: 200, fields: headers(name, value), isFramed: true },
          NO_LIMIT,
          0,
        ),
      ),
  }),
  'a JSON body of the management API': allBy({
    most: 64 * KB,
    worst: { ...TEXTS, ...VALUES },
    read: (text) => [
      schemas.projectCreate.safeParse({ name: text, api_key: text }),
      schemas.tokenCreate.safeParse({ project_id: text, name: text }),
      schemas.tokenLookup.safeParse({ token: text }),
      schemas.cachePurge.safeParse({ method: 'GET', url: text }),
      schemas.sessionCreate.safeParse({ token: text }),
    ],
  }),
  'a JSON body of many members': allBy({
    most: 64 * KB,
    worst: { 'unknown ones': (size) => `{${Array.from({ length: size / 10 }, (_, n) => `"${n}":1`).join()}}` },
    read: (text) => [schemas.tokenPatch, schemas.tokenCreate].map((it) => it.safeParse(JSON.parse(text))),
  }),
  'ambiguities in JSON': allBy({
    most: 64 * KB,
    worst: {
      names: (size) => `{${Array.from({ length: size / 10 }, (_, n) => `"${n}":1`).join()}}`,
      arrays: (size) => `${'['.repeat(size / 2)}${']'.repeat(size / 2)}`,
      objects: (size) => `${'{"a":'.repeat(size / 6)}1${'}'.repeat(size / 6)}`,
      'escaped quotes': (size) => `"${filled('\\"', size)}"`,
      digits: (size) => filled('9', size),
      zeros: (size) => `1${filled('0', size)}`,
      exponents: (size) => `[${filled('1e-9,', size - (size % 5))}1]`,
    },
    read: ambiguityIn,
  }),
  'message boundaries': allBy({
    most: CHUNK,
    worst: {
      'line ends': (size) => bytes(filled('\n', size)),
      'empty frames': (size) => bytes(filled('\x81\x00', size)),
      'the largest heads': (size) => bytes(filled(`\x81\xff${'\0'.repeat(12)}`, size)),
    },
    read: (piece) => {
      const events = new EventBoundary();
      for (let at = 0; at < piece.length; at += 1) events.read(piece.subarray(at, at + 1));
    },
  }),
  'a query of the management API': allBy({
    most: 16 * KB,
    worst: {
      ...VALUES,
      words: (size) => filled('"a b" ', size),
      'words and quotes': (size) => filled('!"a', size),
      projects: (size) => filled('a,', size),
    },
    read: (text) => [
      schemas.tokenQuery.safeParse({ words: text, project_id: text, q: text, cursor: text, expires_after: text }),
      schemas.usageQuery.safeParse({ by: text, since: text }),
      schemas.eventQuery.safeParse({ status: text }),
      schemas.auditQuery.safeParse({ q: text, cursor: text }),
      tokenFilter({ words: text, active_only: false } as never),
    ],
  }),
  'a cursor': allBy({
    most: 1000,
    worst: { ...VALUES, arrays: (size) => Buffer.from(filled('[', size)).toString('base64url').slice(0, size) },
    read: (cursor) => {
      try {
        return pageRequest('/a', { limit: 1, cursor });
      } catch {
        return null;
      }
    },
  }),
  'a form of the Admin UI': allBy({
    most: 64 * KB,
    worst: {
      fields: (size) => filled('a=b&', size),
      signs: (size) => filled('%', size),
      spaces: (size) => filled('+', size),
    },
    read: (text) => new URLSearchParams(text).get('b'),
  }),
  // A reason has up to 500 characters. Unicode normalization takes quadratic time for marks without a letter.
  'words of the audit log': allBy({
    most: KB,
    worst: { ...TEXTS, ...VALUES, marks: (size) => filled('\u0315\u0300', size) },
    read: wordsIn,
  }),
  'a line of the audit file': allBy({ most: 256 * KB, worst: JSONS, read: linkOf, isInTurns: true }),
  'an entry of the event stream': allBy({
    most: 512 * KB,
    worst: JSONS,
    isInTurns: true,
    read: (json) => deliveryOf(['event', json.toString()]),
  }),
  'events of a daemon, in small chunks': allBy({
    most: MB,
    worst: {
      'a line without an end': (size) => filled('a', size),
      lines: (size) => filled('data: a\n', size),
      'line ends': (size) => filled('\r', size),
    },
    isInTurns: true,
    read: (text) => {
      const parser = new EventStreamParser();
      for (let at = 0; at < text.length; at += 100) parser.push(text.slice(at, at + 100));
    },
  }),
};

interface Measured {
  /** On the machine of `REFERENCE_MS`. */
  ms: number;
  /** Growth of the time with each doubling from an eighth of the input to all of it. */
  growth: number;
}

/** CPU time, so that other processes on a busy machine do not count. */
function cpuMs(read: () => unknown): number {
  const begun = process.cpuUsage();
  read();
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000;
}

const REFERENCE_TEXT = filled('sk-wt-a sk-proj-b AIza gsk_ ', MB);
const REFERENCE_BYTES = bytes(REFERENCE_TEXT);

/** What the readers do, in a megabyte: to look at each byte, and to search a text. Nothing of this project is part of it. */
function referenceWork(): number {
  let sum = 0;
  for (const byte of REFERENCE_BYTES) sum = (sum * 31 + byte) | 0;
  return sum + REFERENCE_TEXT.replace(/[a-z]+_/g, 'x').length;
}

/** How much slower than the machine of `REFERENCE_MS` this one is now, with whatever else it does; at least 1. */
function slowness(): number {
  const ms = Array.from({ length: 3 }, () => cpuMs(referenceWork));
  return Math.max(1, Math.min(...ms) / REFERENCE_MS);
}

/** The fastest of a few runs, or of more while that is too slow: compilation and garbage collection take time too. */
function measured<T>(
  { most, read }: Reader<T>,
  inputOf: (size: number) => T,
  suffices: (it: Measured) => boolean,
): Measured {
  const input = inputOf(most);
  const part = inputOf(most / PARTS);
  let ms = Infinity;
  let scaledMs = Infinity;
  let partMs = Infinity;
  let growth = 1;
  for (let run = 0; run < MOST_RUNS; run++) {
    const runMs = cpuMs(() => read(input));
    ms = Math.min(ms, runMs);
    scaledMs = Math.min(scaledMs, runMs < MOST_MS ? runMs : runMs / slowness());
    // Repeated to the size of the whole input, so that memory use and garbage collection are comparable.
    if (ms >= LEAST_COMPARED_MS) {
      const allParts = () => {
        for (let i = 0; i < PARTS; i++) read(part);
      };
      partMs = Math.min(partMs, cpuMs(allParts) / PARTS);
    }
    growth = ms < LEAST_COMPARED_MS ? 1 : (ms / partMs) ** (1 / Math.log2(PARTS));
    if (suffices({ ms: scaledMs, growth })) break;
  }
  return { ms: scaledMs, growth };
}

describe('untrusted input cannot block the daemon', function () {
  this.timeout(60_000);

  for (const [what, reader] of Object.entries(READERS)) {
    it(`with ${what}`, () => {
      for (const [name, inputOf] of Object.entries(reader.worst)) {
        const mostMs = reader.isInTurns ? Infinity : MOST_MS;
        const { ms, growth } = measured(reader, inputOf, (it) => it.ms < mostMs && it.growth < MOST_GROWTH);
        expect(ms, `${name}: ms`).to.be.below(mostMs);
        expect(growth, `${name}: growth of the time with twice the input`).to.be.below(MOST_GROWTH);
      }
    });
  }
});
