import winston from 'winston';
import { MASK, withoutSecrets } from '../core/masking.js';
import type { Log, LogLevel } from '../core/ports.js';
import { PRIORITY } from './journal.js';
import { Flood } from './log-flood.js';

const SECRET_KEY = /authorization|cookie|password|secret|credential|token$|(?:api|encryption|upstream)[-_]?key/i;
// Beside what looks like a secret anywhere: the credential of a header, and the passwords of a connection string.
const SECRET_TEXT = /(?<=\b(?:bearer|basic) )[^\s"',]+|(?<=:\/\/[^\s/:@]*:)[^\s/"']+(?=@)|(?<=\bpassword=)[^\s&"',]+/gi;
const DEEPEST = 6;

/** Hides what gives itself away as a secret by its pattern. */
export const maskText = (text: string): string => withoutSecrets(text).replace(SECRET_TEXT, MASK);

/** Hides secrets in anything that is to be logged: by the name of a field, by their pattern, and by value. */
export function masker(secrets: readonly string[]): (value: unknown) => unknown {
  // Short ones would blot out innocent text; those are warned about at start.
  const known = secrets.filter((secret) => secret.length >= 8);

  const maskKnown = (text: string) => maskText(known.reduce((masked, secret) => masked.replaceAll(secret, MASK), text));

  const mask = (value: unknown, depth: number): unknown => {
    if (typeof value === 'string') return maskKnown(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth > DEEPEST) return '…';
    if (value instanceof Date) return value;
    if (ArrayBuffer.isView(value)) return '…'; // Bytes would be shown by number.
    if (Array.isArray(value)) return value.map((item) => mask(item, depth + 1));
    if (value instanceof Error) return mask(plainError(value), depth + 1);
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [maskKnown(key), SECRET_KEY.test(key) ? MASK : mask(item, depth + 1)]),
    );
  };
  return (value) => mask(value, 0);
}

/** Of an error only what is known to be harmless once masked: some libraries hang whole requests on theirs. */
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
  /** Values that must never appear. */
  secrets: readonly string[];
  stream: NodeJS.WritableStream;
  /** Whether that leads to the journal of systemd, which knows the time, and takes the level from in front of a line. */
  isInJournal?: boolean;
}

export interface AdjustableLog extends Log {
  /** The least severe that is written; may be set at any time. */
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
  const flood = new Flood((name, fields) => {
    logger.log(name, 'records were left out of the log', fields);
  });
  const at =
    (name: LogLevel): Log[LogLevel] =>
    (message, fields) => {
      // Winston does most of its work before it looks at the level, and asks each transport too; the proxy logs each request at debug.
      if (SEVERITY[name] > SEVERITY[current]) return;
      if (flood.lets(name, message, stream)) logger.log(name, message, fields);
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

const LINE = Symbol.for('message'); // Where winston keeps what is written.

/** JSON quoting escapes what would forge a line or drive a terminal, all but what lies beyond ASCII. */
const printable = winston.format((info) =>
  Object.assign(info, {
    [LINE]: String(info[LINE]).replace(
      /[\x7f-\x9f\u2028\u2029]/g,
      (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
  }),
);

/** What comes from elsewhere stands behind it, and so is no priority. */
const prioritised = winston.format((info) =>
  Object.assign(info, { [LINE]: PRIORITY[info.level as LogLevel] + String(info[LINE]) }),
);
