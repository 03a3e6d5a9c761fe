import { expect } from 'chai';
import OpenAI, {
  APIError,
  AuthenticationError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
  toFile,
} from 'openai';
import { json } from '../../support/provider.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

describe('the openai package, with a withering token in place of the key', () => {
  const scene = ProxyFixture.forSuite();
  let openai: OpenAI;

  beforeEach(() => {
    openai = clientWith(scene.secret);
  });

  const clientWith = (apiKey: string) =>
    new OpenAI({ apiKey, baseURL: `${scene.daemon.url}/v1`, organization: 'org-1', maxRetries: 0 });
  const messages = [{ role: 'user' as const, content: 'Hello' }];

  async function failureOf(call: PromiseLike<unknown>): Promise<APIError> {
    const failure = await Promise.resolve(call).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(APIError);
    return failure as APIError;
  }

  it('gets a chat completion', async () => {
    const completion = await openai.chat.completions.create({ model: 'gpt-test', messages });
    expect(completion.choices[0]?.message.content).to.equal('Hello there');
    expect(completion.usage?.total_tokens).to.equal(5);
    expect(JSON.parse(scene.provider.received[0]!.body.toString())).to.deep.equal({ model: 'gpt-test', messages });
  });

  it('gets a chat completion as a stream', async () => {
    const stream = await openai.chat.completions.create({ model: 'gpt-test', messages, stream: true });
    const pieces: string[] = [];
    let finished: string | null | undefined;
    for await (const { choices } of stream) {
      if (choices[0]?.delta.content) pieces.push(choices[0].delta.content);
      finished = choices[0]?.finish_reason;
    }
    expect(pieces).to.deep.equal(['Hel', 'lo ', 'wörld']);
    expect(finished).to.equal('stop');
  });

  it('aborts a stream, which aborts it at the provider', async () => {
    scene.provider.answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      res.write('data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n');
    };
    const stream = await openai.chat.completions.create({ model: 'gpt-test', messages, stream: true });
    for await (const { choices } of stream) {
      expect(choices[0]?.delta.content).to.equal('Hel');
      break;
    }
    await scene.aborted();
    expect(await scene.onlyRecord()).to.include({ outcome: 'client_closed' });
  });

  it('lists the models', async () => {
    const models = await openai.models.list();
    expect(models.data.map(({ id }) => id)).to.deep.equal(['gpt-test']);
  });

  it('uploads a file', async () => {
    const content = Buffer.alloc(300_000, 'training data ');
    const file = await openai.files.create({ file: await toFile(content, 'data.jsonl'), purpose: 'assistants' });
    expect(file.filename).to.equal('data.jsonl');
    expect(scene.provider.received[0]!.body.includes(content)).to.equal(true);
  });

  it('gets the request ID of llmp', async () => {
    const { request_id: seen } = await openai.models.list().withResponse();
    expect(seen).to.equal(scene.provider.received[0]!.headers['x-request-id']);
  });

  it('throws AuthenticationError for an invalid token', async () => {
    await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
    const failure = await failureOf(openai.models.list());
    expect(failure).to.be.instanceOf(AuthenticationError);
    expect(failure.message).to.match(/unauthorized/);
  });

  it('throws RateLimitError for a token whose cap is reached', async () => {
    const capped = clientWith((await scene.daemon.createToken(scene.project.id, { max_requests: 1 })).token);
    await capped.models.list();
    const failure = await failureOf(capped.models.list());
    expect(failure).to.be.instanceOf(RateLimitError);
    expect(failure.message).to.match(/token request limit reached/);
  });

  it("throws the provider's own NotFoundError, with its message", async () => {
    const failure = await failureOf(openai.models.retrieve('no-such-model'));
    expect(failure).to.be.instanceOf(NotFoundError);
    expect(failure).to.include({ code: 'unknown_url', type: 'invalid_request_error' });
  });

  it("throws InternalServerError for the provider's 500, after one request", async () => {
    scene.provider.answer = (_req, res) => {
      json(res, 500, { error: { message: 'The server had an error', type: 'server_error' } });
    };
    const failure = await failureOf(openai.chat.completions.create({ model: 'gpt-test', messages }));
    expect(failure).to.be.instanceOf(InternalServerError);
    expect(failure).to.include({ status: 500, type: 'server_error' });
    await scene.expectSpent(1);
  });

  it('throws AuthenticationError for a key of the project that the provider refuses', async () => {
    scene.provider.answer = (_req, res) => {
      json(res, 401, {});
    };
    const failure = await failureOf(openai.models.list());
    expect(failure).to.be.instanceOf(AuthenticationError);
    expect(failure.message).to.match(/upstream rejected the project's key/);
  });
});
