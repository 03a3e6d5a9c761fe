/** Each response on a WebSocket is a use: drawn before it is asked for, refused like a request, and recorded by itself. */
import { once } from 'node:events';
import { expect } from 'chai';
import type { WebSocket } from 'ws';
import type { RequestEnded } from '../../../daemon/core/events.js';
import { eventually } from '../../support/eventually.js';
import { frameOf, type FrameOptions } from '../../support/frames.js';
import { head, type RawClient, WEBSOCKET } from '../../support/raw.js';
import { Realtime } from '../../support/realtime.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

const CREATE = '{"type":"response.create","model":"gpt-5","input":[]}';

type Message = Record<string, unknown>;

/** Answers each request for a response, as the Responses API does. @returns what it was asked, as text. */
function answering(socket: WebSocket, { usage = { input_tokens: 10, output_tokens: 2 } } = {}): string[] {
  const asked: string[] = [];
  socket.on('message', (data: Buffer) => {
    asked.push(data.toString());
    const n = asked.length;
    const send = (type: string, more: object = {}) => {
      socket.send(JSON.stringify({ type, response: { id: `resp_${n}`, model: 'gpt-5-2026', ...more } }));
    };
    send('response.created');
    socket.send(JSON.stringify({ type: 'response.output_text.delta', delta: 'x'.repeat(40) }));
    send('response.completed', { usage });
  });
  return asked;
}

