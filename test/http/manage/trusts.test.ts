/** /manage/trusts: what a trust needs, and what its changes record. */
import { expect } from 'chai';
import type { WireAuditRecord, WireProject, WireTrust } from '../../../daemon/api/contract.js';
import { daemonForSuite } from '../../support/daemon.js';
import { createTrust, trustTerms } from '../../support/exchanges.js';
import { bodyOf, pagesOf, problemOf } from '../../support/management.js';

const ISSUER = 'https://issuer.example';
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

describe('/manage/trusts', () => {
  const daemon = daemonForSuite();
  let project: WireProject;
  before(async () => {
    project = await daemon.createProject({ name: 'web' });
  });

  const create = (fields: object = {}) =>
    daemon.manage('POST', '/manage/trusts', { ...trustTerms(ISSUER, project.id), ...fields });
  const made = (fields = {}) => createTrust(daemon, ISSUER, project.id, fields);
  const audited = async (action: string) =>
    (await pagesOf<WireAuditRecord>(daemon, `/manage/audit?limit=100&action=${action}`)).flat();

  it('need an issuer, an audience and an exact claim that identifies somebody', async () => {
    const refused: [string, object][] = [
      ['no issuer', { issuer: undefined }],
      ['http', { issuer: 'http://issuer.example' }],
      ['a name', { issuer: 'issuer.example' }],
      ['credentials', { issuer: 'https://a:b@issuer.example' }],
      ['a query', { issuer: 'https://issuer.example?a=b' }],
      ['a fragment', { issuer: 'https://issuer.example#a' }],
      ['a metadata address', { issuer: 'https://169.254.169.254' }],
      ['a file', { issuer: 'file:///etc/passwd' }],
      ['no audience', { audience: undefined }],
      ['an empty audience', { audience: '' }],
      ['no claims', { match: {} }],
      ['a claim that is no text', { match: { repository: 7 } }],
      ['a nested claim', { match: { 'kubernetes.io': { namespace: 'web' } } }],
      ['a wildcard', { match: { repository: 'acme/*' } }],
      ...['iss', 'aud', 'exp', 'nbf', 'iat', 'jti', 'ref'].map((name): [string, object] => [
        `only ${name}`,
        { match: { [name]: 'x' } },
      ]),
      ['none that is exact', { match: { ref: 'refs/heads/main', repository: '*' } }],
      ['a path of keys', { jwks_file: '../keys.json' }],
      ['a file of keys without JWKS_DIR', { jwks_file: 'keys.json' }],
      ['no time', { duration_minutes: 0 }],
      ['a field that there is not', { subject: 'x' }],
    ];
    for (const [what, fields] of refused) {
      const answer = await create(fields);
      expect([answer.status, (answer.body as { code: string }).code], what).to.deep.equal([400, 'invalid_request']);
    }
    problemOf(await create({ project_id: UNKNOWN_ID }), 404, 'not_found');
    expect((await pagesOf(daemon, '/manage/trusts')).flat()).to.deep.equal([]);
    for (const issuer of ['http://localhost:9', 'http://127.0.0.1:9', 'https://issuer.example/realm/'])
      expect((await made({ issuer })).issuer, 'as it was written').to.equal(issuer);
  });

  it('are created, listed, changed and deleted, each with a record in the audit log', async () => {
    const trust = await made({ max_active: 3, per_hour: 60, budget: { usd: '1' } });
    const { id, created_at: created, ...rest } = trust;
    expect(rest).to.deep.equal({
      ...trustTerms(ISSUER, project.id),
      project_name: 'web',
      jwks_file: null,
      max_requests: 0,
      allow: null,
      limits: null,
      budget: { usd: '1.00', period: 'none', mode: 'soft' },
      max_active: 3,
      per_hour: 60,
      is_active: true,
      updated_at: created,
    });
    expect((await pagesOf<WireTrust>(daemon, '/manage/trusts?limit=2')).flat()[0]).to.deep.equal(trust);
    const read = await daemon.manage('GET', `/manage/trusts/${id.toUpperCase()}`);
    expect(read.body).to.deep.equal(trust);
    const etag = read.headers.get('etag') ?? '';

    const patch = (changes: object, headers = {}) => daemon.manage('PATCH', `/manage/trusts/${id}`, changes, headers);
    problemOf(await patch({}), 400, 'invalid_request');
    problemOf(await patch({ issuer: 'https://other.example' }), 400, 'invalid_request');
    problemOf(await patch({ match: { ref: 'refs/heads/main' } }), 400, 'invalid_request');
    const changed = await bodyOf<WireTrust>(patch({ max_active: null, match: { sub: 'x' } }, { 'if-match': etag }));
    expect({ ...changed, updated_at: '' }).to.deep.equal({
      ...trust,
      max_active: null,
      match: { sub: 'x' },
      updated_at: '',
    });
    problemOf(await patch({ per_hour: 1 }, { 'if-match': etag }), 412, 'precondition_failed');
    problemOf(
      await daemon.manage('DELETE', `/manage/trusts/${id}`, undefined, { 'if-match': etag }),
      412,
      'precondition_failed',
    );
    await bodyOf(daemon.manage('DELETE', `/manage/trusts/${id}`));
    for (const method of ['GET', 'DELETE'])
      problemOf(await daemon.manage(method, `/manage/trusts/${id}`), 404, 'not_found');
    problemOf(await patch({ is_active: false }), 404, 'not_found');

    const [creation] = await audited('trust.create');
    expect(creation).to.deep.include({ outcome: 'success', project_id: project.id, actor: 'management' });
    expect(creation?.details).to.deep.include({ trust: id, issuer: ISSUER, match: { repository: 'acme/web' } });
    const updates = await audited('trust.update');
    expect(updates.filter(({ outcome }) => outcome === 'success').map(({ details }) => details)).to.deep.equal([
      { trust: id, match: [{ repository: 'acme/web' }, { sub: 'x' }], max_active: [3, null] },
    ]);
    expect(updates.filter(({ outcome }) => outcome === 'denied')).to.have.lengthOf(3);
    const [deletion] = (await audited('trust.delete')).filter(({ outcome }) => outcome === 'success');
    expect(deletion?.details).to.deep.include({ trust: id, issuer: ISSUER, audience: 'llmp' });
  });
});
