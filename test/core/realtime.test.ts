/** Records of realtime connections: their model, and the tokens of their responses. */
import { once } from 'node:events';
import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { ProviderMessages } from '../../daemon/core/content/provider-messages.js';
import { addedUsage, modelUsageOf } from '../../daemon/core/content/token-counts.js';
import type { DetailedUsage, ModelUsage } from '../../daemon/core/events.js';
import { FrameReader } from '../../daemon/http/proxy/websocket-frames.js';
import { UPSTREAM_KEY } from '../support/daemon.js';
import { frameOf } from '../support/frames.js';
import { nextMessage, Realtime } from '../support/realtime.js';
import { ProxyFixture } from '../support/proxy-fixture.js';

const done = (usage: object | null, more: object = {}) =>
  JSON.stringify({
    type: 'response.done',
    event_id: 'event_1',
    response: { object: 'realtime.response', id: 'resp_1', output: [], ...more, usage, metadata: null },
  });
const delta = (length: number) =>
  JSON.stringify({ type: 'response.output_audio.delta', response_id: 'r', delta: 'A'.repeat(length) });
const USAGE = { total_tokens: 253, input_tokens: 132, output_tokens: 121, input_token_details: { text_tokens: 119 } };
const counts = (
  promptTokens: number,
  completionTokens: number,
  totalTokens: number,
  cacheReadTokens: number | null = null,
): ModelUsage => ({
  promptTokens,
  completionTokens,
  totalTokens,
  cacheReadTokens,
  cacheWriteTokens: null,
});

describe('the record of a realtime connection', () => {
  let scene: ProxyFixture;
  let realtime: Realtime;

  beforeEach(async () => {
    scene = await ProxyFixture.open();
    realtime = new Realtime(scene.provider);
  });
  afterEach(async () => {
    realtime.end();
    await scene.end();
    realtime.close();
    await scene.close();
  });

  const begin = (target: string, perMessageDeflate: boolean | object = false) =>
    realtime.begin(scene.daemon.url, scene.secret, { target, options: { perMessageDeflate } });
  const talk = async (
    target: string,
    messages: readonly (string | Buffer)[],
    perMessageDeflate: boolean | object = false,
  ) => {
    const { client, socket } = await begin(target, perMessageDeflate);
    const arrived: Promise<string>[] = [];
    for (const message of messages) {
      const arriving = nextMessage(client);
      socket.send(message);
      arrived.push(Promise.resolve(await arriving));
    }
    expect(await Promise.all(arrived)).to.deep.equal(messages.map(String));
    client.close();
    return scene.onlyRecord();
  };

  it('contains its model, the tokens of its responses, and a line of usage', async () => {
    const ended = await talk('/v1/realtime?model=gpt-realtime&x=1', [
      '{"type":"session.created","session":{"model":"gpt-other"}}',
      delta(20_000),
      done(USAGE),
      delta(10),
      done({ total_tokens: 3, input_tokens: 1, output_tokens: 2 }),
      done(null),
    ]);
    expect(ended).to.deep.include({ model: 'gpt-realtime', usage: counts(133, 123, 256), outcome: 'ok' });
    const body: unknown = (await scene.daemon.manage('GET', '/manage/usage?by=model')).body;
    expect(body).to.have.lengthOf(1);
    expect((body as object[])[0]).to.include({
      model: 'gpt-realtime',
      requests: 1,
      prompt_tokens: 133,
      completion_tokens: 123,
    });
  });

  it('contains the model that Azure calls a deployment', async () => {
    const ended = await talk('/openai/realtime?api-version=1&deployment=my-gpt', [done(USAGE)]);
    expect(ended).to.deep.include({ model: 'my-gpt', usage: counts(132, 121, 253) });
  });

  it('contains the tokens and the model of a transcription session', async () => {
    const session = { type: 'transcription', audio: { input: { transcription: { model: 'gpt-4o-transcribe' } } } };
    const transcribed = {
      ...{ type: 'conversation.item.input_audio_transcription.completed', transcript: 'hi' },
      usage: { type: 'tokens', total_tokens: 22, input_tokens: 13, output_tokens: 9 },
    };
    const messages = [{ type: 'session.created', session }, transcribed, transcribed].map((it) => JSON.stringify(it));
    const ended = await talk('/v1/realtime?intent=transcription', messages);
    expect(ended).to.deep.include({ model: 'gpt-4o-transcribe', usage: counts(26, 18, 44) });
  });

  it('contains neither if the connection reports none', async () => {
    expect(await talk('/v1/realtime', [delta(1)])).to.deep.include({ model: null, usage: null });
  });

  it('is counted as cut off when its token is revoked', async () => {
    const { client } = await begin('/v1/realtime?model=gpt-realtime');
    const closed = once(client, 'close');
    await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
    await closed;
    expect(await scene.onlyRecord()).to.include({ outcome: 'revoked', model: 'gpt-realtime' });
    const body: unknown = (await scene.daemon.manage('GET', '/manage/usage?by=model')).body;
    expect((body as object[])[0]).to.include({ model: 'gpt-realtime', requests: 1, refused: 0, cut: 1 });
  });

  it('contains no key that was sent as the model', async () => {
    const ended = await talk(`/v1/realtime?model=${encodeURIComponent(`a/${UPSTREAM_KEY}`)}`, []);
    expect(ended.model).to.equal('a/********');
  });
});

