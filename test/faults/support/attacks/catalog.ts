/** The attacks of findings-3, each as what its provider and its clients do. */
import { brotliCompressSync } from 'node:zlib';
import { head } from '../../../support/raw.js';
import type { AttackerPlan, ProviderPlan } from './plans.js';

export const ATTACK_NAMES = ['A1', 'A2', 'A4', 'A5', 'A6', 'A9'] as const;
export type AttackName = (typeof ATTACK_NAMES)[number];

export interface AttackOptions {
  attack: AttackName;
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

const BLOCK_BYTES = 64 * 1024;
const MB = 1e6;

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

function upload({ variant, token, target, connections, rate }: AttackOptions, secret: string): AttackerPlan {
  const found = UPLOADS[variant];
  if (!found) throw new Error(`--variant must be one of ${Object.keys(UPLOADS).join(', ')}`);
  const { fields = {}, begins = '', ...plan } = found;
  const { post, type } = TARGETS[target];
  const all: Record<string, string> = plan.upgrades ? HANDSHAKE : { ...CHUNKED, 'Content-Type': type, ...fields };
  const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
  const start = plan.upgrades ? 'GET /v1/realtime' : post;
  return {
    connections: connections ?? 8,
    head: head(start, token ? secret : null, given) + begins,
    reads: 'all',
    returns: true,
    leavesOnAnswer: !plan.upgrades && !variant.startsWith('after-refusal'),
    ...(rate !== undefined && { bytesPerSecond: rate * MB }),
    ...plan,
  };
}

const SSE = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n';

const FLOODS: Record<string, { response?: string; block: string; upgrades?: boolean }> = {
  chunks: {
    response:
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n',
    block: blockOf('1\r\nx\r\n'),
  },
  sse: {
    response: `${SSE}Transfer-Encoding: chunked\r\n\r\n`,
    block: blockOf('1\r\nd\r\n1\r\n:\r\n1\r\nx\r\n1\r\n\n\r\n1\r\n\n\r\n'),
  },
  websocket: { block: blockOf(serverFrame('x')), upgrades: true },
};

function flood({ variant, connections, token }: AttackOptions, secret: string, atFirst: number): Attack {
  const found = FLOODS[variant];
  if (!found) throw new Error(`--variant must be one of ${Object.keys(FLOODS).join(', ')}`);
  const { response, block, upgrades = false } = found;
  return {
    provider: { reads: true, block, ...(response !== undefined && { response }) },
    attacker: {
      connections: connections ?? atFirst,
      head: head(
        upgrades ? 'GET /v1/realtime' : 'GET /v1/models/{{n}}',
        token ? secret : null,
        upgrades ? HANDSHAKE : {},
      ),
      upgrades,
      reads: 'none',
    },
    env: {},
  };
}

/** Unpacks to 4 MB of newlines. */
const PACKED = brotliCompressSync(Buffer.alloc(4 * MB, '\n'));

const BUILDERS: Record<AttackName, (options: AttackOptions, secret: string) => Attack> = {
  A1: (options, secret) => ({ provider: { reads: true }, attacker: upload(options, secret), env: {} }),
  A2: (options, secret) => ({
    provider: { reads: false },
    attacker: upload({ ...options, connections: options.connections ?? 300 }, secret),
    env: {},
  }),
  A4: ({ connections, answers = 400 }, secret) => ({
    provider: {
      reads: true,
      response: `${SSE}Content-Encoding: br\r\nContent-Length: ${PACKED.length}\r\n\r\n`,
      bodyBase64: PACKED.toString('base64'),
    },
    attacker: {
      connections: connections ?? 50,
      head: head('POST /v1/chat/completions', secret, { 'Content-Length': '0' }),
      reads: 'all',
      requests: answers,
      answerEndsWith: PACKED.toString('latin1').slice(-4),
    },
    env: {},
  }),
  A5: (options, secret) => flood(options, secret, 300),
  A6: (options, secret) => {
    const built = flood({ ...options, variant: 'websocket' }, secret, 8);
    return {
      ...built,
      provider: { ...built.provider, block: blockOf(serverFrame('xxxx')) },
      attacker: { ...built.attacker, reads: 'all' },
    };
  },
  A9: ({ connections, variant }, secret) => ({
    provider: {
      reads: true,
      response: `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: max-age=300\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`,
      delayMs: 300,
    },
    attacker: {
      connections: connections ?? 1_000,
      head: head('GET /v1/models/{{pair}}', secret),
      reads: variant === 'nobody-reads' ? 'none' : 'every second connection',
    },
    env: { HTTP_CACHE_ENABLED: 'true' },
  }),
};

/** @param secret of the attackers' token. */
export function planOf(options: AttackOptions, secret: string): Attack {
  const { env, ...plans } = BUILDERS[options.attack](options, secret);
  return { ...plans, env: { ...env, ...(options.cache && { HTTP_CACHE_ENABLED: 'true' }) } };
}
