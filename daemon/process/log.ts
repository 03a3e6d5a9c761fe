import winston from 'winston';
import { MASK, withoutSecrets } from '../core/masking.js';
import type { Log, LogLevel } from '../core/ports.js';
import { PRIORITY } from './journal.js';
import { LogRateLimiter } from './log-rate-limiter.js';

const SECRET_KEY = /authorization|cookie|password|secret|credential|token$|(?:api|encryption|upstream)[-_]?key/i;
// In addition to the patterns of llmp and provider secrets: credentials of headers, and passwords of connection strings.
const SECRET_TEXT = /(?<=\b(?:bearer|basic) )[^\s"',]+|(?<=:\/\/[^\s/:@]*:)[^\s/"']+(?=@)|(?<=\bpassword=)[^\s&"',]+/gi;
const MAX_DEPTH = 6;

/** Masks secrets that can be recognised by their pattern. */
export const maskText = (text: string): string => withoutSecrets(text).replace(SECRET_TEXT, MASK);

/** Masks secrets in a value to be logged: by field name, by pattern, and by known value. */
export function masker(secrets: readonly string[]): (value: unknown) => unknown {
  // Short secrets would mask ordinary text. A warning about them is logged at start.
  const known = secrets.filter((secret) => secret.length >= 8);

  const maskKnown = (text: string) => maskText(known.reduce((masked, secret) => masked.replaceAll(secret, MASK), text));

  const mask = (value: unknown, depth: number): unknown => {
    if (typeof value === 'string') return maskKnown(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth > MAX_DEPTH) return '…';
    if (value instanceof Date) return value;
    if (ArrayBuffer.isView(value)) return '…'; // JSON would show the bytes as numbers.
    if (Array.isArray(value)) return value.map((item) => mask(item, depth + 1));
    if (value instanceof Error) return mask(plainError(value), depth + 1);
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [maskKnown(key), SECRET_KEY.test(key) ? MASK : mask(item, depth + 1)]),
    );
  };
  return (value) => mask(value, 0);
}

/** The fields of an error that are safe after masking. Some libraries attach whole requests to their errors. */
function plainError(error: Error): Record<string, unknown> {
  const { code } = error as { code?: unknown };
  return {
    name: error.name,
    message: error.message,
    ...(typeof code === 'string' && { code }),
    ...(error.cause !== undefined && { cause: error.cause instanceof Error ? error.cause : '…' }),
    stack: error.stack,
  };
}

export interface LogOptions {
  level: LogLevel;
  format: 'json' | 'text';
  /** Values that must never appear in the log. */
  secrets: readonly string[];
  stream: NodeJS.WritableStream;
  /** Whether `stream` is the journal of systemd, which adds the time itself and reads the level from a prefix. */
  isInJournal?: boolean;
}

export interface AdjustableLog extends Log {
  /** The least severe level that is written. May be changed at any time. */
  level: LogLevel;
}

const SEVERITY: Readonly<Record<LogLevel, number>> = { error: 0, warn: 1, info: 2, debug: 3 };

export function createLog({ level, format, secrets, stream, isInJournal = false }: LogOptions): AdjustableLog {
  const mask = masker(secrets);
  const masked = winston.format((info) => Object.assign(info, mask({ ...info })));
  const stamped = winston.format((info) => Object.assign(info, { time: new Date().toISOString() }));
  const logger = winston.createLogger({
    level,
    format: winston.format.combine(
      ...(isInJournal ? [] : [stamped()]),
      masked(),
      format === 'json' ? winston.format.json() : winston.format.printf(isInJournal ? asMessage : asText),
      printable(),
      ...(isInJournal ? [prioritised()] : []),
    ),
    transports: [new winston.transports.Stream({ stream, eol: '\n' })],
  });
  let current = level;
  const flood = new LogRateLimiter((name, fields) => {
    logger.log(name, 'log records dropped', fields);
  });
  const at =
    (name: LogLevel): Log[LogLevel] =>
    (message, fields) => {
      // Checked here because winston checks the level late, and the proxy logs each request at debug.
      if (SEVERITY[name] > SEVERITY[current]) return;
      if (flood.allows(name, message, stream)) logger.log(name, message, fields);
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    get level() {
      return current;
    },
    set level(next) {
      logger.level = current = next;
    },
  };
}

function asText(info: winston.Logform.TransformableInfo): string {
  const { time, ...rest } = info;
  return `${String(time)} ${info.level.toUpperCase().padEnd(5)} ${asMessage(rest)}`;
}

function asMessage({ level: _, message, ...fields }: winston.Logform.TransformableInfo): string {
  const rest = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : '';
  return JSON.stringify(message).slice(1, -1) + rest;
}

const LINE = Symbol.for('message'); // Where winston stores the line to write.

/** Escapes control characters that could forge a line or control a terminal, and that JSON quoting leaves as they are. */
const printable = winston.format((info) =>
  Object.assign(info, {
    [LINE]: String(info[LINE]).replace(
      /[\x7f-\x9f\u2028\u2029]/g,
      (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
  }),
);

/** Prepends the priority. Logged text follows it, and so cannot set the priority. */
const prioritised = winston.format((info) =>
  Object.assign(info, { [LINE]: PRIORITY[info.level as LogLevel] + String(info[LINE]) }),
);
