import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { Environment } from '../../config/settings.js';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import type { RequestEnded } from '../../daemon/core/events.js';
import { startDaemon, type TestDaemon } from './daemon.js';
import { eventually } from './eventually.js';
import { type Provider, startProvider } from './provider.js';
import { ask, chunk, type Fields, head, type RawResponse, RawClient } from './raw.js';

/** Settings of the daemon, known at once or when it is started. */
type Settings = Environment | (() => Environment | Promise<Environment>);

/** The set-up of a test of /v1: a client, a daemon, a provider, and a project with a token. */
export class ProxyFixture {
  provider!: Provider;
  daemon!: TestDaemon;
  project!: WireProject;
  /** A new one for each test. */
  token!: WireTokenCreated;
  readonly #clients: RawClient[] = [];

  /** @param upstream in place of the scene's own provider. */
  static async open(env: Environment = {}, upstream?: string, redisCommandMs?: number): Promise<ProxyFixture> {
    const scene = new ProxyFixture();
    await scene.#open(env, upstream, redisCommandMs);
    return scene;
  }

  /** One for all tests of a suite, with a new token for each. */
  static forSuite(env: Settings = {}, redisCommandMs?: number): ProxyFixture {
    const scene = new ProxyFixture();
    before(async () => scene.#open(typeof env === 'function' ? await env() : env, undefined, redisCommandMs));
    beforeEach(() => scene.begin());
    afterEach(() => scene.end());
    after(() => scene.close());
    return scene;
  }

  /** A new one for each test of a suite. */
  static forEachTest(env: Settings = {}): ProxyFixture {
    const scene = new ProxyFixture();
    beforeEach(async () => scene.#open(typeof env === 'function' ? await env() : env));
    afterEach(() => scene.close());
    return scene;
  }

  async #open(env: Environment, upstream?: string, redisCommandMs?: number): Promise<void> {
    this.provider = await startProvider();
    this.daemon = await startDaemon({ upstream: upstream ?? this.provider.url, env, redisCommandMs });
    this.project = await this.daemon.createProject();
    await this.begin();
  }

  /** Runs before each test. */
  async begin(): Promise<void> {
    this.provider.answer = undefined;
    this.provider.onHead = undefined;
    this.token = await this.daemon.createToken(this.project.id);
    this.provider.received.length = 0;
    this.daemon.ended.length = 0;
  }

  /** Runs after each test: nothing of it continues. */
  async end(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.destroy();
    await this.inFlight(0);
  }

  async close(): Promise<void> {
    await this.end();
    await this.daemon.stop();
    await this.provider.stop();
  }

  get secret(): string {
    return this.token.token;
  }

  /** A connection to the daemon that is closed after the test. */
  async client(bytes?: string | Buffer): Promise<RawClient> {
    const client = await RawClient.to(this.daemon.url);
    this.#clients.push(client);
    if (bytes !== undefined) client.send(bytes);
    return client;
  }

  send(bytes: string | Buffer, method?: string): Promise<RawResponse> {
    return ask(this.daemon.url, bytes, method);
  }

  /** GET /v1/models. */
  get(secret: string | null = this.secret, fields: Fields = {}): Promise<RawResponse> {
    return this.send(head('GET /v1/models', secret, fields));
  }

  /** POST /v1/echo with the scene's token and the length of `body`, unless `fields` state one. */
  post(fields: Fields, body = '', secret = this.secret): string {
    const length = 'Transfer-Encoding' in fields ? {} : { 'Content-Length': String(body.length) };
    return head('POST /v1/echo', secret, { ...length, ...fields }) + body;
  }

  /** A client in the middle of an event stream: it has received the first piece. */
  async midStream(): Promise<{ client: RawClient; upstream: ServerResponse }> {
    let upstream: ServerResponse | undefined;
    this.provider.answer = (_req, res) => {
      upstream = res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      res.write('data: first\n\n');
    };
    const client = await this.client(head('GET /v1/models', this.secret));
    await client.seen('data: first\n\n');
    return { client, upstream: upstream! };
  }

  /** A client that waits for the headers of its response. */
  async beforeHeaders(): Promise<RawClient> {
    this.provider.answer = () => undefined;
    const client = await this.client(head('GET /v1/models', this.secret));
    await this.reached();
    return client;
  }

  /** A client in the middle of an upload: the provider has received the first piece. */
  async midUpload(): Promise<RawClient> {
    const client = await this.client(this.post({ 'Transfer-Encoding': 'chunked' }, chunk('first')));
    await this.reached();
    return client;
  }

  async uses(id = this.token.id): Promise<number> {
    return (await this.daemon.token(id)).request_count;
  }

  /** Waits until that many requests have reached the provider. */
  reached(requests = 1): Promise<void> {
    return eventually(`${requests} requests at the provider`, () => this.provider.received.length === requests);
  }

  /** Waits until that many requests are in flight. */
  inFlight(requests: number): Promise<void> {
    return eventually(`${requests} requests in flight`, () => this.daemon.daemon.admission.size.inFlight === requests);
  }

  /** Waits until the connection of the first request to the provider is closed early. */
  aborted(): Promise<void> {
    return eventually('the upstream request is aborted', () => this.provider.received[0]?.wasAborted);
  }

  /** Waits for the record of the only request. */
  async onlyRecord(): Promise<RequestEnded> {
    const { ended } = this.daemon;
    await eventually('the request has ended', () => ended.length > 0);
    expect(ended, 'records of one request').to.have.lengthOf(1);
    return ended[0]!;
  }

  async expectSpent(requests: number): Promise<void> {
    expect(this.provider.received, 'requests at the provider').to.have.lengthOf(requests);
    expect(await this.uses(), 'uses').to.equal(requests);
  }
}
