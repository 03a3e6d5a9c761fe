import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import type { NewToken } from '../../daemon/core/ports.js';
import { digestOf, mintSecret } from '../../daemon/core/token.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, UPSTREAM_KEY } from '../support/daemon.js';
import { problemOf } from '../support/management.js';
import { type Fields, head, type RawAnswer } from '../support/raw.js';
import { type Expected, expectRefusal, LIMIT_REACHED, PROJECT_INACTIVE, UNAUTHORIZED } from '../support/refusals.js';
import { staged } from './support/stage.js';

const MINUTE_MS = 60_000;
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const INACTIVE = { is_active: false };

describe('H: who may pass', () => {
  const { stage, it } = staged();

  /** All bytes of the answer, but for the date; the connection ends behind it. */
  const bytesFor = async (authorization: string | null, more: Fields = {}, start = 'GET /v1/models') => {
    const credential: Fields = authorization === null ? {} : { Authorization: authorization };
    const fields: Fields = { ...credential, 'X-Request-ID': 'the-same', Connection: 'close', ...more };
    const client = await stage.client(head(start, null, fields));
    await client.closed;
    return client.pending.toString('latin1').replace(/^Date: .*$/m, 'Date: …');
  };
  /** What a request on /v1 without a credential gets. */
  const bare = async () => withoutHint(await bytesFor(null));
  /** An answer without what it says of the form and the place of a credential; so nothing of a credential itself is in it. */
  const withoutHint = (bytes: string) =>
    bytes
      .replace(/,"hint":"[^"]*"/, '')
      .replace(/^Content-Length: \d+/m, 'Content-Length: …')
      .replace('Bearer error="invalid_token"', 'Bearer');
  const revoke = ({ id }: WireTokenCreated) => stage.daemon.manage('DELETE', `/manage/tokens/${id}`);
  /** So that attempts count anew, and no timer remembers them. */
  const forgetAttempts = () => {
    stage.daemon.clock.advance(MINUTE_MS);
    stage.daemon.clock.advance(MINUTE_MS);
  };
  const statements = () => stage.daemon.daemon.stores.database.statements;

  describe('on /v1', () => {
    it('H01 every token that may not gets the same 401 byte for byte, but for one word to the holder of a right secret, and no word about it is logged', async () => {
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
      'white space around it, which is none of it (RFC 9110, 5.5)': (secret) => ` \tBearer ${secret} \t`,
    })) {
      it(`H04 takes a secret with ${what}, and the upstream sees the key in its place, once`, async () => {
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
      'something behind it': (secret) => `Bearer ${secret} b`,
      'a second one behind it': (secret) => `Bearer ${secret}, Bearer ${secret}`,
      quotes: (secret) => `Bearer "${secret}"`,
      'another scheme': (secret) => `Basic ${Buffer.from(`:${secret}`).toString('base64')}`,
      'a scheme that begins alike': (secret) => `Bearer-Token ${secret}`,
      'the scheme alone': () => 'Bearer',
      nothing: () => '',
      '16 KiB': (secret) => `Bearer ${secret.repeat(300)}`,
    })) {
      it(`H04 refuses a secret with ${what}`, async () => {
        expect(withoutHint(await bytesFor(write(stage.secret)))).to.equal(await bare());
        await stage.expectNothingSpent();
      });
    }

    it('H01 one connection may bear the requests of several clients: each goes by the secret that it bears itself', async () => {
      const [one, other] = [await stage.issue(), await stage.issue()];
      const client = await stage.client();
      const ask = async (secret: string) => {
        client.send(head('GET /v1/models', null, { Authorization: `Bearer ${secret}` }));
        return client.answer();
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
      ['X-Api-Key', () => ({ 'X-Api-Key': stage.secret })],
      ['Api-Key', () => ({ 'Api-Key': stage.secret })],
      ['Proxy-Authorization', () => ({ 'Proxy-Authorization': `Bearer ${stage.secret}` })],
      ['X-Forwarded-Authorization', () => ({ 'X-Forwarded-Authorization': `Bearer ${stage.secret}` })],
      ['a name with an underscore', () => ({ HTTP_AUTHORIZATION: `Bearer ${stage.secret}` })],
    ] as readonly [string, () => Fields, (() => string)?][]) {
      it(`H07 a secret in ${what} is none: 401, and it is not logged`, async () => {
        const refused = withoutHint(await bytesFor(null, fields(), start?.()));
        // In the URL it is named: finding C10.
        if (start) expect(refused).to.match(/^HTTP\/1\.1 401 [^]*"credential_in_query"/);
        else expect(refused).to.equal(await bare());
        await stage.expectNothingSpent();
        expect(stage.daemon.logged.join('').includes(stage.secret)).to.equal(false);
      });
    }

    it('H07 the query is passed on and neither logged nor recorded', async () => {
      const asked = canary('client');
      expect((await stage.ask(stage.get({}, `/v1/models?search=${asked}`))).status).to.equal(200);
      expect((await stage.upstream.only()).target).to.equal(`/v1/models?search=${asked}`);
      expect(await stage.onlyEnd()).to.include({ path: '/v1/models' });
      expect(JSON.stringify([stage.daemon.logged, stage.daemon.ended])).not.to.include(asked);
    });

    it('H08 the management token is no token here: it gets the 401 of all, and never goes upstream', async () => {
      expect(withoutHint(await bytesFor(`Bearer ${MANAGEMENT_TOKEN}`))).to.equal(await bare());
      await stage.expectNothingSpent();
    });
  });

  describe('on /manage', () => {
    const managed = (authorization: string | null) => bytesFor(authorization, {}, 'GET /manage/projects');
    const REFUSED =
      /^HTTP\/1\.1 401 Unauthorized\r\n[^]*\r\nWWW-Authenticate: Bearer\r\n[^]*"management_token_refused"/;

    it('H03 a wrong management token gets the same 401 byte for byte, however long it is', async () => {
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

    it('H08 a token is no management token here: it gets the 401 of all', async () => {
      expect(await managed(`Bearer ${stage.secret}`)).to.equal(await managed(null));
      await stage.expectNothingSpent();
      forgetAttempts();
    });

    it('H12 nobody learns without the management token which ids there are', async () => {
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

  it('H12 ids say nothing of each other: 122 random bits, the rest is the version', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 200; i++) ids.push((await stage.issue()).id);
    const numbers = ids.map((id) => BigInt(`0x${id.replaceAll('-', '')}`));
    const onesAt = (bit: number) => numbers.filter((number) => (number >> BigInt(bit)) & 1n).length;
    const constant = Array.from({ length: 128 }, (_, bit) => bit).filter((bit) => [0, 200].includes(onesAt(bit)));
    expect(constant, 'bits that are always the same').to.deep.equal([62, 63, 76, 77, 78, 79]);
  });

  describe('what looks alike', () => {
    const utf8 = (text: string) => Buffer.from(text).toString('latin1');
    const ALIKE: Record<string, (credential: string) => string> = {
      'percent-encoded': (text) => text.replaceAll('-', '%2D'),
      'in Cyrillic': (text) => utf8(text.replace(/[ae]/, 'а')) + utf8('а'),
      'in full-width letters': (text) => utf8(`ｓ${text.slice(1)}`),
      'with a joiner of no width': (text) => utf8(`${text.slice(0, 8)}\u200d${text.slice(8)}`),
      'with a dash for its hyphen': (text) => utf8(text.replace('-', '‐')),
      'with an accent': (text) => utf8(`${text}\u0301`),
      'with a space of another kind before it': (text) => `\u00a0${text}`,
      'in SQL': (text) => `${text}'--`,
      'in SQL that is always true': () => `'OR'1'='1`,
      'as a pattern': () => 'sk-wt-%',
    };
    for (const [what, write] of Object.entries(ALIKE)) {
      it(`H09 is refused without asking the database: a credential ${what}`, async () => {
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
      it(`H09 is no HTTP at all with ${what} in it: 400, the connection ends, and the log stays fit for a terminal`, async () => {
        for (const [start, credential] of [
          ['GET /v1/models', stage.secret],
          ['GET /manage/projects', MANAGEMENT_TOKEN],
        ] as const) {
          const client = await stage.client(head(start, null, { Authorization: `Bearer ${credential}${control}` }));
          expect((await client.answer()).json).to.include({ code: 'malformed_request' });
          await client.closed;
        }
        await stage.expectNothingSpent();
        // eslint-disable-next-line no-control-regex
        expect(stage.daemon.logged.join('')).not.to.match(/[\x00-\x09\x0b-\x1f\x7f]/);
      });
    }
  });

  describe('tokens nobody was given', () => {
    it('H11 cost one look-up each, however often they are tried', async () => {
      const client = await stage.client();
      const MANY = 100;
      const before = await stage.databaseAtRest();
      for (let i = 0; i < MANY; i++) {
        client.send(head('GET /v1/models', mintSecret()).repeat(4));
        for (let tries = 0; tries < 4; tries++) expectRefusal(await client.answer(), UNAUTHORIZED);
      }
      expect(statements() - before, 'statements').to.equal(MANY);
      await stage.expectNothingSpent();
    });
  });

  describe('at rest', () => {
    it('H13 the database holds of a secret its digest, and the eight characters that are shown', async () => {
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

  it('H14 a secret that another token has is made anew, and nobody hears of it', async () => {
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
      expect(await stage.uses(), 'of the one that had it').to.equal(0);
      clashes = 2;
      const fields = { project_id: stage.project.id };
      problemOf(await stage.daemon.manage('POST', '/manage/tokens', fields), 500, 'internal');
    } finally {
      records.change = change;
    }
  });

  describe('several reasons at once', () => {
    type Failure = 'revoked' | 'expired' | 'inactive' | 'exhausted';
    const FAILURES: readonly Failure[] = ['revoked', 'expired', 'inactive', 'exhausted'];
    const ANSWERS: Record<Failure, Expected> = {
      revoked: UNAUTHORIZED,
      expired: UNAUTHORIZED,
      inactive: PROJECT_INACTIVE,
      exhausted: LIMIT_REACHED,
    };

    /** The answer to a token that fails for all these reasons; the upstream saw nothing of the request. */
    async function answerTo(failures: readonly Failure[]): Promise<RawAnswer> {
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
    for (const failures of [...pairs, FAILURES]) {
      const expected = ANSWERS[failures[0]!];
      it(`H15 ${failures.join(' and ')}: ${expected.status}, and nothing is spent`, async () => {
        const answer = await answerTo(failures);
        expectRefusal(answer, expected);
        expect(answer.header('retry-after'), 'waiting does not help').to.equal(undefined);
      });
    }

    it('H16 in an inactive project every request is 403, and passes again once it is active', async () => {
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
        expectRefusal(await client.answer(), PROJECT_INACTIVE);
      }
      client.send(head('HEAD /v1/models', token));
      expect((await client.answer('HEAD')).status).to.equal(403);
      await stage.expectNothingSpent();

      await daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: true });
      for (const request of requests) {
        client.send(request);
        expect((await client.answer()).status).to.equal(200);
      }
      expect(stage.upstream.exchanges).to.have.lengthOf(requests.length);
    });
  });
});

describe('H: secrets', () => {
  it('H14 are 256 random bits: each is one as often as zero, whatever other sources of chance give', () => {
    const MANY = 4_000;
    const { random } = Math;
    Math.random = () => 0.5;
    const secrets = Array.from({ length: MANY }, mintSecret);
    Math.random = random;
    const numbers = secrets.map((secret) => numberOf(secret.slice('sk-wt-'.length, -6)));
    for (let bit = 0n; bit < 256n; bit++) {
      const ones = numbers.filter((number) => (number >> bit) & 1n).length;
      // Seven standard deviations: once in 10^9 runs by chance.
      expect(Math.abs(ones - MANY / 2), `bit ${bit}`).to.be.below((7 * Math.sqrt(MANY)) / 2);
    }
    expect(numbers.every((number) => number < 2n ** 256n)).to.equal(true);
  });
});

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const numberOf = (digits: string) =>
  Array.from(digits).reduce((value, digit) => value * 62n + BigInt(BASE62.indexOf(digit)), 0n);