describe('the responses on a WebSocket', () => {
  const { scene, realtime } = Realtime.forSuite({ MAX_REQUEST_SIZE: '100KB' });

  const cap = async (max_requests: number) => {
    scene.token = await scene.daemon.createToken(scene.project.id, { max_requests });
  };
  const begin = async (target = '/v1/responses') => {
    const both = await realtime.begin(scene.daemon.url, scene.secret, { target });
    const heard: Message[] = [];
    both.client.on('message', (data: Buffer) => heard.push(JSON.parse(data.toString()) as Message));
    const closed = once(both.client, 'close').then(([code, reason]: unknown[]) => ({ code, reason: String(reason) }));
    return { ...both, heard, closed };
  };
  const types = (heard: readonly Message[]) => heard.map(({ type }) => type);
  const records = async (count: number): Promise<RequestEnded[]> => {
    await eventually(`${count} records`, () => scene.daemon.ended.length >= count);
    expect(scene.daemon.ended).to.have.lengthOf(count);
    return scene.daemon.ended;
  };

  it('are uses on /v1/responses, where the handshake is none; beyond the cap the client is told why', async () => {
    await cap(3);
    const { client, socket, heard, closed } = await begin();
    const asked = answering(socket);
    expect(await scene.uses()).to.equal(0);
    for (let i = 0; i < 5; i++) client.send(CREATE);
    expect(await closed).to.deep.equal({ code: 1008, reason: 'token request limit reached' });
    expect(asked).to.deep.equal([CREATE, CREATE, CREATE]);
    const one = ['response.created', 'response.output_text.delta', 'response.completed'];
    expect(types(heard)).to.deep.equal([...one, ...one, ...one, 'error']);
    expect(heard.at(-1)).to.deep.include({ type: 'error', status: 429 });
    expect(heard.at(-1)?.error).to.include({
      code: 'request_limit_reached',
      type: 'insufficient_quota',
      message: 'token request limit reached: ask for another token',
    });
    expect(await scene.uses()).to.equal(3);
    const responses = (await records(4)).filter(({ status }) => status === 200);
    expect(responses).to.have.lengthOf(3);
    for (const response of responses) {
      expect(response).to.deep.include({
        outcome: 'ok',
        model: 'gpt-5-2026',
        isForwarded: true,
        isModelAnswered: true,
      });
      expect(response.usage).to.include({ promptTokens: 10, completionTokens: 2 });
    }
    expect(scene.daemon.ended.filter(({ status }) => status === 429)).to.have.lengthOf(1);
  });

  it('have the client refused at the handshake once the cap is spent', async () => {
    await cap(1);
    const { client, socket, heard } = await begin();
    answering(socket);
    client.send(CREATE);
    await eventually('the answer', () => types(heard).includes('response.completed'));
    const other = realtime.client(`${scene.daemon.url}/v1/responses`, scene.secret);
    const [, answer] = (await once(other, 'unexpected-response')) as [unknown, { statusCode: number }];
    expect(answer.statusCode).to.equal(429);
  });

  it('are refused in a way that ends Codex at once', async () => {
    await cap(1);
    const headers = { 'User-Agent': 'codex_exec/0.171.0 (Debian 12.0.0; x86_64) dumb (codex_exec; 0.171.0)' };
    const client = realtime.client(`${scene.daemon.url}/v1/responses`, scene.secret, [], { headers });
    await once(client, 'open');
    answering(realtime.conversations[0]!.socket);
    let last = '';
    client.on('message', (data: Buffer) => (last = data.toString()));
    for (let i = 0; i < 2; i++) client.send(CREATE);
    await once(client, 'close');
    const error: unknown = JSON.parse(last);
    expect(error).to.deep.include({ type: 'error', status: 400 });
    expect(error).to.have.nested.include({
      'error.type': 'invalid_request_error',
      'error.message': 'token request limit reached: ask for another token',
    });
    expect((await records(2)).filter(({ status }) => status === 400)).to.have.lengthOf(1);
  });

  it('end at once when the token is revoked, in the middle of one too', async () => {
    const { client, socket, heard, closed } = await begin();
    client.send(CREATE);
    await once(socket, 'message');
    socket.send('{"type":"response.created","response":{"id":"r","model":"gpt-5"}}');
    await eventually('it has begun', () => heard.length === 1);
    const ended = once(socket, 'close');
    await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
    await ended;
    expect(await closed).to.deep.equal({ code: 1008, reason: 'token revoked' });
    expect(heard.at(-1)?.error).to.include({ code: 'token_revoked', message: 'token revoked' });
    const [response] = await records(1);
    expect(response).to.include({ status: 200, outcome: 'revoked', isForwarded: true });
  });

  // ---- what the client sends

  /** A connection, by default to /v1/responses, on which the client sends bytes, and the provider collects the messages that arrive. */
  const raw = async (target = '/v1/responses'): Promise<{ client: RawClient; asked: string[] }> => {
    const asked: string[] = [];
    const before = realtime.conversations.length;
    const client = await scene.client(head(`GET ${target}`, scene.secret, WEBSOCKET));
    expect((await client.response()).status).to.equal(101);
    await eventually('it is at the provider', () => realtime.conversations.length > before);
    realtime.conversations[before]!.socket.on('message', (data: Buffer) => asked.push(data.toString()));
    return { client, asked };
  };
  const frame = (payload: string | Buffer, options: FrameOptions = {}) =>
    frameOf(payload, { isMasked: true, ...options });

  const FORMS: Record<string, { frames: Buffer[]; uses?: number }> = {
    'in one frame': { frames: [frame(CREATE)] },
    'in bytes': { frames: [frame(CREATE, { opcode: 2 })] },
    'in fragments, with a ping in between': {
      frames: [
        frame('', { isFinal: false }),
        frame(CREATE.slice(0, 12), { opcode: 0, isFinal: false }),
        frame('ping', { opcode: 9 }),
        frame(CREATE.slice(12), { opcode: 0 }),
      ],
    },
    'twice in one segment': { frames: [frame(CREATE), frame(CREATE)], uses: 2 },
    'with an escaped type': { frames: [frame('{"type":"response\\u002ecre\\u0061te"}')] },
    'with an escaped key': { frames: [frame('{"\\u0074\\u0079p\\u0065":"response.create"}')] },
    'with its type last': { frames: [frame(`{"input":["${'x'.repeat(70_000)}"],"type":"response.create"}`)] },
    'after another type': { frames: [frame('{"type":"response.cancel","type":"response.create"}')] },
    'before another type': { frames: [frame('{"type":"response.create","type":"response.cancel"}')] },
    'after white space': { frames: [frame(`\ufeff \n${CREATE}`)] },
    'with a type that only resembles it': { frames: [frame('{"type":"response.created"}')], uses: 0 },
    'only within another message': {
      frames: [frame('{"type":"response.cancel","x":{"type":"response.create"}}')],
      uses: 0,
    },
  };
  for (const [what, { frames, uses = 1 }] of Object.entries(FORMS)) {
    it(`are counted if they are asked for ${what}, wherever the segments end`, async () => {
      const bytes = Buffer.concat(frames);
      const sizes = bytes.length > 10_000 ? [bytes.length, 1_000] : [bytes.length, 1, 7];
      for (const size of sizes) {
        const { client, asked } = await raw();
        const before = await scene.uses();
        for (let at = 0; at < bytes.length; at += size) client.send(bytes.subarray(at, at + size));
        client.send(frame('{"type":"end"}'));
        await eventually('all of it', () => asked.at(-1) === '{"type":"end"}');
        expect(asked).to.have.lengthOf(frames.length > 2 ? 2 : frames.length + 1);
        expect((await scene.uses()) - before, `in pieces of ${size}`).to.equal(uses);
        client.destroy();
      }
    });
  }

  const REFUSED: Record<string, { frames: Buffer[]; code: number }> = {
    'two documents in a message': {
      frames: [frame('{"type":"a"}{"type":"response.create"}{"type":"response.create"}')],
      code: 1007,
    },
    'a message without a type': { frames: [frame('{"model":"gpt-5"}')], code: 1007 },
    'a list': { frames: [frame(`[${CREATE}]`)], code: 1007 },
    'no JSON': { frames: [frame(Buffer.alloc(40, 0xff), { opcode: 2 })], code: 1007 },
    'an empty message': { frames: [frame('')], code: 1007 },
    'a frame without a mask': { frames: [frameOf(CREATE)], code: 1002 },
    'a compressed frame': { frames: [frame(CREATE, { rsv: 0x40 })], code: 1002 },
    'a message within a message': { frames: [frame('{', { isFinal: false }), frame(CREATE)], code: 1002 },
    'a message that is too large': {
      frames: [frame(`{"type":"response.create","input":"${'x'.repeat(110_000)}"}`)],
      code: 1009,
    },
    'fragments that are too large together': {
      frames: [
        frame('{', { isFinal: false }),
        ...Array.from({ length: 12 }, () => frame(' '.repeat(10_000), { opcode: 0, isFinal: false })),
      ],
      code: 1009,
    },
  };
  for (const [what, { frames, code }] of Object.entries(REFUSED)) {
    it(`are not asked for by ${what}: the connection closes with ${code}`, async () => {
      const { client, asked } = await raw();
      client.send(Buffer.concat(frames));
      await client.closed;
      const closing = client.pending.subarray(-200).toString('latin1');
      const at = closing.lastIndexOf('\x88');
      expect(closing.charCodeAt(at + 2) * 256 + closing.charCodeAt(at + 3)).to.equal(code);
      expect(asked).to.deep.equal([]);
      expect(await scene.uses()).to.equal(0);
      expect((await records(1))[0]).to.include({ outcome: 'refused', isForwarded: false });
    });
  }

  // ---- the other APIs

  it('cannot be hidden in a ping that overtakes the rest of a frame', async () => {
    const { client, asked } = await raw('/v1/realtime');
    const first = frame('{', { isFinal: false });
    client.send(Buffer.concat([frame('no JSON'), first.subarray(0, 1)]));
    await eventually('it is there', () => asked.length === 1);
    // Behind the first byte of that frame alone, this ping would be a part of a frame whose payload is white space, and then others.
    const hidden = [frame('', { opcode: 0 }), frame(CREATE)];
    const length = 8 + Buffer.concat(hidden).length;
    const spaces = Buffer.alloc(9).map((_, i) => 0x20 ^ (i % 4 === 0 ? 0x80 | length : 0));
    const ping = Buffer.concat([Buffer.from([0x89, 0x80 | length, 0, 0, 0]), spaces, ...hidden]);
    client.send(Buffer.concat([first.subarray(1), ping, frame('"type":"a"}', { opcode: 0 })]));
    await eventually('the message', () => asked.length > 1);
    expect(asked).to.deep.equal(['no JSON', '{"type":"a"}']);
    expect(await scene.uses()).to.equal(1);
  });

  it('are uses on /v1/realtime: the handshake pays for the first', async () => {
    await cap(3);
    const { client, socket, heard, closed } = await begin('/v1/realtime?model=gpt-realtime');
    const asked = answering(socket);
    expect(await scene.uses()).to.equal(1);
    for (let i = 0; i < 4; i++) client.send(CREATE);
    expect(await closed).to.deep.equal({ code: 1008, reason: 'token request limit reached' });
    expect(asked).to.have.lengthOf(3);
    expect(types(heard).filter((type) => type === 'response.completed')).to.have.lengthOf(3);
    expect(await scene.uses()).to.equal(3);
    expect((await records(4)).filter(({ isForwarded }) => isForwarded)).to.have.lengthOf(3);
  });

  it('are uses on /v1/realtime also if the provider begins them; the one beyond the cap is the last', async () => {
    await cap(2);
    const { socket, heard, closed } = await begin('/v1/realtime?model=gpt-realtime');
    for (let n = 1; n <= 3; n++) {
      socket.send(`{"type":"response.created","response":{"id":"${n}"}}`);
      socket.send(`{"type":"response.done","response":{"id":"${n}","usage":{"input_tokens":1,"output_tokens":1}}}`);
    }
    expect((await closed).code).to.equal(1008);
    expect(await scene.uses()).to.equal(2);
    expect(types(heard).filter((type) => type === 'response.created')).to.have.lengthOf(3);
    const recorded = (await records(3)).filter(({ isForwarded }) => isForwarded);
    expect(recorded.map(({ model, usage }) => [model, usage?.promptTokens ?? null])).to.deep.equal([
      ['gpt-realtime', 1],
      ['gpt-realtime', 1],
      ['gpt-realtime', null],
    ]);
  });

  const ERROR = '{"type":"error","error":{"code":"conversation_already_has_active_response","message":"no"}}';

  it('are not waited for on /v1/realtime if the provider has refused to begin them', async () => {
    await cap(3);
    const { client, socket, heard, closed } = await begin('/v1/realtime?model=gpt-realtime');
    const answers = ['{"type":"response.created","response":{"id":"1"}}', ERROR, ERROR];
    socket.on('message', () => {
      socket.send(answers.shift()!);
    });
    for (let i = 0; i < 4; i++) client.send(CREATE);
    await eventually('the answers', () => heard.length === 3);
    socket.send('{"type":"response.done","response":{"id":"1"}}');
    expect(await closed).to.deep.equal({ code: 1008, reason: 'token request limit reached' });
    expect(await scene.uses()).to.equal(3);
    const used = (await records(4)).filter(({ isForwarded }) => isForwarded);
    expect(used.map(({ outcome, code }) => [outcome, code])).to.deep.equal([
      ['ok', null],
      ['provider_error', 'conversation_already_has_active_response'],
      ['provider_error', 'conversation_already_has_active_response'],
    ]);
  });

  it('on /v1/realtime can be refused by the provider any number of times', async () => {
    const { client, socket } = await begin('/v1/realtime?model=gpt-realtime');
    let asked = 0;
    socket.on('message', () => {
      asked += 1;
      socket.send(ERROR);
    });
    for (let i = 0; i < 150; i++) client.send(CREATE);
    await eventually('all of them', () => asked === 150);
    client.close();
    const used = (await records(150)).filter(({ isForwarded }) => isForwarded);
    expect(used).to.have.lengthOf(150);
    expect(await scene.uses()).to.equal(150);
  });

  it('leave the use of a connection without responses to the connection', async () => {
    const { client } = await begin('/v1/realtime?model=gpt-realtime');
    client.close();
    expect(await records(1)).to.have.lengthOf(1);
    expect(scene.daemon.ended[0]).to.include({ status: 101, isForwarded: true, model: 'gpt-realtime' });
    expect(await scene.uses()).to.equal(1);
  });

  it('are what a provider reports as failed', async () => {
    const { client, socket, heard } = await begin();
    client.send(CREATE);
    await once(socket, 'message');
    socket.send('{"type":"response.created","response":{"id":"r"}}');
    socket.send('{"type":"response.failed","response":{"id":"r","error":{"code":"server_error","message":"no"}}}');
    client.send(CREATE);
    await once(socket, 'message');
    socket.send('{"type":"error","status":400,"error":{"code":"invalid_prompt","message":"no"}}');
    await eventually('both', () => heard.length === 3);
    client.close();
    const recorded = (await records(2)).filter(({ status }) => status === 200);
    expect(recorded.map(({ outcome, code }) => [outcome, code])).to.deep.equal([
      ['provider_error', 'server_error'],
      ['provider_error', 'invalid_prompt'],
    ]);
    expect(await scene.uses()).to.equal(2);
  });

  it('are uses as often as they are recorded, also if one begins that the provider has refused', async () => {
    const { client, socket, heard } = await begin();
    client.send(CREATE);
    await once(socket, 'message');
    socket.send('{"type":"error","status":400,"error":{"code":"invalid_prompt","message":"no"}}');
    socket.send('{"type":"response.created"}');
    socket.send('{"type":"response.done"}');
    await eventually('all', () => heard.length === 3);
    client.close();
    const used = (await records(2)).filter(({ isForwarded }) => isForwarded);
    expect(used.map(({ outcome }) => outcome)).to.deep.equal(['provider_error', 'ok']);
    expect(await scene.uses()).to.equal(2);
  });

  /** Delays each draw until it is called. */
  const delayDraws = (): { draws: (() => void)[]; restore: () => void } => {
    const { admission } = scene.daemon.daemon;
    const shipped = admission.draw.bind(admission);
    const draws: (() => void)[] = [];
    admission.draw = async (pass) => {
      await new Promise<void>((resolve) => draws.push(resolve));
      await shipped(pass);
    };
    const shippedForMessage = admission.drawForMessage.bind(admission);
    admission.drawForMessage = async (...given) => {
      await new Promise<void>((resolve) => draws.push(resolve));
      await shippedForMessage(...given);
    };
    const restore = () => {
      admission.draw = shipped;
      admission.drawForMessage = shippedForMessage;
    };
    return { draws, restore };
  };

  it('are begun by the provider one at a time while the unit is awaited', async () => {
    await cap(2);
    const { socket, heard, closed } = await begin('/v1/realtime');
    const response = ['{"type":"response.created","response":{}}', '{"type":"response.done","response":{}}'];
    for (const message of response) socket.send(message); // The handshake has paid for it.
    const { draws, restore } = delayDraws();
    try {
      for (let n = 2; n <= 4; n++) {
        for (const message of response) socket.send(message);
        await eventually('a draw', () => draws.length > 0);
        await new Promise(setImmediate);
      }
      expect(draws).to.have.lengthOf(1);
      draws[0]!();
      await eventually('the next one', () => draws.length === 2);
      draws[1]!();
      expect((await closed).code).to.equal(1008);
      expect(types(heard).filter((type) => type === 'response.created')).to.have.lengthOf(3);
      expect(await scene.uses()).to.equal(2);
    } finally {
      restore();
    }
  });

  it('are not drawn after the provider has left', async () => {
    const { client, asked } = await raw();
    client.socket.allowHalfOpen = true;
    const { socket } = realtime.conversations.at(-1)!;
    const ended = once(client.socket, 'end');
    socket.terminate();
    await ended;
    client.send(Buffer.concat([frame(CREATE), frame(CREATE)]));
    await client.closed;
    await records(1);
    expect(asked).to.deep.equal([]);
    expect(await scene.uses()).to.equal(0);
  });

  const LEAVING: Record<string, (client: WebSocket) => unknown> = {
    'the client leaves': (client) => {
      client.terminate();
    },
    'the token is revoked': () => scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`),
  };
  for (const [what, leave] of Object.entries(LEAVING)) {
    it(`are neither uses nor recorded if ${what} while the unit is awaited`, async () => {
      const { client } = await begin();
      const { draws, restore } = delayDraws();
      try {
        client.send(CREATE);
        await eventually('it waits', () => draws.length === 1);
        await leave(client);
        await records(1);
        draws[0]!();
        await scene.inFlight(0);
        await new Promise(setImmediate);
        const [connection] = await records(1);
        expect(connection).to.include({ status: 101, isForwarded: false, bytesIn: CREATE.length + 6 });
        expect(await scene.uses()).to.equal(0);
      } finally {
        restore();
      }
    });
  }

  it('are as many as wanted while there is no cap, but not at the same time', async () => {
    const { client, socket } = await begin();
    let asked = 0;
    socket.on('message', () => (asked += 1));
    for (let i = 0; i < 100; i++) client.send(CREATE);
    await eventually('64 of them', () => asked === 64);
    socket.send('{"type":"response.completed","response":{"id":"r"}}');
    await eventually('one more', () => asked === 65);
    expect(await scene.uses()).to.equal(65);
  });

  it('are turns in the Live API of Gemini: the handshake pays for the first', async () => {
    await cap(3);
    const target = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';
    const { client, socket, closed } = await begin(target);
    const asked: string[] = [];
    socket.on('message', (data: Buffer) => {
      asked.push(data.toString());
      const parts = [{ modelTurn: { parts: [{ text: 'a' }] } }, { modelTurn: { parts: [{ text: 'b' }] } }];
      for (const serverContent of parts) socket.send(Buffer.from(JSON.stringify({ serverContent })));
      const usageMetadata = { promptTokenCount: 4, responseTokenCount: 5, totalTokenCount: 9 };
      socket.send(Buffer.from(JSON.stringify({ serverContent: { turnComplete: true }, usageMetadata })));
    });
    // Text, and audio that the model answers by itself.
    client.send('{"clientContent":{"turns":[],"turnComplete":true}}');
    client.send('{"realtimeInput":{"audio":{"data":"AAAA"}}}');
    await eventually('two turns', async () => (await scene.uses()) === 2 && asked.length === 2);
    client.send('{"client_content":{"turns":[],"turn_complete":true}}');
    client.send('{"clientContent":{"turnComplete":true,"turns":[]}}');
    expect(await closed).to.deep.equal({ code: 1008, reason: 'token request limit reached' });
    expect(asked).to.have.lengthOf(3);
    expect(await scene.uses()).to.equal(3);
    const turns = (await records(4)).filter(({ isForwarded }) => isForwarded);
    expect(turns.map(({ usage }) => usage?.totalTokens)).to.deep.equal([9, 9, 9]);
  });

  it('cannot be begun by a provider again and again', async () => {
    const { socket, closed } = await begin('/v1/realtime');
    for (let n = 0; n < 100; n++) {
      socket.send('{"type":"response.created","response":{"id":"r"}}');
      socket.send('{"type":"response.done","response":{"id":"r"}}');
    }
    expect(await closed).to.deep.equal({ code: 1008, reason: 'upstream answered malformed' });
    expect(await scene.uses()).to.be.below(12);
    await eventually('all are recorded', () => scene.daemon.ended.length > 0);
    expect(scene.daemon.ended.length).to.be.below(15);
  });
});

describe('a response on a WebSocket for which nothing is to be generated', () => {
  it('spends no unit with COUNT_READS=false, but is refused once the cap is spent', async () => {
    const scene = await ProxyFixture.open({ COUNT_READS: 'false' });
    const realtime = new Realtime(scene.provider);
    try {
      const token = await scene.daemon.createToken(scene.project.id, { max_requests: 2 });
      const { client, socket } = await realtime.begin(scene.daemon.url, token.token, { target: '/v1/responses' });
      const asked = answering(socket);
      const closed = once(client, 'close');
      const warmUp = '{"type":"response.create","generate":false}';
      const generating = '{"type":"response.create","generate":true}';
      const ambiguous = '{"generate":false,"type":"response.create","generate":true}';
      for (const message of [warmUp, warmUp, generating, warmUp, ambiguous, warmUp]) client.send(message);
      expect((await closed)[0]).to.equal(1008);
      expect(asked).to.deep.equal([warmUp, warmUp, generating, warmUp, ambiguous]);
      expect((await scene.daemon.token(token.id)).request_count).to.equal(2);
    } finally {
      realtime.close();
      await scene.close();
    }
  });
});

describe('the rate limits of responses on a WebSocket', () => {
  it('are those of requests', async () => {
    const scene = await ProxyFixture.open({ GLOBAL_RATE_LIMIT: '4', RATE_LIMIT_WINDOW: '60s' });
    const realtime = new Realtime(scene.provider);
    try {
      const { client, socket } = await realtime.begin(scene.daemon.url, scene.secret, { target: '/v1/responses' });
      const asked = answering(socket);
      const closed = once(client, 'close');
      let last = '';
      client.on('message', (data: Buffer) => (last = data.toString()));
      for (let i = 0; i < 5; i++) client.send(CREATE);
      expect((await closed)[0]).to.equal(1008);
      expect(JSON.parse(last)).to.deep.include({ type: 'error', status: 429 });
      expect(last).to.contain('"code":"rate_limited"');
      // The handshake was the first.
      expect(asked).to.have.lengthOf(3);
      expect(await scene.uses()).to.equal(3);
    } finally {
      realtime.close();
      await scene.close();
    }
  });
});
