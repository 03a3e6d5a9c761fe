/**
 * The rules of RFC 9110 and 9111 for a cache, as a table: what the upstream sends, two or more requests, and what each gets. The last part
 * has the deviations from what the RFC requires or allows, which README.md explains.
 */
import { expect } from 'chai';
import { TestClock } from '../support/clock.js';
import { type Fields, head } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';

interface Step {
  method?: string;
  target?: string;
  fields?: Fields;
  body?: string;
  /** Seconds that pass before it. */
  after?: number;
  /** The headers that the upstream sends, if it is asked; "v" is incremented with each response. */
  says?: string;
  status?: number;
  /** From the cache; from the upstream; from the cache after a revalidation. */
  gets: 'hit' | 'miss' | 'confirmed' | 'hit 304' | 'miss 304';
}

const MAX_AGE = 'Cache-Control: max-age=100';
const TAGGED = `${MAX_AGE}\r\nETag: "v"`;
const DATE = 'Thu, 01 Jan 2026 00:00:00 GMT';
const again = (gets: Step['gets'] = 'hit', more: Partial<Step> = {}): Step => ({ gets, ...more });
const first = (says: string, more: Partial<Step> = {}): Step => ({ says, gets: 'miss', ...more });

const KEPT: Record<string, Step[]> = {
  'freshness: max-age': [first(MAX_AGE), again('hit', { after: 99 }), again('miss', { after: 1 })],
  'freshness: Age counts': [first(`${MAX_AGE}\r\nAge: 90`), again('hit', { after: 9 }), again('miss', { after: 1 })],
  'freshness: an unknown directive is ignored': [first(`${MAX_AGE}, foo=bar, "baz"`), again()],
  'freshness: must-revalidate while fresh': [first(`${MAX_AGE}, must-revalidate`), again()],
  'freshness: proxy-revalidate while fresh': [first(`${MAX_AGE}, proxy-revalidate`), again()],
  'freshness: must-revalidate once stale': [first(`${MAX_AGE}, must-revalidate`), again('miss', { after: 100 })],
  'freshness: max-age comes before Expires': [first(`${MAX_AGE}\r\nExpires: ${DATE}`), again()],
  'freshness: Expires in the past': [first(`Expires: ${DATE}`), again('miss')],
  'freshness: stale-while-revalidate serves no stale response': [
    first(`${MAX_AGE}, stale-while-revalidate=100`),
    again('miss', { after: 100 }),
  ],
  'freshness: stale-if-error serves no stale response': [
    first(`${MAX_AGE}, stale-if-error=100`),
    again('miss', { after: 100, status: 503, says: '' }),
  ],
  'freshness: a request that forbids a fresh entry goes upstream': [
    first(MAX_AGE),
    again('miss', { fields: { 'Cache-Control': 'no-cache' } }),
  ],
  'freshness: Pragma of a response beside Cache-Control': [first(`${MAX_AGE}\r\nPragma: no-cache`), again()],
  'heuristics: no lifetime from Last-Modified': [first(`Last-Modified: ${DATE}`), again('miss')],
  'heuristics: no lifetime from public': [first('Cache-Control: public'), again('miss')],
  'heuristics: no lifetime for 404': [first('', { status: 404 }), again('miss')],

  'status: an unknown final status': [first(MAX_AGE, { status: 299 }), again('miss')],
  'status: 599': [first(MAX_AGE, { status: 599 }), again('miss')],
  'status: 404 that states a lifetime': [first(MAX_AGE, { status: 404 }), again()],
  'status: a permanent redirect with a Location': [
    first(`${MAX_AGE}\r\nLocation: /v1/other`, { status: 308 }),
    again(),
  ],
  'status: a temporary redirect': [first(`${MAX_AGE}\r\nLocation: /v1/other`, { status: 307 }), again('miss')],

  'Vary: the same value': [
    first(`${MAX_AGE}\r\nVary: Foo`, { fields: { Foo: '1' } }),
    again('hit', { fields: { Foo: '1' } }),
  ],
  'Vary: another value': [
    first(`${MAX_AGE}\r\nVary: Foo`, { fields: { Foo: '1' } }),
    again('miss', { fields: { Foo: '2' } }),
  ],
  'Vary: without the header': [first(`${MAX_AGE}\r\nVary: Foo`, { fields: { Foo: '1' } }), again('miss')],
  'Vary: the name in other letter cases': [
    first(`${MAX_AGE}\r\nVary: FOO`, { fields: { foo: '1' } }),
    again('hit', { fields: { Foo: '1' } }),
    again('miss', { fields: { fOO: '2' } }),
  ],
  'Vary: several variants side by side': [
    first(`${MAX_AGE}\r\nVary: Foo`, { fields: { Foo: '1' } }),
    first(`${MAX_AGE}\r\nVary: Foo`, { fields: { Foo: '2' } }),
    again('hit', { fields: { Foo: '1' } }),
    again('hit', { fields: { Foo: '2' } }),
  ],
  'Vary: in two fields': [
    first(`${MAX_AGE}\r\nVary: Foo\r\nVary: Bar`, { fields: { Foo: '1', Bar: '1' } }),
    again('miss', { fields: { Foo: '1', Bar: '2' } }),
    again('hit', { fields: { Foo: '1', Bar: '1' } }),
  ],
  'Vary: *': [first(`${MAX_AGE}\r\nVary: *`), again('miss')],
  'Vary: * beside others': [first(`${MAX_AGE}\r\nVary: Foo, *`), again('miss')],
  'Vary: empty': [first(`${MAX_AGE}\r\nVary:`), again()],
  'Vary: only commas': [first(`${MAX_AGE}\r\nVary: ,,`), again()],

  'partial: Range is not served from a complete entry': [
    first(MAX_AGE),
    again('miss', { fields: { Range: 'bytes=0-0' } }),
  ],
  'partial: 206 is not stored': [
    first(`${MAX_AGE}\r\nContent-Range: bytes 0-0/2`, { status: 206, fields: { Range: 'bytes=0-0' } }),
    again('miss'),
  ],

  'HEAD: from a GET': [first(MAX_AGE), again('hit', { method: 'HEAD' })],
  'HEAD: from a stale GET': [first(TAGGED), again('miss', { method: 'HEAD', after: 100, says: MAX_AGE })],
  'HEAD: is not served to a GET': [first(MAX_AGE, { method: 'HEAD' }), again('miss')],

  'conditions: 304 to the tag of a fresh entry': [
    first(TAGGED),
    again('hit 304', { fields: { 'If-None-Match': '"v"' } }),
  ],
  'conditions: weakly the same tag': [
    first(`${MAX_AGE}\r\nETag: W/"v"`),
    again('hit 304', { fields: { 'If-None-Match': '"v"' } }),
  ],
  'conditions: another tag': [first(TAGGED), again('hit', { fields: { 'If-None-Match': '"w"' } })],
  'conditions: a tag with a comma': [
    first(`${MAX_AGE}\r\nETag: "a,b"`),
    again('hit 304', { fields: { 'If-None-Match': '"x", "a,b"' } }),
  ],
  'conditions: the date of a fresh entry': [
    first(`${MAX_AGE}\r\nLast-Modified: ${DATE}`),
    again('hit 304', { fields: { 'If-Modified-Since': DATE } }),
  ],
  'conditions: the tag comes before the date': [
    first(`${TAGGED}\r\nLast-Modified: ${DATE}`),
    again('hit', { fields: { 'If-None-Match': '"w"', 'If-Modified-Since': DATE } }),
  ],
  'conditions: If-Match is left to the upstream': [first(TAGGED), again('miss', { fields: { 'If-Match': '"v"' } })],
  'conditions: on a HEAD': [first(TAGGED), again('hit 304', { method: 'HEAD', fields: { 'If-None-Match': '"v"' } })],
  'conditions: no 304 for 404': [first(TAGGED, { status: 404 }), again('hit', { fields: { 'If-None-Match': '"v"' } })],

  'validation: a stale entry is revalidated by its tag': [
    first(TAGGED),
    again('confirmed', { after: 100, status: 304, says: TAGGED }),
    again('hit', { after: 99 }),
    again('miss', { after: 1, says: TAGGED }),
  ],
  'validation: by its date': [
    first(`${MAX_AGE}\r\nLast-Modified: ${DATE}`),
    again('confirmed', { after: 100, status: 304, says: MAX_AGE }),
    again(),
  ],
  'validation: an entry that must be revalidated each time': [
    first('Cache-Control: no-cache\r\nETag: "v"'),
    again('confirmed', { status: 304, says: 'ETag: "v"' }),
    again('confirmed', { status: 304, says: 'ETag: "v"' }),
  ],
  'validation: the Age of a 304 counts': [
    first(TAGGED),
    again('confirmed', { after: 100, status: 304, says: `${TAGGED}\r\nAge: 90` }),
    again('hit', { after: 9 }),
    again('miss', { after: 1, says: TAGGED }),
  ],
  'validation: the earlier Age does not': [
    first(`${TAGGED}\r\nAge: 90`),
    again('confirmed', { after: 10, status: 304, says: TAGGED }),
    again('hit', { after: 99 }),
  ],
  'validation: another response replaces the entry': [
    first(TAGGED),
    again('miss', { after: 100, says: TAGGED }),
    again(),
  ],
  'validation: an error does not': [
    first(TAGGED),
    again('miss', { after: 100, status: 500, says: '' }),
    again('confirmed', { status: 304, says: TAGGED }),
  ],
  'validation: an entry without a validator is requested again': [
    first(MAX_AGE),
    again('miss', { after: 100, says: MAX_AGE }),
    again(),
  ],

  ...Object.fromEntries(
    // M-SEARCH represents methods that the daemon does not know.
    ['POST', 'PUT', 'PATCH', 'DELETE', 'M-SEARCH'].flatMap((method): [string, Step[]][] => [
      [
        `invalidation: ${method} that succeeds`,
        [first(MAX_AGE), first('', { method, body: 'x' }), again('miss', { says: MAX_AGE })],
      ],
      [
        `invalidation: ${method} that redirects`,
        [first(MAX_AGE), first('', { method, body: 'x', status: 303 }), again('miss', { says: MAX_AGE })],
      ],
      [
        `invalidation: ${method} that is refused`,
        [first(MAX_AGE), first('', { method, body: 'x', status: 404 }), again()],
      ],
      [
        `invalidation: ${method} elsewhere`,
        [first(MAX_AGE), first('', { method, body: 'x', target: '/v1/other' }), again()],
      ],
    ]),
  ),
  'invalidation: of every variant': [
    first(`${MAX_AGE}\r\nVary: Foo`, { fields: { Foo: '1' } }),
    first('', { method: 'DELETE' }),
    again('miss', { fields: { Foo: '1' } }),
  ],
  'invalidation: of the entries for every Accept': [
    first(MAX_AGE),
    first(MAX_AGE, { fields: { Accept: 'text/plain' } }),
    first('', { method: 'DELETE' }),
    again('miss', { fields: { Accept: 'text/plain' } }),
    again('miss'),
  ],
  'invalidation: a HEAD invalidates nothing': [
    first(MAX_AGE),
    first('', { method: 'HEAD', fields: { 'Cache-Control': 'no-cache' } }),
    again(),
  ],
};

