import { expect } from 'chai';
import type { WireEvent, WireProject } from '../../daemon/api/contract.js';
import * as schemas from '../../daemon/api/schemas.js';
import { parseFilter, suggest } from '../../console/query/filter.js';
import type { FilteredScreen, KnownNames } from '../../console/query/types.js';

const WEB = '11111111-1111-4111-8111-111111111111';
const MY_API = '2222aaaa-2222-4222-8222-222222222222';
const ODD = '2222bbbb-2222-4222-8222-222222222222';
const TOKEN = '77ab10f3-0000-4000-8000-000000000000';

const known: KnownNames = {
  projects: [
    { id: WEB, name: 'web' },
    { id: MY_API, name: 'My API' },
    { id: ODD, name: 'web-2, old' },
  ],
  tokens: [
    { id: TOKEN, name: 'nightly tests' },
    { id: '88ab10f3-0000-4000-8000-000000000000', name: 'twin' },
    { id: '99ab10f3-0000-4000-8000-000000000000', name: 'twin' },
  ],
};

const SCHEMAS = {
  tokens: schemas.tokenQuery,
  projects: schemas.projectQuery,
  audit: schemas.auditQuery,
  events: schemas.eventStreamQuery,
  top: schemas.topQuery,
};

/** The query of a valid line. The daemon accepts each of these queries. */
function queryOf(screen: FilteredScreen, line: string): Record<string, string | undefined> {
  const { query, isComplete, problems } = parseFilter(line, screen, known);
  expect(problems, line).to.deep.equal([]);
  expect(isComplete, line).to.equal(true);
  expect(SCHEMAS[screen].safeParse(query).error, line).to.equal(undefined);
  return query;
}

/** The problems of a line and their positions. */
const problemsOf = (screen: FilteredScreen, line: string) =>
  parseFilter(line, screen, known).problems.map(({ at, length, message }) => [line.slice(at, at + length), message]);

