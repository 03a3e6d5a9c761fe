import { join } from 'node:path';
import { expect } from 'chai';
import { type Claims, readRoleMapping, roleFor } from '../../daemon/oidc/role-mapping.js';
import { temporaryFolder } from '../support/daemon.js';
import { file, problemsIn } from '../support/settings.js';

const ISSUER = 'https://login.example.com';
const PROJECT = '6f1c9a52-5f0e-4c7b-9f43-2a9d1c3b7e10';

const read = (rows: unknown, issuer = ISSUER) =>
  readRoleMapping(file('roles.json', typeof rows === 'string' ? rows : JSON.stringify(rows)), issuer);

describe('OIDC_ROLES', () => {
  it('gives the role of the first row that matches, with projects and ceilings', () => {
    const rows = [
      { match: { groups: 'platform', department: 'it' }, role: 'admin' },
      { match: { groups: 'platform' }, role: 'operator', projects: [PROJECT.toUpperCase()] },
      { match: { email: 'ana@example.com' }, role: 'issuer', ceilings: { hours: 8, budget: { usd: '5' } } },
      { match: { 'https://example.com/level': '1' }, role: 'viewer', projects: null },
    ];
    const mapping = read(rows)!;
    const roleOf = (claims: Claims) => roleFor(mapping, claims)?.role ?? null;
    const cases: [Claims, string | null][] = [
      [{ groups: ['staff', 'platform'], department: 'it' }, 'admin'],
      [{ groups: ['staff', 'platform'], department: 'sales' }, 'operator'],
      [{ groups: 'platform' }, 'operator'],
      [{ groups: ['platform-users'] }, null],
      [{ email: 'ana@example.com' }, null],
      [{ email: 'ana@example.com', email_verified: true }, 'issuer'],
      [{ email: 'ana@example.com', email_verified: 'true' }, 'issuer'],
      [{ email: 'ana@example.com', email_verified: false }, null],
      [{ email: 'ana@example.com', email_verified: 'false' }, null],
      [{ 'https://example.com/level': '1' }, 'viewer'],
      [{ 'https://example.com/level': 1 }, null],
      [{}, null],
    ];
    for (const [claims, role] of cases) expect(roleOf(claims), JSON.stringify(claims)).to.equal(role);
    expect(roleFor(mapping, { groups: 'platform' })).to.deep.include({ projects: [PROJECT], ceilings: null });
    expect(roleFor(mapping, { email: 'ana@example.com', email_verified: true })?.ceilings).to.deep.equal({
      hours: 8,
      budget: { usd: '5', period: 'none', mode: 'soft' },
    });
  });

  it('has another digest if the file or the issuer is another', () => {
    const rows = [{ match: { sub: 'ana' }, role: 'viewer' }];
    const { sha256 } = read(rows)!;
    expect(sha256).to.match(/^[0-9a-f]{64}$/);
    expect(read(rows)!.sha256).to.equal(sha256);
    expect(read([...rows, ...rows])!.sha256).not.to.equal(sha256);
    expect(read(rows, 'https://other.example.com')!.sha256).not.to.equal(sha256);
  });

  it('is not read without an issuer', () => {
    expect(readRoleMapping('/does/not/exist', undefined)).to.equal(null);
    expect(readRoleMapping(null, ISSUER)).to.equal(null);
  });

  it('names the row and the member that is wrong', () => {
    const row = { match: { sub: 'ana' }, role: 'viewer' };
    const cases: [unknown, string | RegExp][] = [
      ['', /, line 1: /],
      ['[\n{"match": {"sub": "ana", "sub": "bob"}, "role": "viewer"}]', /, line 2: .*sub/],
      [{}, ', the file must contain a list of 1 to 1000 rows: [{"match": {"claim": "value"}, "role": …}]'],
      [[], /, the file must contain a list/],
      [[row, 'viewer'], ', row 2: it must be an object with match and role'],
      [[row, { role: 'viewer' }], ', row 2: match is missing'],
      [
        [{ ...row, match: {} }],
        ', row 1: match must be an object with 1 to 20 claims and their values, which are texts',
      ],
      [[{ ...row, match: { sub: 1 } }], /, row 1: match must be an object/],
      [[{ match: { sub: 'ana' } }], ', row 1: role is missing'],
      [[{ ...row, role: 'root' }], ', row 1: role must be one of viewer, auditor, issuer, operator, admin'],
      [[{ ...row, roles: 'admin' }], ', row 1: roles is not known'],
      [
        [{ ...row, projects: [] }],
        ', row 1: projects must be a list of 1 to 200 IDs of projects, or null for all projects',
      ],
      [[{ ...row, projects: ['web'] }], /, row 1: projects must be a list/],
      [[{ ...row, ceilings: { hours: 0 } }], ', row 1: ceilings.hours must be a whole number from 1 to 8760'],
      [[{ ...row, ceilings: { hour: 1 } }], ', row 1: ceilings.hour is not known'],
      [[{ ...row, ceilings: { budget: { usd: '1', eur: '1' } } }], ', row 1: ceilings.budget.eur is not known'],
      [[{ ...row, ceilings: { routes: [] } }], /, row 1: ceilings\.routes /],
    ];
    for (const [rows, expected] of cases) {
      const [problem = '', ...more] = problemsIn(() => read(rows));
      expect(more).to.deep.equal([]);
      const [, where, what] = /^(OIDC_ROLES: .*roles\.json)(, .*)$/.exec(problem) ?? [problem];
      expect(where).to.match(/roles\.json$/);
      if (typeof expected === 'string') expect(what).to.equal(expected);
      else expect(what).to.match(expected);
    }
    expect(problemsIn(() => read([{ ...row, role: 'root', projects: ['x'] }, {}]))).to.have.length(4);
  });

  it('must be a readable file of at most 1 MiB', () => {
    const missing = join(temporaryFolder(), 'roles.json');
    expect(problemsIn(() => readRoleMapping(missing, ISSUER))).to.deep.equal([
      `OIDC_ROLES: cannot read ${missing}: ENOENT`,
    ]);
    expect(problemsIn(() => read(' '.repeat(1024 * 1024 + 1)))).to.deep.equal(['OIDC_ROLES: is larger than 1 MiB']);
  });
});