const DEVIATIONS: Record<string, Step[]> = {
  's-maxage counts, although the cache is private': [
    first('Cache-Control: max-age=1, s-maxage=100'),
    again('hit', { after: 99 }),
  ],
  'no-cache and private with field names apply to the whole response': [
    first('Cache-Control: max-age=100, no-cache="X-A"'),
    again('miss', { says: 'Cache-Control: max-age=100, private="X-A"' }),
    again('miss'),
  ],
  'must-understand does not cancel no-store': [
    first('Cache-Control: max-age=100, no-store, must-understand'),
    again('miss'),
  ],
  'max-stale is not granted': [first(MAX_AGE), again('miss', { after: 100, fields: { 'Cache-Control': 'max-stale' } })],
  'Location and Content-Location of a change invalidate nothing': [
    first(MAX_AGE, { target: '/v1/other' }),
    first('Location: /v1/other\r\nContent-Location: /v1/other', { method: 'POST', body: 'x', status: 201 }),
    again('hit', { target: '/v1/other' }),
  ],
  'a temporary redirect or an error that states a lifetime is not stored': [
    first(MAX_AGE, { status: 302 }),
    first(MAX_AGE, { status: 400 }),
    again('miss'),
  ],
  'partial responses are neither stored nor made from complete ones': [
    first(MAX_AGE),
    again('miss', { fields: { Range: 'bytes=0-0' } }),
  ],
  'a HEAD neither refreshes nor invalidates an entry': [
    first(TAGGED),
    again('miss', { method: 'HEAD', after: 100, says: `${MAX_AGE}\r\nETag: "w"` }),
    again('confirmed', { status: 304, says: TAGGED }),
  ],
  'a response that may not be stored leaves the previous entry': [
    first(MAX_AGE),
    first('Cache-Control: no-store', { fields: { 'Cache-Control': 'no-cache' } }),
    again(),
  ],
};