describe('filter line', () => {
  describe('of tokens', () => {
    for (const [line, query] of [
      ['', {}],
      ['   ', {}],
      ['ci', { q: 'ci' }],
      ['  CI  ', { q: 'CI' }],
      ['"two words"', { q: 'two words' }],
      ['two words', { words: 'two words' }],
      ['!old', { words: '!old' }],
      ['ci !old "two words" !"no no"', { words: 'ci !old "two words" !"no no"' }],
      ['ab"cd ef"gh', { q: 'abcd efgh' }],
      ['a,b', { q: 'a,b' }],
      ['a,b c', { words: '"a,b" c' }],
      ['10:30', { q: '10:30' }],
      ['"state:active"', { q: 'state:active' }],
      ['"!x" y', { words: '"!x" y' }],
      ['state:active', { state: 'active' }],
      ['STATE:Active', { state: 'active' }],
      ['state:active,rate_limited', { state: 'active,rate_limited' }],
      ['state:limited state:off', { state: 'rate_limited,project_inactive' }],
      ['state:active state:active', { state: 'active' }],
      ['!state:revoked', { state: '!revoked' }],
      ['!state:revoked !state:expired', { state: '!revoked,expired' }],
      ['!state:revoked,expired', { state: '!revoked,expired' }],
      ['state:active,expired !state:expired', { state: 'active' }],
      ['project:web', { project_id: WEB }],
      ['project:WEB', { project_id: WEB }],
      ['project:"My API",web', { project_id: `${MY_API},${WEB}` }],
      ['project:"web-2, old"', { project_id: ODD }],
      ['!project:web', { project_id: `!${WEB}` }],
      ['project:111111', { project_id: WEB }],
      [`project:${TOKEN}`, { project_id: TOKEN }],
      ['expires:>7d', { expires_after: '7d' }],
      ['expires:>2w', { expires_after: '2w' }],
      ['expires:<2h', { expires_after: '0s', expires_before: '2h' }],
      ['expires:<2h expires:>30m', { expires_after: '30m', expires_before: '2h' }],
      ['expires:<-1d', { expires_before: '-1d' }],
      ['expires:>-1d expires:<0s', { expires_after: '-1d', expires_before: '0s' }],
      ['expires:<2030-01-31', { expires_before: '2030-01-31T00:00:00.000Z' }],
      ['expires:>2030-01-31t12:00z', { expires_after: '2030-01-31T12:00:00.000Z' }],
      ['idle:>30d', { idle_over: '30d' }],
      ['created:<7d', { created_after: '7d' }],
      ['created:>7d', { created_before: '7d' }],
      ['created:>2h created:<7d', { created_after: '7d', created_before: '2h' }],
      ['created:<2030-01-31', { created_before: '2030-01-31T00:00:00.000Z' }],
      ['created:>2030-01-31', { created_after: '2030-01-31T00:00:00.000Z' }],
      ['errors:>10', { errors_over: '10' }],
      ['model:GPT-4o,o3', { model: 'gpt-4o,o3' }],
      ['!model:gpt-4o', { model: '!gpt-4o' }],
      ['allows:GPT-5*,o3', { allows: 'GPT-5*,o3' }],
      ['!allows:*', { allows: '!*' }],
      ['limited:yes', { limited: 'true' }],
      ['by:ana', { issued_by: 'operator:ana' }],
      ['by:management-token', { issued_by: 'management-token' }],
      ['by:operator:management-token', { issued_by: 'operator:management-token' }],
      ['by:"person:4f 2a"', { issued_by: 'person:4f 2a' }],
      ['limited:no', { limited: 'false' }],
      ['budget:hard spent:>10', { budget: 'hard', spent_over: '10' }],
      ['spent:>$0.5 spent:<2.000000001', { spent_over: '0.5', spent_under: '2.000000001' }],
      ['left:<20%', { left_under: '20' }],
      ['left:>5 left:<50%', { left_over: '5', left_under: '50' }],
      ['used:>90%', { used_over: '90' }],
      ['used:<50', { used_under: '50' }],
      ['used:>10% used:<90%', { used_over: '10', used_under: '90' }],
      [
        'ci !old project:web state:active expires:<2h used:>90%',
        {
          words: 'ci !old',
          project_id: WEB,
          state: 'active',
          expires_after: '0s',
          expires_before: '2h',
          used_over: '90',
        },
      ],
    ] as const) {
      it(`${line === '' ? '(empty)' : line} becomes the query ${JSON.stringify(query)}`, () => {
        expect(queryOf('tokens', line)).to.deep.equal(query);
        expect(queryOf('tokens', `${line} `), 'with a trailing space').to.deep.equal(query);
      });
    }

    for (const [line, at, message] of [
      ['stat:active', 'stat:active', /^no such key: stat; use state, project, expires, idle, /],
      ['ci state:dead x', 'dead', /^state must be one of active, /],
      ['state:act ', 'act', /^state must be one of active, /],
      ['state:active,dead ', 'dead', /^state must be one of/],
      ['state:active !state:active', '!state:active', /^the state values exclude each other$/],
      ['project:nobody', 'nobody', /^no such project$/],
      ['project:2222', '2222', /^no such project$/],
      ['idle:<30d', 'idle:<30d', /^write idle:>…$/],
      ['errors:<3', 'errors:<3', /^write errors:>…$/],
      ['errors:>many', 'many', /^must be a whole number up to 1000000$/],
      ['allows:"a b" ', '"a b"', /^the name of a model has no spaces$/],
      ['budget:firm', 'firm', /^budget must be one of yes, no, hard, soft, shadow$/],
      ['spent:10', 'spent:10', /^write spent:<… or spent:>…$/],
      ['spent:>ten', 'ten', /^must be US dollars like 10 or 0\.50$/],
      ['left:<120%', '120%', /^must be a percentage from 0% to 100%$/],
      ['limited:maybe', 'maybe', /^limited must be one of yes, no$/],
      ['limited:yes,no', 'limited:yes,no', /^only one limited at a time$/],
      ['!limited:yes', '!limited:yes', /^limited cannot be negated$/],
      ['by:robot:x', 'robot:x', /^by must be operator:NAME, person:ISSUER#ID, trust:ID or management-token$/],
      ['idle:>2030-01-31', '2030-01-31', /^must be a time span like/],
      ['idle:>-3d', '-3d', /^must be a time span like/],
      ['created:<-3d', '-3d', /^must be a time in the past/],
      ['created:<7d created:>2030-01-31', 'created:>2030-01-31', /^a time after which it was created is given twice$/],
      ['expires:2h', 'expires:2h', /^write expires:<… or expires:>…$/],
      ['expires:<2030-02-30 ', '2030-02-30', /^a time must be like 30m/],
      ['expires:<soon', 'soon', /^a time must be like 30m/],
      ['expires:<2h expires:<3h', 'expires:<3h', /is given twice$/],
      ['!expires:<2h', '!expires:<2h', /^expires cannot be negated/],
      ['used:>101%', '101%', /^must be a percentage/],
      ['used:>half', 'half', /^must be a percentage/],
      ['!used:>90%', '!used:>90%', /^used cannot be negated/],
      ['x'.repeat(101), 'x'.repeat(101), /^a word can have up to 100 characters$/],
      ['a b c d e f g h i j k', 'k', /^use up to 10 words$/],
    ] as const) {
      it(`${line.slice(0, 40)} reports the problem and its position`, () => {
        const { problems, isComplete } = parseFilter(line, 'tokens', known);
        expect(isComplete).to.equal(false);
        expect(problems).to.have.length(1);
        expect(problemsOf('tokens', line)[0]![0]).to.equal(at);
        expect(problems[0]!.message).to.match(message);
      });
    }

    it('reports all problems at once', () => {
      expect(problemsOf('tokens', 'foo:1 state:x used:>y ')).to.have.length(3);
    });

    for (const line of [
      'state:',
      'state:act',
      'state:active,',
      'project:we',
      'project:"My',
      '"two wo',
      '!',
      'idle:',
      'idle:>',
      'idle:>30',
      'created:<7',
      'expires:',
      'expires:<',
      'expires:<2',
      'expires:<2030-0',
      'used:>',
      'ci !',
    ]) {
      it(`that ends with ${line} is incomplete but valid`, () => {
        expect(parseFilter(line, 'tokens', known))
          .to.include({ isComplete: false })
          .and.deep.include({ problems: [] });
      });
    }

    it('gives the same query at any time, so that cursors stay valid', () => {
      expect(queryOf('tokens', 'expires:<2h')).to.deep.equal(queryOf('tokens', 'expires:<2h'));
    });

    it('leaves the filtering to the API', () => {
      expect(parseFilter('!x state:revoked', 'tokens', known).matches({})).to.equal(true);
    });

    it('returns the words to highlight', () => {
      expect(parseFilter('CI !old "Two Words" state:active', 'tokens', known).words).to.deep.equal(['ci', 'two words']);
    });
  });

  describe('with a secret in it', () => {
    const secret = `sk-wt-${'A1'.repeat(24)}A`;
    for (const line of [secret, `ci "${secret}"`, `!${secret}`, `project:${secret}`, `x:${secret}`, 'SK-WT-Ab']) {
      for (const screen of ['tokens', 'projects', 'audit', 'events'] as const) {
        it(`${line.replace(secret, 'sk-wt-…')} neither sends nor shows it on ${screen}`, () => {
          const filter = parseFilter(line, screen, known);
          expect(filter).to.deep.include({ query: {}, isComplete: false, words: [] });
          expect(filter.problems).to.have.length(1);
          expect(JSON.stringify(filter)).not.to.match(/sk-wt-[^…`]/i);
        });
      }
    }
  });

  describe('of audit records', () => {
    for (const [line, query] of [
      ['actor:operator:ana', { actor: 'operator:ana' }],
      ['action:token.revoke actor:cli outcome:denied', { action: 'token.revoke', actor: 'cli', outcome: 'denied' }],
      [`project:web token:77ab10`, { project_id: WEB, token_id: TOKEN }],
      ['token:"nightly tests"', { token_id: TOKEN }],
      ['since:24h until:1h', { since: '24h', until: '1h' }],
      ['since:2030-01-31', { since: '2030-01-31T00:00:00.000Z' }],
      ['leaked "in CI"', { q: 'leaked in CI' }],
    ] as const) {
      it(`${line} becomes the query ${JSON.stringify(query)}`, () => {
        expect(queryOf('audit', line)).to.deep.equal(query);
      });
    }

    for (const [line, at, message] of [
      ['!leaked', '!leaked', /^words cannot be negated/],
      ['!actor:cli', '!actor:cli', /^actor cannot be negated$/],
      ['actor:cli,tui', 'actor:cli,tui', /^only one actor at a time$/],
      ['actor:cli actor:tui', 'actor:tui', /^only one actor at a time$/],
      ['action:revoke ', 'revoke', /^action must be one of token\.create, /],
      ['token:abc x', 'abc', /^no such token$/],
      ['token:twin', 'twin', /^several tokens have this name; use an ID$/],
      ['since:-1h', '-1h', /^must be a time in the past/],
      ['%%', '%%', /^a word needs a letter or a digit$/],
      ['state:active', 'state:active', /^no such key: state/],
    ] as const) {
      it(`${line} reports the problem and its position`, () => {
        const [problem, ...others] = problemsOf('audit', line);
        expect(others).to.deep.equal([]);
        expect(problem![0]).to.equal(at);
        expect(problem![1]).to.match(message);
      });
    }
  });

  describe('of projects', () => {
    const project = (name: string, isActive: boolean, id = WEB) => ({ id, name, is_active: isActive }) as WireProject;
    for (const [line, fits, fitsNot] of [
      ['', [project('web', true)], []],
      ['WE', [project('web', true)], [project('api', true)]],
      ['1111', [project('api', true)], [project('web', true, MY_API)]],
      ['!web', [project('api', true)], [project('web', true)]],
      ['state:active', [project('web', true)], [project('web', false)]],
      ['!state:active web', [project('web', false)], [project('web', true), project('api', false)]],
      ['state:active,off', [project('web', false), project('web', true)], []],
    ] as const) {
      it(`${line || '(empty)'} selects the matching ones`, () => {
        const { matches, query, isComplete } = parseFilter(line, 'projects', known);
        expect(isComplete).to.equal(true);
        expect(query).to.deep.equal({});
        expect(fits.map(matches)).not.to.include(false);
        expect(fitsNot.map(matches)).not.to.include(true);
      });
    }
  });

  describe('of events', () => {
    const request = {
      kind: 'request.completed',
      id: 'e1',
      token_id: TOKEN,
      token_name: 'docs-search',
      project_id: WEB,
      project_name: 'web',
      method: 'POST',
      path: '/v1/chat/completions',
      status: 429,
      code: 'rate_limited',
      outcome: 'refused',
      model: 'gpt-4o',
      duration_ms: 1_200,
      request_id: 'r1',
    } as WireEvent;
    const change = {
      kind: 'token.revoked',
      id: 'e2',
      token_id: TOKEN,
      token_name: 'nightly',
      project_id: MY_API,
      project_name: 'My API',
      actor: 'cli',
    } as WireEvent;

    // More than the API takes.
    const CODES = Array.from({ length: 21 }, (_, n) => `code_${'x'.repeat(n)}`).join(',');

    for (const [line, query, fits] of [
      ['', {}, [true, true]],
      ['status:4xx,5xx', { status: '4xx,5xx' }, [true, false]],
      ['status:429 status:500', { status: '429,500' }, [true, false]],
      ['!status:4xx', {}, [false, true]],
      ['status:4xx !status:429', { status: '4xx' }, [false, false]],
      ['kind:token.revoked', { kind: 'token.revoked' }, [false, true]],
      ['!kind:request.completed', {}, [false, true]],
      ['kind:token.revoked,request.completed', {}, [true, true]],
      ['project:web', { project_id: WEB }, [true, false]],
      ['!project:web', {}, [false, true]],
      ['project:web,"My API"', {}, [true, true]],
      ['token:77ab10', { token_id: TOKEN }, [true, true]],
      ['CHAT gpt', {}, [true, false]],
      ['!chat', {}, [false, true]],
      ['"post /v1"', {}, [true, false]],
      ['77ab', {}, [true, true]],
      ['cli', {}, [false, true]],
      ['docs', {}, [true, false]],
      ['"my api"', {}, [false, true]],
      ['!web', {}, [false, true]],
      ['code:rate_limited', { code: 'rate_limited' }, [true, false]],
      ['code:unauthorized,no_such', { code: 'unauthorized,no_such' }, [false, false]],
      ['!code:unauthorized', { code: '!unauthorized' }, [true, false]],
      ['why:limit', { outcome: '!ok' }, [true, false]],
      ['why:"rate limit",revoked', { outcome: '!ok' }, [true, false]],
      ['why:revoked', { outcome: '!ok' }, [false, false]],
      ['!why:rate', {}, [false, false]],
      ['why:rate outcome:refused', { outcome: 'refused' }, [true, false]],
      ['outcome:refused', { outcome: 'refused' }, [true, false]],
      ['!outcome:ok,refused', { outcome: '!ok,refused' }, [false, false]],
      [
        'outcome:failed',
        { outcome: 'refused,upstream_refused,upstream_error,provider_error,timeout,truncated,revoked,drained' },
        [true, false],
      ],
      ['model:GPT', { model: 'gpt' }, [true, false]],
      ['model:gpt !model:4o', { model: 'gpt' }, [false, false]],
      ['!model:mini', { model: '!mini' }, [true, false]],
      ['took:>500ms', { took_over: '500ms' }, [true, false]],
      ['took:>2s', { took_over: '2s' }, [false, false]],
      ['took:<2s', {}, [true, false]],
      [`code:${CODES}`, {}, [false, false]],
    ] as const) {
      it(`${line || '(empty)'} streams ${JSON.stringify(query)} and selects the matching ones`, () => {
        expect(queryOf('events', line)).to.deep.equal(query);
        const { matches } = parseFilter(line, 'events', known);
        expect([request, change].map(matches)).to.deep.equal(fits);
      });
    }

    it('reports an invalid status', () => {
      expect(problemsOf('events', 'status:600')).to.deep.equal([['600', 'status must be like 429 or 4xx']]);
    });

    it('reports values that no request can have', () => {
      for (const [line, what] of [
        ['outcome:success', /^outcome must be one of failed, ok, refused,/],
        ['code:429', 'code must be an error code, such as rate_limited'],
        ['model:"two words"', 'a part of the name of a model has no spaces'],
        ['took:500ms', 'write took:<… or took:>…'],
        ['took:>1h', 'must be a duration like 500ms, 2s or 1m'],
      ] as const) {
        const [[, message] = []] = problemsOf('events', line);
        if (typeof what === 'string') expect(message, line).to.equal(what);
        else expect(message, line).to.match(what);
      }
    });

    it('waits for the rest of a value that is being typed', () => {
      for (const line of ['outcome:fa', 'code:', 'code:rate_li', 'model:', 'took:', 'took:>', 'took:>50'])
        expect(parseFilter(line, 'events', known), line)
          .to.include({ isComplete: false })
          .with.deep.property('problems', []);
    });
  });

  describe('completion', () => {
    const inserts = (text: string, screen: FilteredScreen = 'tokens', caret = text.length) => {
      const { from, to, options } = suggest(text, caret, screen, known);
      return [text.slice(from, to), options.map(({ insert }) => insert)];
    };

    it('offers keys at the start of a term', () => {
      expect(inserts('')).to.deep.equal([
        '',
        [
          'state:',
          'project:',
          'expires:',
          'idle:',
          'created:',
          'errors:',
          'model:',
          'allows:',
          'limited:',
          'used:',
          'budget:',
          'spent:',
          'left:',
          'by:',
        ],
      ]);
      expect(inserts('ci ')[1]).to.include('state:');
      expect(inserts('sta')).to.deep.equal(['sta', ['state:']]);
      expect(inserts('!pro')).to.deep.equal(['pro', ['project:']]);
      expect(inserts('zzz')).to.deep.equal(['zzz', []]);
      expect(inserts('', 'audit')[1]).to.include.members(['action:', 'since:', 'token:']);
      expect(inserts('sta x', 'tokens', 3)).to.deep.equal(['sta', ['state:']]);
    });

    it('offers values', () => {
      expect(inserts('state:')[1]).to.have.members([
        'active',
        'expired',
        'revoked',
        'rate_limited',
        'project_inactive',
      ]);
      expect(inserts('state:re')).to.deep.equal(['re', ['revoked', 'expired', 'rate_limited']]);
      expect(inserts('!state:active,rev')).to.deep.equal(['rev', ['revoked']]);
      expect(inserts('expires:<')[1]).to.deep.equal(['<1h', '<1d', '<7d']);
      expect(inserts('action:token.re', 'audit')[1]).to.have.members([
        'token.revoke',
        'token.reactivate',
        'token.revoke_all',
        'token.create',
      ]);
      expect(inserts('stat:x')).to.deep.equal(['x', []]);
    });

    it('offers names of projects, quoted if needed', () => {
      expect(inserts('project:')[1]).to.deep.equal(['"My API"', 'web', '"web-2, old"']);
      expect(inserts('project:m')).to.deep.equal(['m', ['"My API"']]);
      expect(inserts('project:"my a')).to.deep.equal(['"my a', ['"My API"']]);
    });

    it('results in a valid line for each value', () => {
      for (const [screen, keys] of [
        ['tokens', ['state', 'project', 'expires', 'used']],
        ['projects', ['state']],
        ['audit', ['action', 'actor', 'outcome', 'project', 'token', 'since', 'until']],
        ['events', ['status', 'outcome', 'code', 'took', 'kind', 'project', 'token']],
      ] as const) {
        for (const key of keys) {
          const { options } = suggest(`${key}:`, key.length + 1, screen, known);
          expect(options, key).not.to.have.length(0);
          for (const { insert } of options) queryOf(screen, `${key}:${insert}`);
        }
      }
    });
  });

  it('parses any input', () => {
    const odd = [
      '"',
      '""',
      '!',
      '!!',
      ':',
      '::',
      ',',
      'a:',
      ':a',
      '!:',
      '"!',
      'state:"',
      'state:,',
      'state:,,a',
      '\t',
      'é:ü',
      '💥 !💥',
      'state::',
      'project:""',
      'x"y"z"',
    ];
    for (const screen of ['tokens', 'projects', 'audit', 'events'] as const) {
      for (const one of odd) {
        for (const other of ['', ...odd]) {
          const line = `${one} ${other}`;
          const { query, problems, isComplete } = parseFilter(line, screen, known);
          if (isComplete) expect(SCHEMAS[screen].safeParse(query).error, JSON.stringify(line)).to.equal(undefined);
          for (const { at, length } of problems) expect(at + length, line).to.be.at.most(line.length + 1);
          for (let caret = 0; caret <= line.length; caret++) suggest(line, caret, screen, known);
        }
      }
    }
  });
});
