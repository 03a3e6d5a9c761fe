import { expect } from 'chai';
import { Writable } from 'node:stream';
import { createLog, type LogOptions } from '../../daemon/process/log.js';

const SECRET_TOKEN = `sk-wt-${'x'.repeat(49)}`;

/** What a log of these options writes. */
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

const loggedFields = (fields: Record<string, unknown>, options?: Partial<LogOptions>) =>
  JSON.parse(
    written((log) => {
      log.info('message', fields);
    }, options),
  ) as Record<string, unknown>;

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
      it(`whatever stands under ${name}`, () => {
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
      ['tokens behind a prefix', `id of_${SECRET_TOKEN}`, 'id of_********'],
      ['passwords of connection strings', 'at postgres://me:pass%word@host/db', 'at postgres://me:********@host/db'],
      ['passwords with an @ in them', 'at mysql://me:pass@word@host/db', 'at mysql://me:********@host/db'],
      [
        'passwords in a query',
        'at postgres://host/db?password=word&a=b',
        'at postgres://host/db?password=********&a=b',
      ],
    ] as const) {
      it(`${what} wherever they stand in a text`, () => {
        expect(loggedFields({ text, list: [text] })).to.deep.include({ text: masked, list: [masked] });
        expect(
          written((log) => {
            log.info(text);
          }),
        )
          .to.include(masked)
          .and.not.to.include(text);
      });
    }

    it('the values it was told about, wherever they stand', () => {
      const secrets = ['management-token', 'a+b/c=in base64'];
      const text = 'xx management-token yy a+b/c=in base64 zz management-token';
      expect(loggedFields({ text }, { secrets }).text).to.equal('xx ******** yy ******** zz ********');
    });

    it('secrets in the names of fields', () => {
      expect(loggedFields({ deeper: { [`of ${SECRET_TOKEN}`]: 1 } }).deeper).to.deep.equal({ 'of ********': 1 });
    });

    it('bytes, which would be shown by number', () => {
      expect(loggedFields({ bytes: Buffer.from('hidden'), deeper: [new Uint8Array(3)] })).to.deep.include({
        bytes: '…',
        deeper: ['…'],
      });
    });

    it('leaves words alone that end as a token begins', () => {
      expect(loggedFields({ text: 'task-abcdefghijkl' }).text).to.equal('task-abcdefghijkl');
    });

    it('leaves short words alone that happen to be a setting’s value', () => {
      expect(loggedFields({ text: 'the daemon' }, { secrets: ['the'] }).text).to.equal('the daemon');
    });

    it('leaves ids and obfuscated tokens readable', () => {
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
      it(`I04 keeps name, message, code, cause and stack, masked, and nothing a library hung on it (${format})`, () => {
        const text = written(
          (log) => {
            log.error('failed', { error: nested(), list: [{ error: nested() }] });
          },
          { format },
        );
        expect(text).to.include('the upstream said ********').and.to.include('refused Bearer ********');
        expect(text).to.include('ECONNRESET').and.to.include('log.test');
        expect(text).not.to.include('hidden').and.not.to.include('sk-wt-');
      });
    }

    it('I04 that was taken apart before it was logged hides what stands under a key or looks like a secret', () => {
      const headers = { authorization: 'Basic aGlkZGVu', 'set-cookie': ['hidden'], 'x-other': `Bearer hidden` };
      const config = { headers, url: `https://x/?key=${SECRET_TOKEN}`, auth: { password: 'hidden' } };
      const error = { message: nested().message, config };
      const line = loggedFields({ error });
      expect(line).to.have.nested.property('error.config.headers.authorization', '********');
      expect(JSON.stringify(line)).not.to.match(/hidden|aGlkZGVu|sk-wt-/);
    });

    it('that is its own cause comes to an end', () => {
      const error: Error & { cause?: unknown } = new Error('round');
      error.cause = error;
      expect(
        written((log) => {
          log.error('failed', { error });
        }),
      ).to.include('round');
    });
  });

  describe('a line', () => {
    for (const format of ['json', 'text'] as const) {
      it(`cannot be forged by what is logged (${format})`, () => {
        const name = 'x\n{"level":"error","message":"forged"}\r\nforged\u2028forged';
        const text = written(
          (log) => {
            log.info(`message ${name}`, { name });
          },
          { format },
        );
        expect(text.split(/[\r\n\u2028\u2029\u0085]/)).to.have.length(2);
        expect(text).to.match(/\n$/);
      });
    }

    it('in text has no character that would drive a terminal', () => {
      const controls = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code)).join('');
      const text = written(
        (log) => {
          log.info(`message ${controls}`, { controls });
        },
        { format: 'text' },
      );
      // eslint-disable-next-line no-control-regex
      expect(text.slice(0, -1)).not.to.match(/[\u0000-\u001f\u007f-\u009f]/);
    });

    it('in JSON has a time, a level, the message and the fields', () => {
      const { time, ...rest } = JSON.parse(
        written((log) => {
          log.warn('careful', { count: 3 });
        }),
      ) as Record<string, unknown>;
      expect(rest).to.deep.equal({ level: 'warn', message: 'careful', count: 3 });
      expect(time).to.match(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    });

    it('is written from the level on that it was changed to', () => {
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

    it('is written from the level on that was asked for', () => {
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
});