describe('G: the rules of RFC 9110 and 9111 for a cache', () => {
  const clock = new TestClock({ standsStill: true });
  const { stage, it } = staged({ env: { HTTP_CACHE_ENABLED: 'true' }, clock });

  const play = async (steps: readonly Step[]) => {
    for (const [index, step] of steps.entries()) {
      const { method = 'GET', target = '/v1/t', fields = {}, body, after = 0, says = '', status = 200 } = step;
      clock.advance(after * 1000);
      stage.upstream.script = async (exchange) => {
        await exchange.whole();
        const isBare = status === 304 || exchange.method === 'HEAD';
        exchange.respond(
          status,
          says === '' ? '' : `${says}\r\n`,
          isBare ? '' : `answer ${stage.upstream.exchanges.length}`,
        );
      };
      const before = stage.upstream.exchanges.length;
      const length: Fields = body === undefined ? {} : { 'Content-Length': String(body.length) };
      const bytes = head(`${method} ${target}`, stage.secret, { ...length, ...fields }) + (body ?? '');
      const answer = await stage.ask(bytes, method);
      const isAsked = stage.upstream.exchanges.length > before;
      const isConfirmed = isAsked && status === 304 && answer.status !== 304;
      const got = isConfirmed ? 'confirmed' : `${answer.header('x-proxy-cache')}${answer.status === 304 ? ' 304' : ''}`;
      expect(got, `step ${index + 1}`).to.equal(step.gets);
      expect(isAsked, `step ${index + 1} goes upstream`).to.equal(!step.gets.startsWith('hit'));
    }
  };

  for (const [what, steps] of Object.entries(KEPT)) it(`G32 ${what}`, () => play(steps));

  describe('and our deviations', () => {
    for (const [what, steps] of Object.entries(DEVIATIONS)) it(`G32 ${what}`, () => play(steps));
  });
});
