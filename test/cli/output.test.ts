import { expect } from 'chai';
import type { WireToken } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { aWireToken } from '../support/factories.js';
import { perTest } from '../support/per-test.js';
import { type Captured, llmp, type Situation } from './captured.js';
import { answerJson, refuse, responds, startStandIn } from './stand-in.js';

const NOW = Date.UTC(2030, 0, 1, 12);
const at = (ms: number) => new Date(NOW + ms).toISOString();
const HOUR_MS = 3_600_000;

function token(fields: Partial<WireToken> = {}): WireToken {
  return aWireToken({
    name: 'ci-deploy',
    expires_at: at(2 * HOUR_MS),
    max_requests: 5000,
    request_count: 4211,
    cache_hit_count: 62,
    created_at: at(-26 * HOUR_MS),
    last_used_at: at(-3000),
    ...fields,
  });
}

// Content of a hostile name: clear the screen, set the title, the 8-bit CSI, a bell, a newline, a turned direction.
const HOSTILE = '\u001b[2J\u001b]0;x\u0007\u009b31m\n\t\u202e';

describe('the output', () => {
  const daemon = perTest(() => startStandIn());

  function listing(tokens: WireToken[], args = '', { env, ...situation }: Situation = {}): Promise<Captured> {
    daemon.answer = responds(tokens);
    return llmp(`token list ${args}`.trim(), {
      env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, LANG: 'C.UTF-8', ...env },
      nowMs: NOW,
      ...situation,
    });
  }

  describe('off a terminal', () => {
    it('is separated by tabs, with full IDs and RFC 3339 times, without colors and titles', async () => {
      const { out } = await listing([token(), token({ name: null, last_used_at: null })]);
      const [first, second] = out.trimEnd().split('\n');
      expect(first?.split('\t')).to.deep.equal([
        '3fa91c2e-1111-4111-8111-111111111111',
        'ci-deploy',
        '77ab10f3-2222-4222-8222-222222222222',
        'active',
        'true',
        '2030-01-01T14:00:00.000Z',
        '4211',
        '5000',
        '62',
        '2029-12-31T10:00:00.000Z',
        '2030-01-01T11:59:57.000Z',
        'sk-wt-abcd…wxyz',
        'web',
        ...Array<string>(6).fill(''),
        '{"usd":"0.00","tokens":0,"reserved_usd":"0.00","unpriced_requests":0,"since":"2029-12-31T10:00:00.000Z"}',
        '',
        '',
      ]);
      expect(second?.split('\t')[1]).to.equal('');
    });

    it('is a whole table without colors if -o table or LLMP_OUTPUT requests it', async () => {
      const name = 'a-name-of-more-characters-than-a-column-has-on-a-terminal';
      const { out } = await listing([token({ name })], '-o table');
      const [titles = '', row = ''] = out.split('\n');
      expect(titles).to.match(/^ID +NAME +PROJECT +STATE +EXPIRES +REQUESTS +SPENT +HITS +LAST USED +CREATED +SECRET$/);
      expect(row).to.contain(`3fa91c2e  ${name}  web      ● active  in 2h  `);
      expect((await listing([token({ name })], '', { env: { LLMP_OUTPUT: 'table' } })).out).to.equal(out);
    });
  });

  describe('on a terminal', () => {
    it('is an aligned table with relative times, and state as glyph and word', async () => {
      const tokens = [
        token(),
        token({ state: 'expired', name: 'öl', expires_at: at(-2 * HOUR_MS) }),
        token({ state: 'revoked', name: '東京' }),
        token({ state: 'rate_limited', request_count: 5000 }),
        token({ state: 'project_inactive', max_requests: 0, last_used_at: null }),
      ];
      const { out } = await listing(tokens, '--no-color', { terminal: 140 });
      expect(out.split('\n').map((line) => line.trimEnd())).to.deep.equal([
        'ID        NAME       PROJECT  STATE          EXPIRES     REQUESTS  SPENT  HITS  LAST USED  CREATED  SECRET',
        '3fa91c2e  ci-deploy  web      ● active       in 2h    4,211/5,000     $0    62  3s ago     26h ago  sk-wt-abcd…wxyz',
        '3fa91c2e  öl         web      ○ expired      2h ago   4,211/5,000     $0    62  3s ago     26h ago  sk-wt-abcd…wxyz',
        '3fa91c2e  東京       web      ✗ revoked      in 2h    4,211/5,000     $0    62  3s ago     26h ago  sk-wt-abcd…wxyz',
        '3fa91c2e  ci-deploy  web      ▲ limited      in 2h    5,000/5,000     $0    62  3s ago     26h ago  sk-wt-abcd…wxyz',
        '3fa91c2e  ci-deploy  web      ◌ project off  in 2h        4,211/∞     $0    62  never      26h ago  sk-wt-abcd…wxyz',
        '',
      ]);
    });

    it('uses ASCII with LLMP_ASCII=1, or where the locale has no UTF-8', async () => {
      const tokens = [token(), token({ state: 'revoked' }), token({ state: 'project_inactive', max_requests: 0 })];
      for (const env of [{ LLMP_ASCII: '1' }, { LC_ALL: 'C' }]) {
        const { out } = await listing(tokens, '--no-color', { terminal: 90, env });
        expect(out).to.contain('* active').and.to.contain('x revoked').and.to.contain('= project off');
        // eslint-disable-next-line no-control-regex
        expect(out).to.match(/^[\x00-\x7f]*$/);
      }
    });

    it('drops the least important columns rather than wrap', async () => {
      for (const width of [100, 80, 60, 40, 30]) {
        const { out } = await listing([token()], '--no-color', { terminal: width });
        const [title = ''] = out.split('\n');
        expect(title.length).to.be.at.most(width);
        expect(title).to.contain('ID').and.to.contain('STATE');
      }
      const { out } = await listing([token()], '--no-color', { terminal: 60 });
      expect(out).to.contain('NAME').and.to.contain('EXPIRES').and.not.to.contain('SECRET');
    });

    it('cuts a long name instead of losing columns to it', async () => {
      const { out } = await listing([token({ name: 'x'.repeat(100) })], '--no-color', { terminal: 80 });
      expect(out)
        .to.match(/ x{15,31}… /)
        .and.to.contain('EXPIRES');
    });

    for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
      it(`has no colour with ${JSON.stringify(env)}`, async () => {
        expect((await listing([token()], '', { terminal: 80 })).out).to.contain('\u001b[');
        expect((await listing([token()], '', { terminal: 80, env })).out).not.to.contain('\u001b');
      });
    }
  });

  describe('formats', () => {
    it('json is an array, and the same with LLMP_OUTPUT', async () => {
      expect(JSON.parse((await listing([token()], '--json')).out)).to.deep.equal([token()]);
      const { out } = await listing([token()], '', { env: { LLMP_OUTPUT: 'json' } });
      expect(JSON.parse(out)).to.deep.equal([token()]);
      expect((await listing([], '-o json')).out).to.equal('[]\n');
    });

    it('jsonl is one object per line', async () => {
      const { out } = await listing([token(), token({ name: 'two' })], '-o jsonl');
      expect(
        out
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as unknown),
      ).to.deep.equal([token(), token({ name: 'two' })]);
    });

    it('id is one ID per line', async () => {
      expect((await listing([token()], '-oid')).out).to.equal(`${token().id}\n`);
    });

    it('Q02 csv has a title line and quotes by RFC 4180', async () => {
      const { out } = await listing([token({ name: 'a "b", c' })], '--output=csv');
      const [title, row] = out.split('\r\n');
      expect(title).to.match(/^id,name,project_id,state,/);
      expect(row).to.contain(',"a ""b"", c",');
    });

    it('Q02 csv makes text of a formula', async () => {
      for (const name of ['=1+1', '＋1'])
        expect((await listing([token({ name })], '-o csv')).out).to.contain(`,'${name},`);
    });

    it('refuses another format, from the option or the environment', async () => {
      expect((await listing([], '-o xml')).exitCode).to.equal(2);
      const { exitCode, err } = await listing([], '', { env: { LLMP_OUTPUT: 'xml' } });
      expect(exitCode).to.equal(2);
      expect(err).to.contain('LLMP_OUTPUT must be one of table, json, jsonl, yaml, csv, id');
    });
  });

  describe('control characters from the server', () => {
    // eslint-disable-next-line no-control-regex
    const RAW = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/;

    for (const [format, situation] of [
      ['table', { terminal: 200 }],
      ['table', {}],
      ['csv', {}],
      ['json', {}],
      ['jsonl', {}],
    ] as const) {
      it(`Q01 are shown as escapes in ${format}${'terminal' in situation ? ' on a terminal' : ''}`, async () => {
        const { out } = await listing([token({ name: HOSTILE })], `-o ${format} --no-color`, situation);
        expect(out.replaceAll('\r\n', '\n')).not.to.match(RAW);
        expect(out).to.match(format.startsWith('json') ? /\\u001b\[2J/ : /\\x1b\[2J/);
        expect(out.split('\n').filter((line) => line.includes('2J'))).to.have.length(1);
      });
    }

    it('Q01 survive JSON unharmed', async () => {
      const { out } = await listing([token({ name: HOSTILE })], '--json');
      expect((JSON.parse(out) as WireToken[])[0]?.name).to.equal(HOSTILE);
    });

    it('Q01 are shown as escapes in messages', async () => {
      daemon.answer = refuse(400, 'invalid_request', HOSTILE);
      const { err } = await llmp('token list', { env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN } });
      expect(err).not.to.match(RAW);
      expect(err).to.contain('\\x1b[2J');
    });
  });

  describe('errors', () => {
    it('Q03 are an object on stderr with -o json, and stdout stays empty', async () => {
      daemon.answer = refuse(404, 'not_found', 'token not found');
      const { exitCode, out, err } = await llmp(`token get ${token().id} -o json`, {
        env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN },
      });
      expect({ exitCode, out }).to.deep.equal({ exitCode: 4, out: '' });
      expect(JSON.parse(err)).to.include({
        error: 'token not found',
        code: 'not_found',
        request_id: 'req-1',
        exit_code: 4,
      });
    });

    it('Q03 are an object as well when the command line was wrong', async () => {
      const { err } = await llmp('token list --json --nonsense');
      expect(JSON.parse(err)).to.include({ code: 'usage', exit_code: 2 });
    });
  });

  it('shows a single item with all of its fields on a terminal', async () => {
    daemon.answer = responds(token({ max_requests: 0 }));
    const { out } = await llmp(`token get ${token().id} --no-color`, {
      env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, LANG: 'C.UTF-8' },
      terminal: 80,
      nowMs: NOW,
    });
    expect(out).to.contain('expires_at       2030-01-01T14:00:00.000Z (in 2h)\n');
    expect(out).to.contain('state            ● active\n').and.to.contain('max_requests     unlimited\n');
  });

  it('warns that a list without a limit was truncated', async () => {
    daemon.answer = (_req, res) => {
      const page = Array.from({ length: 1000 }, () => token());
      const headers = { link: '</manage/tokens?cursor=next>; rel="next"', 'x-total-count': '20000' };
      answerJson(res, 200, page, headers);
    };
    const { out, err } = await llmp('token list -o id', { env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN } });
    expect(out.split('\n')).to.have.length(10_001);
    expect(err).to.contain('warning: only the first 10000 of 20000');
  });

  it('shows on a terminal that it waits for a response, and erases that', async () => {
    let answerNow = () => undefined as unknown;
    daemon.answer = (_req, res) => {
      answerNow = () => {
        answerJson(res, 200, [token()]);
      };
    };
    const { err } = await llmp('token list', {
      env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN },
      terminal: 80,
      onErr: (text) => {
        if (text.includes('waiting for')) answerNow();
      },
    });
    expect(err).to.equal(`\rwaiting for ${daemon.url} ...\u001b[K\r\u001b[K`);
  });
});
