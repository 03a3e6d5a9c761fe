import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import type { NewToken } from '../../daemon/core/ports.js';
import { digestOf, mintSecret } from '../../daemon/core/token.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, UPSTREAM_KEY } from '../support/daemon.js';
import { problemOf } from '../support/management.js';
import { type Fields, head, type RawResponse } from '../support/raw.js';
import { type Expected, expectRefusal, LIMIT_REACHED, PROJECT_INACTIVE, UNAUTHORIZED } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';

const MINUTE_MS = 60_000;
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const INACTIVE = { is_active: false };

describe('H: authentication', () => {
  const { stage, it } = staged();

  /** All bytes of the response except the Date. The connection closes after it. */
  const bytesFor = async (authorization: string | null, more: Fields = {}, start = 'GET /v1/models') => {
    const credential: Fields = authorization === null ? {} : { Authorization: authorization };
    const fields: Fields = { ...credential, 'X-Request-ID': 'the-same', Connection: 'close', ...more };
    const client = await stage.client(head(start, null, fields));
    await client.closed;
    return client.pending.toString('latin1').replace(/^Date: .*$/m, 'Date: …');
  };
  /** The response to a request on /v1 without a credential. */
  const bare = async () => withoutHint(await bytesFor(null));
  /** A response without its hint on the form and place of a credential, so that nothing in it depends on a credential. */
  const withoutHint = (bytes: string) =>
    bytes
      .replace(/,"hint":"[^"]*"/, '')
      .replace(/^Content-Length: \d+/m, 'Content-Length: …')
      .replace('Bearer error="invalid_token"', 'Bearer');
  const revoke = ({ id }: WireTokenCreated) => stage.daemon.manage('DELETE', `/manage/tokens/${id}`);
  /** Attempts are counted from zero again, and no timer remembers them. */
  const forgetAttempts = () => {
    stage.daemon.clock.advance(MINUTE_MS);
    stage.daemon.clock.advance(MINUTE_MS);
  };
  const statements = () => stage.daemon.daemon.stores.database.statements;

  describe('on /v1', () => {
    it('H01 every invalid token gets the same 401 byte for byte, except for a hint to the holder of a correct secret, and the log does not mention it', async () => {
      const [revoked, expired] = [await stage.issue(), await stage.issue({ duration_minutes: 1 })];
      await revoke(revoked);
      stage.daemon.clock.advance(MINUTE_MS);
      const { secret } = stage;
      const notWhole = {
        'too short': secret.slice(0, -1),
        'too long': `${secret}a`,
        'with a wrong checksum': secret.slice(0, -1) + (secret.endsWith('0') ? '1' : '0'),
      };
      const noTokens = { 'of another kind': canary('client'), 'in capitals': secret.toUpperCase() };
      const whole = { unknown: mintSecret(), expired: expired.token, revoked: revoked.token };
      const refused = { ...notWhole, ...noTokens, ...whole };
      const ofForm = async (token: string) => {
        const bytes = await bytesFor(`Bearer ${token}`);
        expect(bytes)
          .to.match(/^HTTP\/1\.1 401 Unauthorized\r\n/)
          .and.to.include('\r\nWWW-Authenticate: Bearer error="invalid_token"\r\n');
        return bytes;
      };
      const words: Record<string, string> = {};
      for (const tokens of [notWhole, noTokens, whole]) {
        const expected = await ofForm(tokens === whole ? mintSecret() : (Object.values(tokens)[0] ?? ''));
        for (const [what, wrong] of Object.entries(tokens)) {
          for (const round of ['first', 'second']) {
            const bytes = await bytesFor(`Bearer ${wrong}`);
            words[what] = / error_description="(\w+)"/.exec(bytes)?.[1] ?? '';
            const rest = bytes.replace(/, error_description="\w+"/, '');
            expect(rest, `${what}, the ${round} time`).to.equal(expected);
          }
        }
      }
      const holders = { expired: 'expired', revoked: 'revoked' };
      expect(words).to.deep.equal({
        ...Object.fromEntries(Object.keys(refused).map((what) => [what, ''])),
        ...holders,
      });
      await stage.expectNothingSpent();
      const said = stage.daemon.logged.join('');
      for (const wrong of Object.values(refused)) {
        for (const trace of [wrong, digestOf(wrong)]) expect(said.includes(trace), 'logged').to.equal(false);
      }
    });

    for (const [what, write] of Object.entries<(secret: string) => string>({
      Bearer: (secret) => `Bearer ${secret}`,
      bearer: (secret) => `bearer ${secret}`,
      BEARER: (secret) => `BEARER ${secret}`,
      'white space around it, which is not part of the value (RFC 9110, 5.5)': (secret) => ` \tBearer ${secret} \t`,
    })) {
      it(`H04 a secret with ${what} is accepted, and the upstream receives the key in its place, once`, async () => {
        const answer = await stage.ask(head('GET /v1/models', null, { Authorization: write(stage.secret) }));
        expect(answer.status).to.equal(200);
        expect((await stage.upstream.only()).all('authorization')).to.deep.equal([`Bearer ${UPSTREAM_KEY}`]);
      });
    }

    for (const [what, write] of Object.entries<(secret: string) => string>({
      'a tab': (secret) => `Bearer\t${secret}`,
      'two spaces': (secret) => `Bearer  ${secret}`,
      'no space': (secret) => `Bearer${secret}`,
      'no scheme': (secret) => secret,
      'text after it': (secret) => `Bearer ${secret} b`,
      'a second credential after it': (secret) => `Bearer ${secret}, Bearer ${secret}`,
      quotes: (secret) => `Bearer "${secret}"`,
      'another scheme': (secret) => `Basic ${Buffer.from(`:${secret}`).toString('base64')}`,
      'a scheme that begins the same': (secret) => `Bearer-Token ${secret}`,
      'only the scheme': () => 'Bearer',
      nothing: () => '',
      '16 KiB': (secret) => `Bearer ${secret.repeat(300)}`,
    })) {
      it(`H04 a secret with ${what} is refused`, async () => {
        expect(withoutHint(await bytesFor(write(stage.secret)))).to.equal(await bare());
        await stage.expectNothingSpent();
      });
    }

    it('H01 one connection may carry requests of several clients: each is judged by its own secret', async () => {
      const [one, other] = [await stage.issue(), await stage.issue()];
      const client = await stage.client();
      const ask = async (secret: string) => {
        client.send(head('GET /v1/models', null, { Authorization: `Bearer ${secret}` }));
        return client.response();
      };
      const changedAt = (at: number) =>
        one.token.slice(0, at) + (one.token[at] === 'x' ? 'y' : 'x') + one.token.slice(at + 1);
      for (const { token } of [one, one, other, one, other, other]) expect((await ask(token)).status).to.equal(200);
      for (const wrong of [changedAt(6), changedAt(30), changedAt(54), one.token.slice(0, -1)]) {
        expect((await ask(one.token)).status).to.equal(200);
        expectRefusal(await ask(wrong), UNAUTHORIZED);
      }
      await revoke(one);
      expectRefusal(await ask(one.token), UNAUTHORIZED);
      expect((await ask(other.token)).status).to.equal(200);
      expectRefusal(await ask(one.token), UNAUTHORIZED);
      client.destroy();
      expect([await stage.uses(one), await stage.uses(other)]).to.deep.equal([7, 4]);
    });

    for (const [what, fields, start] of [
      ['the query', () => ({}), () => `GET /v1/models?api_key=${stage.secret}&access_token=${stage.secret}`],
      ['the path', () => ({}), () => `GET /v1/${stage.secret}`],
      ['a cookie', () => ({ Cookie: `token=${stage.secret}; Authorization=Bearer ${stage.secret}` })],
      ['X-Auth-Token', () => ({ 'X-Auth-Token': stage.secret })],
      ['Proxy-Authorization', () => ({ 'Proxy-Authorization': `Bearer ${stage.secret}` })],
      ['X-Forwarded-Authorization', () => ({ 'X-Forwarded-Authorization': `Bearer ${stage.secret}` })],
      ['a name with an underscore', () => ({ HTTP_AUTHORIZATION: `Bearer ${stage.secret}` })],
    ] as readonly [string, () => Fields, (() => string)?][]) {
      it(`H07 a secret in ${what} is not accepted: 401, and it is not logged`, async () => {
        const refused = withoutHint(await bytesFor(null, fields(), start?.()));
        // In a URL the code names it.
        if (start) expect(refused).to.match(/^HTTP\/1\.1 401 [^]*"credential_in_query"/);
        else expect(refused).to.equal(await bare());
        await stage.expectNothingSpent();
        expect(stage.daemon.logged.join('').includes(stage.secret)).to.equal(false);
      });
    }

    it('H07 the query is forwarded, and neither logged nor recorded', async () => {
      const asked = canary('client');
      expect((await stage.ask(stage.get({}, `/v1/models?search=${asked}`))).status).to.equal(200);
      expect((await stage.upstream.only()).target).to.equal(`/v1/models?search=${asked}`);
      expect(await stage.onlyRecord()).to.include({ path: '/v1/models' });
      expect(JSON.stringify([stage.daemon.logged, stage.daemon.ended])).not.to.include(asked);
    });

    it('H08 the management token on /v1 gets the same 401 as any other, and is never forwarded', async () => {
      expect(withoutHint(await bytesFor(`Bearer ${MANAGEMENT_TOKEN}`))).to.equal(await bare());
      await stage.expectNothingSpent();
    });
  });

  describe('on /manage', () => {
    const managed = (authorization: string | null) => bytesFor(authorization, {}, 'GET /manage/projects');
    const REFUSED =
      /^HTTP\/1\.1 401 Unauthorized\r\n[^]*\r\nWWW-Authenticate: Bearer\r\n[^]*"management_token_refused"/;

    it('H03 a wrong management token of any length gets the same 401 byte for byte', async () => {
      const expected = await managed(null);
      expect(expected).to.match(REFUSED);
      const wrong = Array.from({ length: MANAGEMENT_TOKEN.length + 2 }, (_, length) =>
        `${MANAGEMENT_TOKEN}xx`.slice(0, length + 1),
      ).filter((text) => text !== MANAGEMENT_TOKEN);
      for (const [index, text] of [...wrong, 'x'.repeat(16 * 1024)].entries()) {
        if (index % 10 === 9) forgetAttempts();
        expect(await managed(`Bearer ${text}`), `${text.length} characters`).to.equal(expected);
      }
      expect(await managed(`Bearer ${MANAGEMENT_TOKEN}`)).to.match(/^HTTP\/1\.1 200 /);
      forgetAttempts();
    });

    it("H08 a client's token on /manage gets the same 401 as any other", async () => {
      expect(await managed(`Bearer ${stage.secret}`)).to.equal(await managed(null));
      await stage.expectNothingSpent();
      forgetAttempts();
    });

    it('H12 without the management token, responses do not reveal which IDs exist', async () => {
      const expected = await bytesFor(null, {}, `GET /manage/tokens/${UNKNOWN_ID}`);
      expect(expected).to.match(REFUSED);
      const { id } = stage.project;
      const paths = [
        `tokens/${stage.token.id}`,
        `projects/${id}`,
        'tokens/nonsense',
        'nothing',
        'tokens?x=1',
        'projects/%zz',
      ];
      for (const path of paths) {
        for (const method of ['GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS']) {
          expect(await bytesFor(null, {}, `${method} /manage/${path}`)).to.equal(expected);
        }
      }
      const statusOf = async (id: string) => (await stage.daemon.manage('GET', `/manage/tokens/${id}`)).status;
      expect([await statusOf(stage.token.id), await statusOf(UNKNOWN_ID)]).to.deep.equal([200, 404]);
    });
  });

  it('H12 IDs have 122 random bits; the other bits are the version', async () => {
    const MANY = 64;
    const ids = (await Promise.all(Array.from({ length: MANY }, () => stage.issue()))).map(({ id }) => id);
    const numbers = ids.map((id) => BigInt(`0x${id.replaceAll('-', '')}`));
    const onesAt = (bit: number) => numbers.filter((number) => (number >> BigInt(bit)) & 1n).length;
    const constant = Array.from({ length: 128 }, (_, bit) => bit).filter((bit) => [0, MANY].includes(onesAt(bit)));
    expect(constant, 'bits that are always the same').to.deep.equal([62, 63, 76, 77, 78, 79]);
  });

  describe('look-alikes', () => {
    const utf8 = (text: string) => Buffer.from(text).toString('latin1');
    const ALIKE: Record<string, (credential: string) => string> = {
      'percent-encoded': (text) => text.replaceAll('-', '%2D'),
      'in Cyrillic': (text) => utf8(text.replace(/[ae]/, 'а')) + utf8('а'),
      'in full-width letters': (text) => utf8(`ｓ${text.slice(1)}`),
      'with a zero-width joiner': (text) => utf8(`${text.slice(0, 8)}\u200d${text.slice(8)}`),
      'with a dash instead of its hyphen': (text) => utf8(text.replace('-', '‐')),
      'with an accent': (text) => utf8(`${text}\u0301`),
      'with another kind of space before it': (text) => `\u00a0${text}`,
      'in SQL': (text) => `${text}'--`,
      'in SQL that is always true': () => `'OR'1'='1`,
      'as a pattern': () => 'sk-wt-%',
    };
    for (const [what, write] of Object.entries(ALIKE)) {
      it(`H09 a credential ${what} is refused without a database lookup`, async () => {
        const before = await stage.databaseAtRest();
        expect(withoutHint(await bytesFor(`Bearer ${write(stage.secret)}`))).to.equal(await bare());
        expect(statements(), 'statements').to.equal(before);
        const managed = await bytesFor(`Bearer ${write(MANAGEMENT_TOKEN)}`, {}, 'GET /manage/projects');
        expect(managed).to.match(/^HTTP\/1\.1 401 /);
        await stage.expectNothingSpent();
        expect(stage.daemon.logged.join('').includes(write(stage.secret)), 'logged').to.equal(false);
        forgetAttempts();
      });
    }

    for (const [what, control] of Object.entries({ NUL: '\0', ESC: '\x1b[2J', DEL: '\x7f', CR: '\rX: y' })) {
      it(`H09 ${what} in a credential is invalid HTTP: 400, the connection closes, and the log stays safe for a terminal`, async () => {
        for (const [start, credential] of [
          ['GET /v1/models', stage.secret],
          ['GET /manage/projects', MANAGEMENT_TOKEN],
        ] as const) {
          const client = await stage.client(head(start, null, { Authorization: `Bearer ${credential}${control}` }));
          expect((await client.response()).json).to.include({ code: 'malformed_request' });
          await client.closed;
        }
        await stage.expectNothingSpent();
        // eslint-disable-next-line no-control-regex
        expect(stage.daemon.logged.join('')).not.to.match(/[\x00-\x09\x0b-\x1f\x7f]/);
      });
    }
  });

  describe('unknown tokens', () => {
    it('H11 an unknown token costs one lookup, however often it is tried', async () => {
      const client = await stage.client();
      const MANY = 100;
      const before = await stage.databaseAtRest();
      for (let i = 0; i < MANY; i++) {
        client.send(head('GET /v1/models', mintSecret()).repeat(4));
        for (let tries = 0; tries < 4; tries++) expectRefusal(await client.response(), UNAUTHORIZED);
      }
      expect(statements() - before, 'statements').to.equal(MANY);
      await stage.expectNothingSpent();
    });
  });

  describe('at rest', () => {
    it('H13 the database has only the digest of a secret, and its eight characters that are displayed', async () => {
      await stage.daemon.daemon.stores.database.transact((tx) => tx.select('PRAGMA user_version'));
      const { databasePath } = stage.daemon;
      const dump = [databasePath, `${databasePath}-wal`].map((path) => readFileSync(path, 'latin1')).join('');
      expect(dump).to.include(digestOf(stage.secret));
      const hidden = stage.secret.slice('sk-wt-'.length + 4, -4);
      for (let at = 0; at + 6 <= hidden.length; at++) {
        expect(dump.includes(hidden.slice(at, at + 6)), `six characters at ${at}`).to.equal(false);
      }
    });

    it('H13 a secret is looked up in a unique index', async () => {
      const { database } = stage.daemon.daemon.stores;
      const plan = await database.select<{ detail: string }>(
        'EXPLAIN QUERY PLAN SELECT t.id FROM tokens t JOIN projects p ON p.id = t.project_id WHERE t.digest = $digest',
        { digest: digestOf(stage.secret) },
      );
      const [, index = ''] = /^SEARCH t USING INDEX (\S+) \(digest=\?\)$/.exec(plan[0]?.detail ?? '') ?? [];
      const indexes = await database.select<{ name: string; unique: number }>('PRAGMA index_list(tokens)');
      expect(indexes.find(({ name }) => name === index)).to.include({ unique: 1 });
    });
  });

  it('H14 a new secret that equals an existing one is replaced without an error', async () => {
    const { records } = stage.daemon.daemon.stores;
    const change = records.change.bind(records);
    let clashes = 1;
    records.change = (work) =>
      change((tx) => {
        const insertToken = tx.insertToken.bind(tx);
        tx.insertToken = (token: NewToken) =>
          insertToken(clashes-- > 0 ? { ...token, digest: digestOf(stage.secret) } : token);
        return work(tx);
      });
    try {
      const other = await stage.issue();
      expect((await stage.ask(head('GET /v1/models', other.token))).status).to.equal(200);
      expect(await stage.uses(other)).to.equal(1);
      expect(await stage.uses(), 'of the existing token').to.equal(0);
      clashes = 2;
      const fields = { project_id: stage.project.id };
      problemOf(await stage.daemon.manage('POST', '/manage/tokens', fields), 500, 'internal');
    } finally {
      records.change = change;
    }
  });

  describe('one reason or several at once', () => {
    type Failure = 'revoked' | 'expired' | 'inactive' | 'exhausted';
    const FAILURES: readonly Failure[] = ['revoked', 'expired', 'inactive', 'exhausted'];
    const ANSWERS: Record<Failure, Expected> = {
      revoked: UNAUTHORIZED,
      expired: UNAUTHORIZED,
      inactive: PROJECT_INACTIVE,
      exhausted: LIMIT_REACHED,
    };

    /** The response to a token that fails for all these reasons. The upstream saw nothing of the request. */
    async function answerTo(failures: readonly Failure[]): Promise<RawResponse> {
      const { daemon } = stage;
      const project = await daemon.createProject();
      const token = await stage.issue({ project_id: project.id, duration_minutes: 1, max_requests: 1 });
      if (failures.includes('exhausted')) await stage.ask(head('GET /v1/models', token.token));
      if (failures.includes('expired')) daemon.clock.advance(MINUTE_MS);
      if (failures.includes('revoked')) await revoke(token);
      if (failures.includes('inactive')) await daemon.manage('PATCH', `/manage/projects/${project.id}`, INACTIVE);
      const uses = failures.includes('exhausted') ? 1 : 0;
      const answer = await stage.ask(head('GET /v1/models', token.token));
      expect(stage.upstream.exchanges, 'requests at the upstream').to.have.lengthOf(uses);
      expect(await stage.uses(token), 'uses').to.equal(uses);
      return answer;
    }

    const pairs = FAILURES.flatMap((one, index) => FAILURES.slice(index + 1).map((other) => [one, other] as const));
    for (const failures of [...FAILURES.map((one) => [one]), ...pairs, FAILURES]) {
      const expected = ANSWERS[failures[0]!];
      it(`H15 ${failures.join(' and ')}: ${expected.status}, and nothing is spent`, async () => {
        const answer = await answerTo(failures);
        expectRefusal(answer, expected);
        expect(answer.header('retry-after'), 'waiting does not help').to.equal(undefined);
      });
    }

    it('H16 in an inactive project every request gets 403; requests pass again when the project is active', async () => {
      const { daemon } = stage;
      const project = await daemon.createProject();
      const { token } = await stage.issue({ project_id: project.id });
      const requests = [
        ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => head(`${method} /v1/models`, token)),
        head('POST /v1/files', token, { 'Content-Length': '5' }) + 'hello',
        head('POST /v1/files', token, { 'Transfer-Encoding': 'chunked' }) + '5\r\nhello\r\n0\r\n\r\n',
        head('GET /v1/no/such/path?x=1', token),
      ];
      await daemon.manage('PATCH', `/manage/projects/${project.id}`, INACTIVE);
      const client = await stage.client();
      for (const request of requests) {
        client.send(request);
        expectRefusal(await client.response(), PROJECT_INACTIVE);
      }
      client.send(head('HEAD /v1/models', token));
      expect((await client.response('HEAD')).status).to.equal(403);
      await stage.expectNothingSpent();

      await daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: true });
      for (const request of requests) {
        client.send(request);
        expect((await client.response()).status).to.equal(200);
      }
      expect(stage.upstream.exchanges).to.have.lengthOf(requests.length);
    });
  });
});

describe('H: secrets', () => {
  it('H14 secrets are 256 random bits: each bit is 1 half of the time, even if other random sources are constant', () => {
    const MANY = 4_000;
    const { random } = Math;
    Math.random = () => 0.5;
    const secrets = Array.from({ length: MANY }, mintSecret);
    Math.random = random;
    const numbers = secrets.map((secret) => numberOf(secret.slice('sk-wt-'.length, -6)));
    for (let bit = 0n; bit < 256n; bit++) {
      const ones = numbers.filter((number) => (number >> bit) & 1n).length;
      // Seven standard deviations: by chance once in 10^9 runs.
      expect(Math.abs(ones - MANY / 2), `bit ${bit}`).to.be.below((7 * Math.sqrt(MANY)) / 2);
    }
    expect(numbers.every((number) => number < 2n ** 256n)).to.equal(true);
  });
});

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const numberOf = (digits: string) =>
  Array.from(digits).reduce((value, digit) => value * 62n + BigInt(BASE62.indexOf(digit)), 0n);