describe('a reader of the messages of a provider', () => {
  const newReader = () => {
    let usage: DetailedUsage | null = null;
    const messages = new ProviderMessages((message) => (usage = addedUsage(usage, message.usage)));
    const frames = new FrameReader(false, messages);
    return {
      read: (chunk: Buffer) => {
        for (let at = 0; at < chunk.length && !frames.isMalformed;) at = frames.read(chunk, at);
      },
      usage: () => modelUsageOf(usage),
    };
  };
  const usageOf = (bytes: Buffer, pieceSize: () => number) => {
    const reader = newReader();
    for (let at = 0; at < bytes.length;) {
      const size = pieceSize();
      reader.read(bytes.subarray(at, at + size));
      at += size;
    }
    return reader.usage();
  };

  it('takes no more than 100 ms of CPU for 4 MB of messages of 4 bytes', () => {
    const reader = newReader();
    const flood = Buffer.concat(Array.from({ length: 10_922 }, () => frameOf('abcd')));
    // The fastest of a few times: garbage of earlier tests may be collected meanwhile, and compilation takes time too.
    let ms = Infinity;
    for (let time = 0; time < 5 && ms >= 100; time++) {
      const before = process.cpuUsage();
      for (let n = 0; n < 64; n++) reader.read(flood);
      const { user, system } = process.cpuUsage(before);
      ms = Math.min(ms, (user + system) / 1000);
    }
    expect(ms).to.be.below(100); // With an object for each frame it was 450.
    reader.read(frameOf(done(USAGE)));
    expect(reader.usage()).to.deep.equal(counts(132, 121, 253));
  });

  const whole = done(USAGE);
  const FRAMES: Record<string, [bytes: Buffer[], usage: ModelUsage | null]> = {
    'one message': [[frameOf(whole)], counts(132, 121, 253)],
    'a message of more than 64 KiB': [[frameOf(done(USAGE, { output: ['y'.repeat(200_000)] }))], counts(132, 121, 253)],
    'fragments, with a ping in between': [
      [
        frameOf(whole.slice(0, 5), { isFinal: false }),
        frameOf('ping "response.done"', { opcode: 9 }),
        frameOf('', { opcode: 0, isFinal: false }),
        frameOf(whole.slice(5, 60), { opcode: 0, isFinal: false }),
        frameOf(whole.slice(60), { opcode: 0 }),
        frameOf(whole),
      ],
      counts(264, 242, 506),
    ],
    'empty messages and large ones': [
      [
        frameOf(''),
        frameOf(delta(70_000)),
        frameOf(delta(300)),
        frameOf(''),
        frameOf(whole),
        frameOf('', { opcode: 8 }),
      ],
      counts(132, 121, 253),
    ],
    'the event name within a text': [[frameOf(JSON.stringify({ type: 'x', delta: `"response.done" ${whole}` }))], null],
    'JSON in bytes': [[frameOf(whole, { opcode: 2 })], counts(132, 121, 253)],
    'JSON of Gemini in bytes': [
      [
        frameOf(JSON.stringify({ setupComplete: {} }), { opcode: 2 }),
        frameOf(
          JSON.stringify({
            serverContent: { turnComplete: true },
            usageMetadata: { promptTokenCount: 40, responseTokenCount: 12, totalTokenCount: 52 },
          }),
          { opcode: 2 },
        ),
      ],
      counts(40, 12, 52),
    ],
    'bytes that are none': [[frameOf(Buffer.alloc(100, 0xff), { opcode: 2 }), frameOf(whole)], counts(132, 121, 253)],
    'compressed messages': [[frameOf(whole, { rsv: 0x40 })], null],
    'frames that are masked, as only a client does': [[frameOf(whole, { isMasked: true }), frameOf(whole)], null],
    'data that is not frames': [[Buffer.from('HTTP/1.1 200 OK\r\n\r\n')], null],
    'a response without usage': [[frameOf(done(null))], null],
    'implausible counts': [[frameOf(done({ total_tokens: -1, input_tokens: '1', output_tokens: 1e12 }))], null],
  };
  for (const [what, [frames, usage]] of Object.entries(FRAMES)) {
    it(`reads ${what}, wherever its chunks end`, () => {
      const bytes = Buffer.concat(frames);
      for (const size of [bytes.length, 1, 2, 3, 1_000]) {
        expect(
          usageOf(bytes, () => size),
          `pieces of ${size}`,
        ).to.deep.equal(usage);
      }
      for (let n = 0; n < 20; n++) expect(usageOf(bytes, () => randomInt(1, 300))).to.deep.equal(usage);
    });
  }
});
