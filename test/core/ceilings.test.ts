import { expect } from 'chai';
import type { WireOperator, WireProject } from '../../daemon/api/contract.js';
import type { Ceilings } from '../../daemon/api/vocabulary.js';
import { daemonForSuite } from '../support/daemon.js';
import { auditOf, problemOf } from '../support/management.js';

type Created = WireOperator & { secret: string };

describe('ceilings', () => {
  const daemon = daemonForSuite();
  let project: WireProject;
  let operators = 0;

  before(async () => {
    project = await daemon.createProject();
  });

  const create = async (fields: object): Promise<Created> => {
    const draft = { name: `operator ${++operators}`, role: 'issuer', ...fields };
    return (await daemon.manage('POST', '/manage/operators', draft)).body as Created;
  };
  const as = ({ secret }: Created) => ({ authorization: `Bearer ${secret}` });
  const issue = (by: Created, fields: object = {}) =>
    daemon.manage('POST', '/manage/tokens', { project_id: project.id, ...fields }, as(by));

  const soft = { period: 'none', mode: 'soft' } as const;
  // Of each: what is within, and what is beyond, with a part of the message.
  const CASES: [title: string, Ceilings, within: object[], beyond: [object, string][]][] = [
    [
      'hours',
      { hours: 8 },
      [{ duration_hours: 8 }, { duration_minutes: 30 }],
      [
        [{}, 'a token may last 8 h at most, and this one would last 24 h'],
        [{ duration_minutes: 481 }, 'would last 481 min'],
      ],
    ],
    [
      'routes',
      { requests: 5 },
      [{ max_requests: 5, allow: { routes: ['inference'] } }],
      [[{ max_requests: 5, allow: { routes: ['* */evals*'] } }, '* */evals* is an escape']],
    ],
    [
      'requests',
      { requests: 100 },
      [{ max_requests: 100 }, { max_requests: 1 }],
      [
        [{}, 'this one would have no cap'],
        [{ max_requests: 101 }, 'would have 101'],
      ],
    ],
    [
      'routes',
      { routes: ['POST /v1/chat/*', 'GET /v1/models', 'read'] },
      [
        { allow: { routes: ['GET /v1/models', 'read', 'POST /v1/chat/*'] } },
        { allow: { routes: ['POST /v1/chat/completions', 'POST /v1/chat/c*s'] } },
      ],
      [
        [{}, 'a token must have a list of routes'],
        [{ allow: { models: ['*'] } }, 'a token must have a list of routes'],
        [{ allow: { routes: ['GET /v1/models', 'POST /v1/*'] } }, 'it does not cover POST /v1/*'],
        [{ allow: { routes: ['* /v1/chat/completions'] } }, 'it does not cover * /v1/chat/completions'],
        [{ allow: { routes: ['inference'] } }, 'it does not cover inference'],
        [{ allow: { routes: ['all'] } }, 'it does not cover all'],
        // Of a handshake or a request with a body, `read` says nothing.
        [{ allow: { routes: ['GET /v1/files'] } }, 'it does not cover GET /v1/files'],
        // A pattern with a wildcard does not open an escape; one that spells it would.
        [{ allow: { routes: ['POST /v1/chat/batches'] } }, 'it does not cover POST /v1/chat/batches'],
      ],
    ],
    [
      'routes',
      { routes: ['inference', 'POST /v1/batches'] },
      [{ allow: { routes: ['inference', 'POST /v1/batches', 'POST /v1/chat/completions', 'POST /v1/messages'] } }],
      [
        [{ allow: { routes: ['POST /v1/audio'] } }, 'it does not cover POST /v1/audio'],
        [{ allow: { routes: ['POST */chat/completions'] } }, 'it does not cover POST */chat/completions'],
        [{ allow: { routes: ['GET /v1/chat/completions'] } }, 'it does not cover GET /v1/chat/completions'],
      ],
    ],
    [
      'routes',
      { models: ['gpt-*'] },
      [{ allow: { models: ['gpt-5-mini'], routes: ['inference', 'GET /v1/files'] } }],
      [
        [
          { allow: { models: ['gpt-5-mini'], routes: ['inference', 'POST /v1/batches'] } },
          'POST /v1/batches is an escape, so a ceiling of routes must name it',
        ],
      ],
    ],
    [
      'routes',
      { routes: ['all'] },
      [{ allow: { routes: ['all', 'contained', 'read', '* /v1/*', 'GET /v1/files'] } }],
      [
        [{}, 'a token must have a list of routes'],
        [{ allow: { routes: ['POST /v1/batches'] } }, 'it does not cover POST /v1/batches'],
        [{ allow: { routes: ['* */fine_tuning/*'] } }, 'it does not cover * */fine_tuning/*'],
      ],
    ],
    [
      'models',
      { models: ['claude-*', 'gpt-5-mini'] },
      [{ allow: { models: ['claude-haiku', 'claude-*-5', 'claude-*', 'gpt-5-mini'] } }],
      [
        [{}, 'a token must have a list of models'],
        [{ allow: { models: ['claude-haiku', 'gpt-5'] } }, 'it does not cover gpt-5'],
        [{ allow: { models: ['*'] } }, 'it does not cover *'],
        [{ allow: { models: ['*claude-'] } }, 'it does not cover *claude-'],
        [{ allow: { models: ['gpt-5-mini*'] } }, 'it does not cover gpt-5-mini*'],
      ],
    ],
    [
      'limits',
      { limits: { requests_per_minute: 60, concurrent: 2 } },
      [
        { limits: { requests_per_minute: 60, concurrent: 2 } },
        { limits: { requests_per_minute: 1, concurrent: 1, tokens_per_minute: 9 } },
      ],
      [
        [{}, 'a token must have requests_per_minute of 60 at most'],
        [{ limits: { requests_per_minute: 60 } }, 'a token must have concurrent of 2 at most'],
        [{ limits: { requests_per_minute: 61, concurrent: 2 } }, 'requests_per_minute may be 60 at most, not 61'],
      ],
    ],
    [
      'budget',
      { budget: { usd: '20.00', period: 'month', mode: 'soft' } },
      [
        { budget: { usd: '20', period: 'month', mode: 'soft' } },
        { budget: { usd: '9.50', tokens: 10, period: 'none', mode: 'hard' } },
      ],
      [
        [{}, 'a token must have a budget'],
        [{ budget: { tokens: 10, ...soft } }, 'usd may be 20.00 at most, not absent'],
        [{ budget: { usd: '20.01', ...soft } }, 'usd may be 20.00 at most, not 20.01'],
        [{ budget: { usd: '1', period: 'day', mode: 'hard' } }, 'period may be none or month, not day'],
        [{ budget: { usd: '1', period: 'none', mode: 'shadow' } }, 'mode may be hard or soft, not shadow'],
      ],
    ],
    [
      'budget',
      { budget: { tokens: 1000, period: 'none', mode: 'hard' } },
      [{ budget: { tokens: 1000, period: 'none', mode: 'hard' } }],
      [
        [{ budget: { usd: '1', period: 'none', mode: 'hard' } }, 'tokens may be 1000 at most, not absent'],
        [{ budget: { tokens: 1001, period: 'none', mode: 'hard' } }, 'tokens may be 1000 at most, not 1001'],
        [{ budget: { tokens: 1, period: 'month', mode: 'hard' } }, 'period may be none, not month'],
        [{ budget: { tokens: 1, period: 'none', mode: 'soft' } }, 'mode may be hard, not soft'],
      ],
    ],
  ];

  for (const [name, ceilings, within, beyond] of CASES) {
    it(`${name} ${JSON.stringify(ceilings)}: what is within is issued, and what is above is refused, never lowered`, async () => {
      const issuer = await create({ ceilings });
      for (const fields of within) expect((await issue(issuer, fields)).status, JSON.stringify(fields)).to.equal(201);
      for (const [fields, why] of beyond) {
        const message = problemOf(await issue(issuer, fields), 403, 'beyond_ceiling');
        expect(message).to.include(`ceiling ${name}: `).and.to.include(why);
      }
      const listed = await daemon.manage('GET', '/manage/tokens?limit=1000');
      const own = (listed.body as { issued_by: string }[]).filter(
        (token) => token.issued_by === `operator:${issuer.name}`,
      );
      expect(own).to.have.length(within.length);
    });
  }

  it('active_tokens: tokens that are revoked or have expired make room for others', async () => {
    const issuer = await create({ ceilings: { active_tokens: 2 } });
    const first = (await issue(issuer)).body as { id: string };
    expect((await issue(issuer, { duration_minutes: 1 })).status).to.equal(201);
    const full = problemOf(await issue(issuer), 403, 'beyond_ceiling');
    expect(full).to.equal('beyond your ceiling active_tokens: you may have 2 active at most, and have 2');
    expect((await auditOf(daemon)).at(-1)).to.include({
      action: 'token.create',
      outcome: 'denied',
      actor: `operator:${issuer.name}`,
    });
    await daemon.manage('DELETE', `/manage/tokens/${first.id}`, undefined, as(issuer));
    expect((await issue(issuer)).status).to.equal(201);
    problemOf(await issue(issuer), 403, 'beyond_ceiling');
    daemon.clock.advance(60_000);
    expect((await issue(issuer)).status).to.equal(201);
  });

  it('hold for changes of tokens, too', async () => {
    const operator = await create({
      role: 'operator',
      ceilings: { active_tokens: 1, limits: { concurrent: 2 }, budget: { usd: '5', period: 'none', mode: 'soft' } },
    });
    const budget = { usd: '5', ...soft };
    const { id } = (await issue(operator, { limits: { concurrent: 1 }, budget })).body as { id: string };
    const patch = (body: object) => daemon.manage('PATCH', `/manage/tokens/${id}`, body, as(operator));
    problemOf(await patch({ limits: null }), 403, 'beyond_ceiling');
    problemOf(await patch({ budget: { ...budget, usd: '6' } }), 403, 'beyond_ceiling');
    expect((await patch({ limits: { concurrent: 2 }, budget: { ...budget, usd: '4' } })).status).to.equal(200);
    expect((await patch({ is_active: false })).status).to.equal(200);
    expect((await issue(operator, { limits: { concurrent: 1 }, budget })).status).to.equal(201);
    problemOf(await patch({ is_active: true }), 403, 'beyond_ceiling');
  });

  it('the holder of the management token has none, and an issuer changes nothing of its tokens but revokes them', async () => {
    const issuer = await create({});
    const { id } = (await issue(issuer)).body as { id: string };
    const patch = (body: object) => daemon.manage('PATCH', `/manage/tokens/${id}`, body, as(issuer));
    for (const body of [{ limits: { concurrent: 1 } }, { is_active: true }, { is_active: false, budget: null }]) {
      problemOf(await patch(body), 403, 'not_permitted');
    }
    expect((await patch({ is_active: false })).body).to.include({
      state: 'revoked',
      revoked_by: `operator:${issuer.name}`,
    });
    expect((await daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: true })).status).to.equal(200);
  });
});
