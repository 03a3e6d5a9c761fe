/** Attacks, each as what its provider and its clients do. */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { head } from '../../../support/raw.js';
import type { AttackerPlan, ProviderPlan } from './plans.js';

export const ATTACK_NAMES = ['A1', 'A2', 'A4', 'A5', 'A6', 'A9'] as const;
export type AttackName = (typeof ATTACK_NAMES)[number];

export interface AttackOptions {
  attack: AttackName;
  /** One of `VARIANTS`. */
  variant: string;
  /** Where the default of the attack is not meant. */
  connections?: number | undefined;
  /** Whether the attackers have a valid token. */
  token: boolean;
  /** For uploads: the paths under which they go. */
  target: 'v1' | 'manage' | 'admin';
  /** For uploads: the most that each connection sends, in MB per second. */
  rate?: number | undefined;
  /** For A4: the number of answers. */
  answers?: number | undefined;
  /** Whether the daemon caches responses. */
  cache?: boolean | undefined;
}

export interface Attack {
  provider: ProviderPlan;
  attacker: AttackerPlan;
  env: Record<string, string>;
}

/** Stands for the secret of the attackers' token, which is not known before the daemon has issued it. */
export const SECRET = '{{secret}}';

const BLOCK_BYTES = 64 * 1024;
const MB = 1e6;

function formOf<Form>(forms: Readonly<Record<string, Form>>, variant: string): Form {
  const found = forms[variant];
  if (found === undefined) throw new Error(`the variants are ${Object.keys(forms).join(', ')}`);
  return found;
}

const blockOf = (unit: string) => unit.repeat(Math.floor(BLOCK_BYTES / unit.length));

/** A masked frame of a WebSocket client, with one byte. */
const CLIENT_FRAME = '\x82\x81\x00\x00\x00\x00x';
const serverFrame = (text: string) => `\x81${String.fromCharCode(text.length)}${text}`;

const HANDSHAKE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

const CHUNKED = { 'Transfer-Encoding': 'chunked', 'Content-Type': 'application/json' };

/** What follows the head of an upload, by variant. */
const UPLOADS: Record<string, Partial<AttackerPlan> & { fields?: Record<string, string>; begins?: string }> = {
  chunks: { block: blockOf('1\r\nx\r\n') },
  /** For comparison: what any upload costs. */
  plain: { block: `10000\r\n${'x'.repeat(BLOCK_BYTES)}\r\n` },
  chunks17: { block: blockOf(`11\r\n${'x'.repeat(17)}\r\n`) },
  extensions: { block: blockOf('1;a=b\r\nx\r\n') },
  segments: { block: 'x', inSegments: true, fields: { 'Content-Length': String(40 * MB), 'Transfer-Encoding': '' } },
  trailers: { begins: '1\r\nx\r\n0\r\n', block: blockOf('a:b\r\n') },
  websocket: { block: blockOf(CLIENT_FRAME), upgrades: true },
  'after-refusal': { block: blockOf('1\r\nx\r\n') },
  'after-refusal-plain': { block: `10000\r\n${'x'.repeat(BLOCK_BYTES)}\r\n` },
};

const TARGETS = {
  v1: { post: 'POST /v1/echo', type: 'application/json' },
  manage: { post: 'POST /manage/tokens', type: 'application/json' },
  admin: { post: 'POST /admin/login', type: 'application/x-www-form-urlencoded' },
};

function upload({ variant, token, target, connections, rate }: AttackOptions): AttackerPlan {
  const { fields = {}, begins = '', ...plan } = formOf(UPLOADS, variant);
  const { post, type } = TARGETS[target];
  const all: Record<string, string> = plan.upgrades ? HANDSHAKE : { ...CHUNKED, 'Content-Type': type, ...fields };
  const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
  const start = plan.upgrades ? 'GET /v1/realtime' : post;
  return {
    connections: connections ?? 8,
    head: head(start, token ? SECRET : null, given) + begins,
    reads: 'all',
    returns: true,
    leavesOnAnswer: !plan.upgrades && !variant.startsWith('after-refusal'),
    ...(rate !== undefined && { bytesPerSecond: rate * MB }),
    ...plan,
  };
}

const SSE = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n';

const JSON_CHUNKS =
  'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n';

/** Responses that never end, by variant. */
const FLOODS: Record<string, { response?: string; block: string; upgrades?: boolean; target?: string }> = {
  chunks: { response: JSON_CHUNKS, block: blockOf('1\r\nx\r\n') },
  extensions: { response: JSON_CHUNKS, block: blockOf('1;a=b\r\nx\r\n') },
  // With the cache all requests wait for one response.
  shared: { response: JSON_CHUNKS, block: blockOf('1\r\nx\r\n'), target: '/v1/models/one' },
  sse: {
    response: `${SSE}Transfer-Encoding: chunked\r\n\r\n`,
    block: blockOf('1\r\nd\r\n1\r\n:\r\n1\r\nx\r\n1\r\n\n\r\n1\r\n\n\r\n'),
  },
  websocket: { block: blockOf(serverFrame('x')), upgrades: true },
  informational: { block: blockOf('HTTP/1.1 103 Early Hints\r\n\r\n') },
  trailers: { response: `${JSON_CHUNKS}1\r\nx\r\n0\r\n`, block: blockOf('a:b\r\n') },
};

