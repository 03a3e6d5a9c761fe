/**
 * The set-up of a fault test: a raw client, the daemon, a scripted upstream, canary secrets, and a clock that the test moves. After every
 * case it checks the invariants, whatever the case itself checked.
 */
import { expect } from 'chai';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Environment } from '../../../config/settings.js';
import type { WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import type { RequestEnded } from '../../../daemon/core/events.js';
import { databaseAtRest } from '../../support/at-rest.js';
import type { Certificate } from '../../support/certificates.js';
import { isHandshake } from '../../../daemon/http/proxy/handshake.js';
import type { TestClock } from '../../support/clock.js';
import { secretsIn } from '../../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon, UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { permit } from '../../support/leaks.js';
import { TEST_WORKERS } from '../../support/test-workers.js';
import { type Fields, GrowingBuffer, head, type RawResponse, RawClient } from '../../support/raw.js';
import { type SentRequest, isRevalidated, expectEarlierResponse, isHit } from './cached-responses.js';
import { isCloseFrame, isErrorEvent, sharedLength } from './termination-notices.js';
import { responsesIn, finalResponseOf, isResponseComplete, switches } from './transcripts.js';
import { type Exchange, ScriptedUpstream } from './upstream.js';
import { type Message, valuesOf } from './wire.js';

const MOST_KEPT = 1024 * 1024;

/** What a client received, byte for byte. */
interface Transcript {
  arrived: GrowingBuffer;
  isKept: boolean;
  /** The client's port. */
  port: number;
  /** Its requests in order; a response to HEAD has no body. */
  asked: () => readonly SentRequest[];
  /** The connection was closed in an orderly way, which ends a response without a length. */
  hasEnded: boolean;
}

/** By the default of PROXY_PREFIXES. */
const IS_PROXIED = /^\/(?:v1|v1beta|openai)(?:[/?#]|$)/;

export interface FaultFixtureOptions {
  env?: Environment;
  /** For example one that stands still. */
  clock?: TestClock;
  /** Makes the upstream use TLS. */
  certificate?: Certificate;
  /** The upstream URL that the daemon gets, if it is not the real one. */
  upstreamUrl?: (url: string) => string;
}

export class FaultFixture {
  readonly #options: FaultFixtureOptions;
  upstream!: ScriptedUpstream;
  daemon!: TestDaemon;
  project!: WireProject;
  /** A new one for each case. */
  token!: WireTokenCreated;
  /** Set by a case whose clients put their secret where it is forwarded, such as in a body. */
  clientsMisplaceSecrets = false;
  #clients: RawClient[] = [];
  #transcripts: Transcript[] = [];
  #tokens: WireTokenCreated[] = [];
  #upstreamEchoesSecrets = false;
  #proxied = 0;
  /** The requests of each connection in order, by the client's port, which a later client may reuse. */
  readonly #asked = new Map<number, SentRequest[][]>();
  /** The daemon's ends of connections, with the port of the other end; null if that was already gone. */
  readonly #served = new Map<Socket, number | null>();
  /** The ports of all connections that the daemon accepted. */
  #taken: (number | null)[] = [];
  /** The ports of the clients. */
  readonly #ports = new Set<number>();
  #upstreamUrl = '';
  #timersBefore = 0;
  #logBefore = 0;

  constructor(options: FaultFixtureOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    const { certificate, upstreamUrl, ...options } = this.#options;
    this.upstream = await new ScriptedUpstream(certificate).listen();
    this.#upstreamUrl = upstreamUrl?.(this.upstream.url) ?? this.upstream.url;
    this.daemon = await startDaemon({ upstream: this.#upstreamUrl, ...options });
    this.project = await this.daemon.createProject();
    const count = (req: IncomingMessage, res: ServerResponse) => {
      this.#asked
        .get(req.socket.remotePort ?? 0)
        ?.at(-1)
        ?.push({ method: req.method ?? '', target: req.url ?? '' });
      if (!IS_PROXIED.test(req.url ?? '')) return;
      // A pipelined request begins when the previous one has its response, unless the connection ends before.
      const begin = () => {
        if (!res.headersSent && (req.socket.destroyed || req.socket.writableEnded)) return;
        this.#proxied += 1;
        // The proxy listens for the end of each response. One whose client leaves before its turn is not begun.
        const listeners = res.listenerCount('close');
        res.once('close', () => {
          if (!res.headersSent && res.listenerCount('close') <= listeners) this.#proxied -= 1;
        });
      };
      if (res.socket) begin();
      else
        res.once('socket', () => {
          process.nextTick(begin);
        });
    };
    this.daemon.daemon.server
      .prependListener('upgrade', (req: IncomingMessage, socket: Socket & { _httpMessage?: unknown }) => {
        // Any other upgrade arrives again, as a request. One after an unanswered request is not a request.
        if (IS_PROXIED.test(req.url ?? '') && isHandshake(req) && !socket._httpMessage) this.#proxied += 1;
      })
      .prependListener('request', count)
      .prependListener('checkContinue', count)
      .prependListener('checkExpectation', count)
      .on('connection', (socket: Socket) => {
        const port = socket.remotePort ?? null;
        this.#taken.push(port);
        if (this.#served.has(socket)) return; // The socket was returned after the check of an upgrade.
        this.#served.set(socket, port);
        if (port !== null) this.#asked.set(port, [...(this.#asked.get(port) ?? []), []]);
        socket.once('close', () => this.#served.delete(socket));
      })
      .on('drop', (dropped?: { remotePort?: number }) => this.#taken.push(dropped?.remotePort ?? null));
  }

  async begin(): Promise<void> {
    await this.upstream.begin();
    this.#upstreamEchoesSecrets = false;
    this.clientsMisplaceSecrets = false;
    this.upstreamKeys.clear();
    this.upstreamKeys.add(UPSTREAM_KEY);
    this.#clients = [];
    this.#ports.clear();
    this.#taken = [];
    this.#transcripts = [];
    this.#asked.clear();
    this.#tokens = [];
    this.#proxied = 0;
    this.daemon.ended.length = 0;
    this.token = await this.issue();
    if (this.#options.env?.HTTP_CACHE_ENABLED === 'true') await this.clearCache();
    await this.daemon.daemon.admission.readBetweenTicks(() => Promise.resolve());
    // Work that is done again and again sets its next timer only afterwards: that of a worker that is just reading changes, for example.
    const pending = this.daemon.clock.pending + Number(TEST_WORKERS ?? 0);
    this.#timersBefore = Math.max(this.#timersBefore, pending);
    this.#logBefore = this.daemon.logged.length;
  }

  async close(): Promise<void> {
    await this.daemon.stop();
    await this.upstream.stop();
  }

  /** For a case whose upstream returns the secrets: they may then be in the response, and nowhere else. */
  set upstreamEchoesSecrets(echoes: boolean) {
    this.#upstreamEchoesSecrets = echoes;
    if (echoes) permit(/^forwarded response /, ['upstream', 'unknown'], 'the upstream returns them');
  }

  /** Empties the cache, so that entries belong to one case. */
  async clearCache(): Promise<void> {
    const { status } = await this.daemon.manage('POST', '/manage/cache/purge', { all: true });
    expect(status, 'the purge').to.equal(200);
  }

  /** As it is written in `Host`. */
  get upstreamHost(): string {
    return new URL(this.#upstreamUrl).host;
  }

  /** The project's upstream key. */
  readonly upstreamKey = UPSTREAM_KEY;

  /** All upstream keys that the case's projects have or had. */
  readonly upstreamKeys = new Set<string>();

  get secret(): string {
    return this.token.token;
  }

  /** Creates another token in the stage's project, or in the one that `fields` name. */
  async issue(fields: Record<string, unknown> = {}): Promise<WireTokenCreated> {
    const token = await this.daemon.createToken(this.project.id, fields);
    this.#tokens.push(token);
    return token;
  }

  /** A connection to the daemon that is closed after the case. */
  async client(bytes?: string | Buffer): Promise<RawClient> {
    const client = await RawClient.to(this.daemon.url);
    const port = client.socket.localPort ?? 0;
    const before = this.#transcripts.filter((transcript) => transcript.port === port).length;
    const asked = () => this.#asked.get(port)?.[before] ?? [];
    const transcript: Transcript = { port, asked, arrived: new GrowingBuffer(), isKept: true, hasEnded: false };
    client.socket.on('data', (piece: Buffer) => {
      transcript.isKept &&= transcript.arrived.bytes.length + piece.length <= MOST_KEPT;
      if (transcript.isKept) transcript.arrived.append(piece);
    });
    client.socket.on('end', () => {
      transcript.hasEnded = true;
    });
    this.#clients.push(client);
    this.#ports.add(port);
    this.#transcripts.push(transcript);
    if (bytes !== undefined) client.send(bytes);
    return client;
  }

  /** The number of the daemon's connections, including those of management requests. */
  get connections(): number {
    return this.#served.size;
  }

  /** The daemon's end of a client's connection; undefined if it has not accepted it yet, or has closed it. */
  serverSocketIfAny({ socket: { localPort } }: RawClient): Socket | undefined {
    return [...this.#served].find(([, port]) => port === localPort)?.[0];
  }

  /** The daemon's end of a client's connection. */
  serverSocket(client: RawClient): Socket {
    const served = this.serverSocketIfAny(client);
    if (!served) throw new Error('the daemon has no such connection');
    return served;
  }

  /** The response to `bytes` on a new connection. */
  async ask(bytes: string | Buffer, method?: string): Promise<RawResponse> {
    return (await this.client(bytes)).response(method);
  }

  get(fields: Fields = {}, target = '/v1/models'): string {
    return head(`GET ${target}`, this.secret, fields);
  }

  post(body: string, fields: Fields = {}, target = '/v1/echo'): string {
    const length = 'Transfer-Encoding' in fields ? {} : { 'Content-Length': String(body.length) };
    return head(`POST ${target}`, this.secret, { ...length, ...fields }) + body;
  }

  async uses(token: WireTokenCreated = this.token): Promise<number> {
    return (await this.daemon.token(token.id)).request_count;
  }

  /** Waits until that many requests are in flight. */
  inFlight(requests: number): Promise<void> {
    return eventually(`${requests} requests in flight`, () => this.daemon.daemon.admission.size.inFlight === requests);
  }

  /** @see databaseAtRest */
  databaseAtRest(): Promise<number> {
    return databaseAtRest(this.daemon.daemon);
  }

  /** Waits until the daemon has accepted every client's connection, and closed it. */
  async allDisconnected(): Promise<void> {
    await eventually('the daemon has accepted every client', () => this.#areAllClientsServed());
    await eventually('I7: no client connection is left', () => !this.#isServingClients());
  }

  /** The record of the only request, after it has ended. */
  async onlyRecord(): Promise<RequestEnded> {
    const { ended } = this.daemon;
    await eventually('the request has ended', () => ended.length > 0);
    expect(ended, 'records of one request').to.have.lengthOf(1);
    return ended[0]!;
  }

  /** Checks that the request was refused before anything was spent: the upstream received no byte of it. */
  async expectNothingSpent(): Promise<void> {
    expect(Buffer.concat(this.upstream.received).toString('latin1'), 'bytes at the upstream').to.equal('');
    for (const token of this.#tokens) expect(await this.uses(token), 'uses').to.equal(0);
  }

  /** Runs after every case. Closes the clients first. */
  async checkInvariants(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    await this.#expectResourcesReleased();
    await this.#expectCounted();
    this.#expectNothingSmuggled();
    this.#expectFaithfulResponses();
    this.#expectNoSecrets();
  }

  /** A client can disconnect before the daemon accepts its connection; what it sent is served nevertheless. */
  #areAllClientsServed(): boolean {
    const known = new Set(this.#taken);
    const unseen = [...this.#ports].filter((port) => !known.has(port));
    return unseen.length <= this.#taken.filter((port) => port === null).length;
  }

  /** Management requests keep their connections open; those of the stage's clients must be closed. */
  #isServingClients(): boolean {
    return [...this.#served.values()].some((port) => port === null || this.#ports.has(port));
  }

  /** I7: sockets and timers return to where they were. */
  async #expectResourcesReleased(): Promise<void> {
    const { daemon } = this.daemon;
    await this.allDisconnected();
    await eventually('I7: nothing is in flight', () => daemon.admission.size.inFlight === 0);
    await eventually('I7: no upstream connection is in use', () => {
      const busy = [...this.upstream.sockets].filter((socket) => {
        const last = this.upstream.exchanges.findLast((exchange) => exchange.socket === socket);
        return last !== undefined && !socket.destroyed && !isResponseComplete(last);
      });
      return busy.length === 0;
    });
    await eventually('I7: no timer is left', async () => {
      // A request may be recorded a little after it is no longer in flight; then its counts wait for the next write.
      await daemon.admission.readBetweenTicks(() => Promise.resolve());
      await Promise.all([daemon.usage.flush(), daemon.auditFiles.useLog?.flush()]);
      return this.daemon.clock.pending <= this.#timersBefore;
    });
  }

  /** I1 and I3: no cap is exceeded, and each request has one outcome. */
  async #expectCounted(): Promise<void> {
    // Bytes that the parser rejected were not a request, and their record has no path.
    const outcomes = () => this.daemon.ended.filter(({ path }) => path !== '').length;
    await eventually('I3: every request has an outcome', () => outcomes() >= this.#proxied);
    expect(outcomes(), 'I3: outcomes').to.equal(this.#proxied);
    for (const token of this.#tokens) {
      const { request_count, max_requests, cache_hit_count } = await this.daemon.token(token.id);
      const forwarded = this.#forwardedFor(token.id);
      const ended = this.daemon.ended.filter(({ tokenId }) => tokenId === token.id);
      const hits = ended.filter(({ cache }) => cache === 'hit').length;
      expect(cache_hit_count, 'I6: hits counted').to.equal(hits);
      expect(request_count, 'I6: uses counted, without hits').to.be.at.most(ended.length - hits);
      if (max_requests > 0) expect(request_count, 'I1: uses of a cap').to.be.at.most(max_requests);
      expect(forwarded, 'I6: requests forwarded for a token').to.be.at.most(request_count);
    }
  }

  #forwardedFor(tokenId: string): number {
    const ids = new Set(
      this.daemon.ended.filter((ended) => ended.tokenId === tokenId).map(({ requestId }) => requestId),
    );
    return new Set(this.upstream.exchanges.filter(({ requestId }) => ids.has(requestId)).map((it) => it.requestId))
      .size;
  }

  /** I6: every upstream request belongs to an admitted one, and is complete HTTP. */
  #expectNothingSmuggled(): void {
    expect(this.upstream.violations, 'I6: what the upstream was sent').to.deep.equal([]);
    const seen = new Map<string, number>();
    for (const exchange of this.upstream.exchanges) {
      const { requestId, method } = exchange;
      const count = (seen.get(requestId) ?? 0) + 1;
      seen.set(requestId, count);
      const admitted = this.daemon.ended.filter(
        (ended) => ended.requestId === requestId && ended.tokenId !== null && ended.cache === 'miss',
      ).length;
      expect(admitted, `I6: ${method} ${exchange.target} belongs to an admitted request`).to.be.at.least(1);
      const retries = method === 'GET' || method === 'HEAD' ? 1 : 0;
      expect(count, 'I6: upstream requests for one admitted request').to.be.at.most(admitted + retries);
      const [authorization = '', ...more] = exchange.all('authorization');
      expect(more, 'I6: keys beside the key').to.deep.equal([]);
      expect(
        [...this.upstreamKeys].map((key) => `Bearer ${key}`),
        'I6: the key',
      ).to.include(authorization);
    }
  }

  /** I5: what a client received is what the upstream sent, and is complete only if that was complete. */
  #expectFaithfulResponses(): void {
    for (const transcript of this.#transcripts.filter(({ isKept }) => isKept)) {
      for (const { answer, asked } of responsesIn(transcript.arrived.bytes, transcript.asked())) {
        if (isHit(answer)) this.#expectCachedResponse(answer, asked);
        // Only a forwarded response states how long the upstream took.
        if (valuesOf(answer, 'server-timing').length === 0) continue;
        const exchange = this.#exchangeOf(valuesOf(answer, 'x-request-id').join());
        if (!exchange) throw new Error('I5: a response that no upstream gave');
        if (!exchange.isSentComplete) continue;
        if (switches(answer)) {
          const given = exchange.sent.subarray(exchange.sent.indexOf('\r\n\r\n', exchange.sent.indexOf(' 101 ')) + 4);
          const got = transcript.arrived.bytes.subarray(answer.end);
          const farewell = got.subarray(sharedLength(given, got));
          expect(farewell.length === 0 || isCloseFrame(farewell), 'I5: a prefix, and an error event').to.equal(true);
          continue;
        }
        const given = finalResponseOf(exchange);
        if (given && isRevalidated(given, answer)) {
          this.#expectCachedResponse(answer, asked);
          continue;
        }
        const farewell = answer.body.subarray(sharedLength(given?.body ?? Buffer.alloc(0), answer.body));
        if (farewell.length > 0) {
          const before = answer.body.subarray(0, answer.body.length - farewell.length);
          expect(isErrorEvent(answer, before, farewell), 'I5: a prefix, and an error event').to.equal(true);
          expect(answer.isComplete, 'I5: nothing ends after an error event').to.equal(false);
        }
        const isComplete = answer.isComplete || (answer.endsWithConnection && transcript.hasEnded);
        if (isComplete)
          expect(isResponseComplete(exchange), 'I5: a complete response to the client was complete').to.equal(true);
      }
    }
  }

  /** I5 for a response that the upstream did not give to this request: it must be one that it gave earlier to an equal request. */
  #expectCachedResponse(answer: Message, asked: SentRequest): void {
    const projectOf = (requestId: string) =>
      this.daemon.ended.find((ended) => ended.requestId === requestId)?.projectId ?? null;
    const projectId = projectOf(valuesOf(answer, 'x-request-id').join());
    const ofProject = this.upstream.exchanges.filter(({ requestId }) => projectOf(requestId) === projectId);
    expectEarlierResponse(answer, asked, ofProject);
  }

  /** The last exchange with that ID, because a retried request gets its response from the second. */
  #exchangeOf(requestId: string): Exchange | undefined {
    return this.upstream.exchanges.findLast((exchange) => exchange.requestId === requestId);
  }

  /** I4, as far as one case can leak. */
  #expectNoSecrets(): void {
    const sinks: Record<string, string> = {
      'the log': this.daemon.logged.slice(this.#logBefore).join(''),
      'the records of requests': JSON.stringify(this.daemon.ended),
    };
    if (!this.#upstreamEchoesSecrets) {
      sinks['what clients received'] = this.#transcripts
        .map(({ arrived }) => arrived.bytes.toString('latin1'))
        .join('\n');
    }
    for (const [sink, text] of Object.entries(sinks)) {
      expect(secretsIn(text), `I4: a secret in ${sink}`).to.deep.equal([]);
    }
    if (this.clientsMisplaceSecrets) return;
    const upstreamBytes = Buffer.concat(this.upstream.received).toString('latin1');
    for (const credential of [MANAGEMENT_TOKEN, ...this.#tokens.map(({ token }) => token)]) {
      expect(upstreamBytes.includes(credential), 'I4: a client credential at the upstream').to.equal(false);
    }
  }
}

/**
 * A stage for the cases of a `describe`, and an `it` that checks the invariants after each case.
 * Titles begin with the IDs of the rows that they cover: `it('C03 …')`.
 */
export function staged(options: FaultFixtureOptions = {}): {
  stage: FaultFixture;
  it: (title: string, run: () => Promise<void>) => Mocha.Test;
  /** @see test-workers.ts */
  itInOneProcess: (title: string, run: () => Promise<void>) => Mocha.Test;
} {
  const stage = new FaultFixture(options);
  before(() => stage.open());
  after(() => stage.close());
  const withInvariants = (title: string, run: () => Promise<void>) =>
    it(title, async () => {
      await stage.begin();
      await run();
      await stage.checkInvariants();
    });
  return { stage, it: withInvariants, itInOneProcess: TEST_WORKERS === undefined ? withInvariants : it.skip };
}
