/** What is read from responses: counted once, never at the cost of others, and with the errors that providers report in a stream. */
import { brotliCompressSync, deflateRawSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { ContentReaders } from '../../../daemon/core/content/content-reader.js';
import type { Decoder } from '../../../daemon/core/content/decoding-budget.js';
import type { RequestEnded } from '../../../daemon/core/events.js';
import { callIn } from '../../../daemon/dispatcher/backends/call.js';
import { openDecoder } from '../../../daemon/http/proxy/decoding.js';
import { eventually } from '../../support/eventually.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { head } from '../../support/raw.js';

const MIB = 1024 * 1024;
const EVENTS = { 'Content-Type': 'text/event-stream' };
const event = (data: object, name?: string) =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

describe('what is read from a response', () => {
  const scene = ProxyFixture.forSuite({ HTTP_CACHE_ENABLED: 'true' });

  const answer = (headers: Record<string, string>, body: string | Buffer) => {
    scene.provider.answer = (_req, res) => {
      res.writeHead(200, headers).end(body);
    };
  };
  const request = (method: string, target: string, fields: Record<string, string> = {}) =>
    scene.send(
      head(`${method} ${target}`, scene.secret, method === 'POST' ? { 'Content-Length': '2', ...fields } : fields) +
        (method === 'POST' ? '{}' : ''),
      method,
    );
  const recordOf = async (method: string, target: string): Promise<RequestEnded> => {
    scene.daemon.ended.length = 0;
    await request(method, target);
    return scene.onlyRecord();
  };

  describe('of a hostile provider', () => {
    const BOMB = brotliCompressSync(Buffer.alloc(4 * MIB, '\n'));

    it('delays no record, however much its responses unpack to', async () => {
      expect(BOMB.length).to.be.below(32);
      answer({ ...EVENTS, 'Content-Encoding': 'br' }, BOMB);
      const requests = 300;
      for (let n = 0; n < requests; n += 30)
        await Promise.all(Array.from({ length: 30 }, () => request('POST', '/v1/a')));
      await scene.inFlight(0);
      // Nothing is awaited: the records are those of the requests that have ended.
      scene.daemon.daemon.scheduler.publishAll();
      expect(scene.daemon.ended).to.have.lengthOf(requests);
      expect(new Set(scene.daemon.ended.map(({ usage }) => usage))).to.deep.equal(new Set([null]));
      expect(await scene.uses()).to.equal(requests);
    });

    /** Decodes that response for each of these projects at one time. @returns what was decoded. */
    function unpackedOf(projects: readonly string[], compressed = BOMB): number {
      let bytes = 0;
      const open = (coding: string, first: number): Decoder | null => {
        const decoder = openDecoder(coding, first);
        return (
          decoder && {
            maxWindowBytes: decoder.maxWindowBytes,
            decode: (input, most, take) =>
              decoder.decode(input, most, (slice) => {
                bytes += slice.length;
                take(slice);
              }),
            close: () => {
              decoder.close();
            },
          }
        );
      };
      const readers = new ContentReaders({ openDecoder: open, clock: { monotonic: () => 0 }, maxCaptured: null });
      for (const project of projects) {
        const reader = readers.begin(project);
        reader.responseStarted('text/event-stream', 'br');
        reader.piece(compressed);
        const { usage } = reader.facts({
          ...{ isServed: true, method: 'POST', target: '/v1/a', requestType: () => undefined, upstreamKey: null },
        });
        expect(usage).to.equal(null);
      }
      expect(readers.budget.heldBytes).to.equal(0);
      return bytes;
    }

    it('is bounded for one response, for a project, and for all', () => {
      expect(unpackedOf(['p'])).to.be.below(MIB / 2);
      expect(unpackedOf(Array.from({ length: 3_000 }, () => 'p'))).to.be.below(5 * MIB);
      expect(unpackedOf(Array.from({ length: 3_000 }, (_, n) => `p${n % 10}`))).to.be.below(17 * MIB);
    });
  });

  it('is the usage of large responses too, as they pass', async () => {
    const noise = (bytes: number) => Buffer.from(Float64Array.from({ length: bytes / 8 }, () => Math.random()).buffer);
    const embeddings = JSON.stringify({
      ...{ object: 'list', data: [{ embedding: noise(2 * MIB).toString('base64') }], model: 'embed-1' },
      usage: { prompt_tokens: 8, total_tokens: 8 },
    });
    answer({ 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }, gzipSync(embeddings));
    expect(await recordOf('POST', '/v1/embeddings'))
      .to.deep.include({ model: 'embed-1' })
      .and.have.nested.property('usage.promptTokens', 8);

    const words = Array.from({ length: 100 }, () => event({ model: 'm', delta: noise(64 * 1024).toString('base64') }));
    const stream = gzipSync(words.join('') + event({ model: 'm', usage: { prompt_tokens: 5, completion_tokens: 7 } }));
    expect(stream.length).to.be.above(5 * MIB);
    answer({ ...EVENTS, 'Content-Encoding': 'gzip' }, stream);
    expect(await recordOf('POST', '/v1/chat/completions')).to.have.nested.property('usage.completionTokens', 7);
  });

  it('is the usage before the text, in JSON and in an event', async () => {
    const body = {
      id: 'c',
      usage: { prompt_tokens: 5, completion_tokens: 7 },
      choices: [{ text: 'x'.repeat(90_000) }],
    };
    answer({ 'Content-Type': 'application/json' }, JSON.stringify(body));
    expect(await recordOf('POST', '/v1/chat/completions')).to.have.nested.property('usage.promptTokens', 5);
    answer(EVENTS, event(body));
    expect(await recordOf('POST', '/v1/chat/completions')).to.have.nested.property('usage.promptTokens', 5);
  });

  describe('that was generated before', () => {
    const stored = {
      object: 'response',
      model: 'gpt-5',
      status: 'completed',
      usage: { input_tokens: 900, output_tokens: 100 },
    };
    const CASES: [method: string, target: string, counts: boolean][] = [
      ['POST', '/v1/responses', true],
      ['POST', '/v1/responses?include=x', true],
      ['POST', '/v1/responses/compact', true],
      ['GET', '/v1/responses/resp_1', false],
      ['GET', '/v1/responses/resp_1?stream=true&starting_after=3', false],
      ['POST', '/v1/responses/resp_1/cancel', false],
      ['POST', '/v1/chat/completions', true],
      ['POST', '/openai/deployments/d/chat/completions?api-version=1', true],
      ['GET', '/v1/chat/completions/chatcmpl_1', false],
      ['POST', '/v1/chat/completions/chatcmpl_1', false],
      ['POST', '/v1/threads/runs', true],
      ['POST', '/v1/threads/thread_1/runs', true],
      ['POST', '/v1/threads/thread_1/runs/run_1/submit_tool_outputs', true],
      ['GET', '/v1/threads/thread_1/runs/run_1', false],
      ['GET', '/v1/threads/thread_1/runs/run_1/steps/step_1', false],
      ['POST', '/v1/threads/thread_1/runs/run_1', false],
      ['POST', '/v1/threads/thread_1/runs/run_1/cancel', false],
      ['GET', '/v1/batches/batch_1', false],
      ['POST', '/v1/batches', false],
      ['POST', '/v1/batches/batch_1/cancel', false],
      ['GET', '/v1/messages/batches/msgbatch_1', false],
      ['POST', '/v1/messages', true],
      ['POST', '/v1beta/cachedContents', false],
      ['GET', '/v1beta/cachedContents/c1', false],
      ['POST', '/v1beta/models/gemini-2.5-pro:generateContent', true],
      ['DELETE', '/v1/responses/resp_1', false],
    ];
    for (const [method, target, counts] of CASES) {
      it(`${counts ? 'counts for' : 'does not count again for'} ${method} ${target}`, async () => {
        answer({ 'Content-Type': 'application/json' }, JSON.stringify(stored));
        const { usage, outcome } = await recordOf(method, target);
        expect(outcome).to.equal('ok');
        expect(usage?.promptTokens ?? null).to.equal(counts ? 900 : null);
        // The dispatcher agrees, also for events of a daemon that counted each.
        const reported = {
          prompt_tokens: 900,
          completion_tokens: 100,
          total_tokens: null,
          source: 'provider',
        } as const;
        const more = { cache_read_tokens: null, cache_write_tokens: null };
        const path = target.replace(/\?.*/, '');
        const call = callIn({ method, path, status: 200, usage: { ...reported, ...more } });
        expect(call !== null, 'for the dispatcher').to.equal(counts);
      });
    }
  });

  describe('that reports an error', () => {
    const begun = event({ model: 'm', choices: [{ delta: { content: 'a' } }] });
    const failed = {
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'server_error', message: 'x' } },
    };
    const STREAMS: Record<string, [body: string, code: string]> = {
      'Anthropic, overloaded': [
        event({ type: 'message_start', message: { model: 'c', usage: { input_tokens: 3 } } }, 'message_start') +
          event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'error'),
        'overloaded_error',
      ],
      'OpenAI, a failed response': [
        event({ type: 'response.created', response: { error: null } }, 'response.created') +
          event(failed, 'response.failed'),
        'server_error',
      ],
      'OpenAI, an error of the Responses API': [
        event({ type: 'error', code: 'rate_limit_exceeded', message: 'x', param: null }, 'error'),
        'rate_limit_exceeded',
      ],
      'OpenAI, an error without a code': [
        begun + event({ error: { message: 'x', type: 'server_error', param: null, code: null } }),
        'server_error',
      ],
      OpenRouter: [
        begun + event({ id: 'c', error: { code: 502, message: 'Provider disconnected' }, choices: [] }),
        'unknown_error',
      ],
      Gemini: [event({ error: { code: 503, message: 'x', status: 'UNAVAILABLE' } }), 'unavailable'],
      'an event without JSON': [`${begun}event: error\ndata: oh no\n\n`, 'unknown_error'],
      'a text in place of an object': [begun + event({ error: 'model runner has stopped' }), 'unknown_error'],
    };
    for (const [what, [body, code]] of Object.entries(STREAMS)) {
      it(`has the provider's code: ${what}`, async () => {
        answer(EVENTS, body);
        expect(await recordOf('POST', '/v1/chat/completions')).to.include({
          outcome: 'provider_error',
          code,
          status: 200,
        });
        answer({ ...EVENTS, 'Content-Encoding': 'gzip' }, gzipSync(body));
        expect(await recordOf('POST', '/v1/chat/completions')).to.include({ outcome: 'provider_error', code });
      });
    }

    it('may be JSON', async () => {
      answer(
        { 'Content-Type': 'application/json' },
        JSON.stringify({ object: 'response', status: 'failed', error: { code: 'server_error' } }),
      );
      expect(await recordOf('POST', '/v1/responses')).to.include({ outcome: 'provider_error', code: 'server_error' });
      // It was retrieved well.
      expect(await recordOf('GET', '/v1/responses/resp_1')).to.include({ outcome: 'ok', code: null });
    });

    it('is no text about errors, and no member that is null', async () => {
      const text = 'an "error": {"code": "x"} and event: error\n\ndata: {"error": {"code": "x"}}';
      answer(EVENTS, event({ error: null, choices: [{ delta: { content: text } }] }));
      expect(await recordOf('POST', '/v1/chat/completions')).to.include({ outcome: 'ok', code: null });
    });

    it('counts if the client or the provider disconnects then', async () => {
      scene.provider.answer = (_req, res) => {
        res.writeHead(200, EVENTS).write(STREAMS['OpenAI, a failed response']![0]);
      };
      const client = await scene.client(`${head('POST /v1/responses', scene.secret, { 'Content-Length': '2' })}{}`);
      await client.seen('server_error');
      client.destroy();
      expect(await scene.onlyRecord()).to.include({ outcome: 'provider_error', code: 'server_error' });
    });

    it('is found among the failed events, and counted as a failure of the provider', async () => {
      answer(EVENTS, STREAMS['Anthropic, overloaded']![0]);
      const { requestId } = await recordOf('POST', '/v1/messages');
      const path = `/manage/usage?by=token&token_id=${scene.token.id}`;
      const [line] = (await scene.daemon.manage('GET', path)).body as object[];
      expect(line).to.include({ requests: 1, errors: 1, failed: 1 });
      const found = (await scene.daemon.manage('GET', '/manage/events?outcome=!ok')).body as { events: object[] };
      expect(JSON.stringify(found)).to.include(requestId).and.to.include('overloaded_error');
    });

    it('is not stored in the cache', async () => {
      const fields = { 'Cache-Control': 'public, max-age=60' };
      for (const body of [STREAMS['OpenAI, a failed response']![0], STREAMS.Gemini![0]]) {
        answer({ ...EVENTS, 'Cache-Control': 'public, max-age=60' }, body);
        scene.provider.received.length = 0;
        for (let n = 0; n < 2; n++) await request('POST', '/v1/responses', fields);
        expect(scene.provider.received, 'requests at the provider').to.have.lengthOf(2);
      }
      answer({ ...EVENTS, 'Cache-Control': 'public, max-age=60' }, begun);
      scene.provider.received.length = 0;
      for (let n = 0; n < 2; n++) await request('POST', '/v1/responses', fields);
      expect(scene.provider.received, 'requests for a good stream').to.have.lengthOf(1);
      await eventually('they are recorded', () => scene.daemon.ended.length >= 6);
    });
  });

  it('is nothing of data that has no end', () => {
    const readers = new ContentReaders({ openDecoder, clock: { monotonic: () => 0 }, maxCaptured: null });
    const reader = readers.begin('p');
    reader.responseStarted('application/json', 'deflate');
    const body = `{"model":"m","usage":{"prompt_tokens":1},"x":"${'y'.repeat(8 * MIB)}"}`;
    reader.piece(deflateRawSync(body));
    const facts = reader.facts({
      ...{ isServed: true, method: 'POST', target: '/v1/a', requestType: () => undefined, upstreamKey: null },
    });
    expect(facts.usage, 'a part of the counts is not recorded').to.equal(null);
  });
});