function flooding({ variant, connections = 300, rate }: AttackOptions): Attack {
  const { response, block, upgrades = false, target = '/v1/models/{{n}}' } = formOf(FLOODS, variant);
  return {
    provider: {
      reads: true,
      block,
      connections,
      ...(response !== undefined && { response }),
      ...(rate !== undefined && { bytesPerSecond: rate * MB }),
    },
    attacker: {
      connections,
      head: upgrades ? head('GET /v1/realtime', SECRET, HANDSHAKE) : head(`GET ${target}`, SECRET),
      upgrades,
      reads: 'none',
    },
    env: {},
  };
}

const UNPACKED_BYTES = 4 * MB;

/** Bodies that unpack to very much more, by variant. */
const PACKED: Record<string, { type: string; coding: string; pack: () => Buffer }> = {
  br: { type: 'text/event-stream', coding: 'br', pack: () => brotliCompressSync(Buffer.alloc(UNPACKED_BYTES, '\n')) },
  gzip: { type: 'text/event-stream', coding: 'gzip', pack: () => gzipSync(Buffer.alloc(UNPACKED_BYTES, '\n')) },
  deflate: {
    type: 'text/event-stream',
    coding: 'deflate',
    pack: () => deflateSync(Buffer.alloc(UNPACKED_BYTES, '\n')),
  },
  events: {
    type: 'text/event-stream',
    coding: 'br',
    pack: () => brotliCompressSync(Buffer.alloc(UNPACKED_BYTES, 'data: {}\n\n')),
  },
  json: {
    type: 'application/json',
    coding: 'br',
    pack: () => brotliCompressSync(Buffer.concat([Buffer.from('{"a":'), Buffer.alloc(UNPACKED_BYTES, '[')])),
  },
  // More than the daemon unpacks of any answer.
  larger: { type: 'text/event-stream', coding: 'br', pack: () => brotliCompressSync(Buffer.alloc(100 * MB, '\n')) },
};

function unpacking({ variant, connections = 50, answers = 400 }: AttackOptions): Attack {
  const { type, coding, pack } = formOf(PACKED, variant);
  const body = pack();
  return {
    provider: {
      reads: true,
      response: `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\n\r\n`,
      bodyBase64: body.toString('base64'),
    },
    attacker: {
      connections,
      head: head('POST /v1/chat/completions', SECRET, { 'Content-Length': '0' }),
      reads: 'all',
      requests: answers,
    },
    env: {},
  };
}

/** Messages on WebSockets to clients that read them, by variant. */
const MESSAGES: Record<string, () => { block: string }> = {
  four: () => ({ block: blockOf(serverFrame('xxxx')) }),
  empty: () => ({ block: blockOf(serverFrame('')) }),
  pings: () => ({ block: blockOf('\x89\x00') }),
  fragments: () => ({ block: `\x01\x01x${blockOf('\x00\x01x')}\x80\x01x` }),
  deltas: () => ({ block: blockOf(serverFrame('{"type":"response.output_text.delta","delta":"a"}')) }),
  begun: () => ({ block: blockOf(serverFrame('{"type":"response.created","response":{"id":"r"}}')) }),
};

function messages({ variant, connections = 8, rate }: AttackOptions): Attack {
  const { block } = formOf(MESSAGES, variant)();
  return {
    provider: {
      reads: true,
      block,
      connections,
      ...(rate !== undefined && { bytesPerSecond: rate * MB }),
    },
    attacker: { connections, head: head('GET /v1/realtime', SECRET, HANDSHAKE), upgrades: true, reads: 'all' },
    env: {},
  };
}

/** The forms of each attack; the first is the default. */
export const VARIANTS: Record<AttackName, readonly string[]> = {
  A1: Object.keys(UPLOADS),
  A2: Object.keys(UPLOADS),
  A4: Object.keys(PACKED),
  A5: Object.keys(FLOODS),
  A6: Object.keys(MESSAGES),
  A9: ['every-second-reads', 'nobody-reads'],
};

const BUILDERS: Record<AttackName, (options: AttackOptions) => Attack> = {
  A1: (options) => ({ provider: { reads: true }, attacker: upload(options), env: {} }),
  A2: (options) => ({
    provider: { reads: false },
    attacker: upload({ ...options, connections: options.connections ?? 300 }),
    env: {},
  }),
  A4: unpacking,
  A5: flooding,
  A6: messages,
  A9: ({ connections, variant }) => ({
    provider: {
      reads: true,
      response: `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: max-age=300\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`,
      delayMs: 300,
    },
    attacker: {
      connections: connections ?? 1_000,
      head: head('GET /v1/models/{{pair}}', SECRET),
      reads: variant === 'nobody-reads' ? 'none' : 'every second connection',
    },
    env: { HTTP_CACHE_ENABLED: 'true' },
  }),
};

export function planOf(options: AttackOptions): Attack {
  const { env, ...plans } = BUILDERS[options.attack](options);
  return { ...plans, env: { ...env, ...(options.cache && { HTTP_CACHE_ENABLED: 'true' }) } };
}
