import { expect } from 'chai';
import { Writable } from 'node:stream';
import { createLog, type LogOptions } from '../../daemon/process/log.js';

const SECRET_TOKEN = `sk-wt-${'x'.repeat(49)}`;

/** The output of a log with these options. */
function written(use: (log: ReturnType<typeof createLog>) => void, options: Partial<LogOptions> = {}): string {
  let text = '';
  const stream = new Writable({
    decodeStrings: false,
    write(piece: string, _encoding, done) {
      text += piece;
      done();
    },
  });
  use(createLog({ level: 'debug', format: 'json', secrets: [], stream, ...options }));
  return text;
}

type Level = 'debug' | 'info' | 'warn' | 'error';
/** The output for one message. */
const line = (level: Level, message: string, fields?: Record<string, unknown>, options?: Partial<LogOptions>) =>
  written((log) => {
    log[level](message, fields);
  }, options);

const loggedFields = (fields: Record<string, unknown>, options?: Partial<LogOptions>) =>
  JSON.parse(line('info', 'message', fields, options)) as Record<string, unknown>;

describe('the log', () => {
  describe('masks', () => {
    for (const name of [
      'authorization',
      'Authorization',
      'proxy-authorization',
      'cookie',
      'Set-Cookie',
      'password',
      'clientSecret',
      'credentials',
      'token',
      'managementToken',
      'api_key',
      'apiKey',
      'apikey',
      'x-api-key',
      'encryptionKey',
      'upstream_key',
      'upstreamKey',
    ]) {
      it(`any value of the field ${name}`, () => {
        expect(loggedFields({ [name]: 'hidden', deeper: [{ [name]: { in: 'hidden' } }] })).to.deep.include({
          [name]: '********',
          deeper: [{ [name]: '********' }],
        });
      });
    }

    for (const [what, text, masked] of [
      ['tokens', `used ${SECRET_TOKEN}, then`, 'used ********, then'],
      ['provider keys', 'key sk-proj-abc_DEF-123 failed', 'key ******** failed'],
      ['bearer credentials', 'authorization: Bearer abc.def', 'authorization: Bearer ********'],
      ['bearer credentials of any case', 'BEARER abc', 'BEARER ********'],
      ['basic credentials', 'authorization: Basic dTpw', 'authorization: Basic ********'],
      ['tokens after a prefix', `id of_${SECRET_TOKEN}`, 'id of_********'],
      ['passwords of connection strings', 'at postgres://me:pass%word@host/db', 'at postgres://me:********@host/db'],
      ['passwords with an @ in them', 'at mysql://me:pass@word@host/db', 'at mysql://me:********@host/db'],
      [
        'passwords in a query',
        'at postgres://host/db?password=word&a=b',
        'at postgres://host/db?password=********&a=b',
      ],
    ] as const) {
      it(`${what} anywhere in a text`, () => {
        expect(loggedFields({ text, list: [text] })).to.deep.include({ text: masked, list: [masked] });
        expect(line('info', text)).to.include(masked).and.not.to.include(text);
      });
    }

    it('known secret values anywhere in a text', () => {
      const secrets = ['management-token', 'a+b/c=in base64'];
      const text = 'xx management-token yy a+b/c=in base64 zz management-token';
      expect(loggedFields({ text }, { secrets }).text).to.equal('xx ******** yy ******** zz ********');
    });

    it('secrets in field names', () => {
      expect(loggedFields({ deeper: { [`of ${SECRET_TOKEN}`]: 1 } }).deeper).to.deep.equal({ 'of ********': 1 });
    });

    it('bytes, which would be written as numbers', () => {
      expect(loggedFields({ bytes: Buffer.from('hidden'), deeper: [new Uint8Array(3)] })).to.deep.include({
        bytes: '…',
        deeper: ['…'],
      });
    });

    it('does not mask words that end like the prefix of a token', () => {
      expect(loggedFields({ text: 'task-abcdefghijkl' }).text).to.equal('task-abcdefghijkl');
    });

    it('does not mask short words that are the value of a secret setting', () => {
      expect(loggedFields({ text: 'the daemon' }, { secrets: ['the'] }).text).to.equal('the daemon');
    });

    it('does not mask IDs and obfuscated tokens', () => {
      const fields = { tokenId: 'c384f773', obfuscated: 'sk-wt-AbCd…WxYz', requestId: 'r-1', tokens: 3 };
      expect(loggedFields(fields)).to.include(fields);
    });
  });

  describe('of an error', () => {
    const nested = () => {
      const cause = Object.assign(new Error(`refused Bearer ${SECRET_TOKEN}`), {
        code: 'ECONNRESET',
        config: { headers: { authorization: 'Bearer hidden' }, url: 'hidden' },
        request: { body: 'hidden' },
      });
      return new Error(`the upstream said ${SECRET_TOKEN}`, { cause });
    };

    for (const format of ['json', 'text'] as const) {
      it(`I04 logs name, message, code, cause and stack, masked, and nothing that a library attached (${format})`, () => {
        const text = line('error', 'failed', { error: nested(), list: [{ error: nested() }] }, { format });
        expect(text).to.include('the upstream said ********').and.to.include('refused Bearer ********');
        expect(text).to.include('ECONNRESET').and.to.include('log.test');
        expect(text).not.to.include('hidden').and.not.to.include('sk-wt-');
      });
    }

    it('I04 that was converted to an object before logging masks secret fields and values that look like secrets', () => {
      const headers = { authorization: 'Basic aGlkZGVu', 'set-cookie': ['hidden'], 'x-other': `Bearer hidden` };
      const config = { headers, url: `https://x/?key=${SECRET_TOKEN}`, auth: { password: 'hidden' } };
      const error = { message: nested().message, config };
      const line = loggedFields({ error });
      expect(line).to.have.nested.property('error.config.headers.authorization', '********');
      expect(JSON.stringify(line)).not.to.match(/hidden|aGlkZGVu|sk-wt-/);
    });

    it('that is its own cause is logged', () => {
      const error: Error & { cause?: unknown } = new Error('round');
      error.cause = error;
      expect(line('error', 'failed', { error })).to.include('round');
    });
  });

  describe('a line', () => {
    for (const format of ['json', 'text'] as const) {
      it(`cannot be forged by logged values (${format})`, () => {
        const name = 'x\n{"level":"error","message":"forged"}\r\nforged\u2028forged';
        const text = line('info', `message ${name}`, { name }, { format });
        expect(text.split(/[\r\n\u2028\u2029\u0085]/)).to.have.length(2);
        expect(text).to.match(/\n$/);
      });
    }

    it('in text format has no control characters', () => {
      const controls = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code)).join('');
      const text = line('info', `message ${controls}`, { controls }, { format: 'text' });
      // eslint-disable-next-line no-control-regex
      expect(text.slice(0, -1)).not.to.match(/[\u0000-\u001f\u007f-\u009f]/);
    });

    it('in JSON format has a time, a level, the message and the fields', () => {
      const { time, ...rest } = JSON.parse(line('warn', 'careful', { count: 3 })) as Record<string, unknown>;
      expect(rest).to.deep.equal({ level: 'warn', message: 'careful', count: 3 });
      expect(time).to.match(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    });

    it('is written according to the level that was set last', () => {
      const text = written(
        (log) => {
          log.info('one');
          log.level = 'debug';
          log.debug('two');
          log.level = 'error';
          log.warn('three');
        },
        { level: 'warn' },
      );
      expect(text.match(/one|two|three/g)).to.deep.equal(['two']);
    });

    it('is written according to the configured level', () => {
      const text = written(
        (log) => {
          log.debug('one');
          log.info('two');
          log.warn('three');
          log.error('four');
        },
        { level: 'warn', format: 'text' },
      );
      expect(text.match(/one|two|three|four/g)).to.deep.equal(['three', 'four']);
    });
  });

  describe('in the journal of systemd', () => {
    const inJournal = { format: 'text', isInJournal: true } as const;

    it('starts each line with its priority, and has no timestamp', () => {
      const text = written((log) => {
        log.debug('one');
        log.info('two', { count: 2 });
        log.warn('three');
        log.error('four');
      }, inJournal);
      expect(text).to.equal('<7>one\n<6>two {"count":2}\n<4>three\n<3>four\n');
    });

    it('writes one line per record, and logged text cannot set the priority', () => {
      const text = line('info', 'a\n<0>b', { error: new Error('c\n<0>d') }, inJournal);
      expect(text.match(/\n/g)).to.have.length(1);
      expect(text).to.match(/^<6>a\\n<0>b /);
    });

    it('writes JSON after the priority with LOG_FORMAT=json', () => {
      const text = line('warn', 'careful', { count: 3 }, { isInJournal: true });
      expect(text.slice(0, 3)).to.equal('<4>');
      expect(JSON.parse(text.slice(3))).to.deep.equal({ level: 'warn', message: 'careful', count: 3 });
    });
  });
});
