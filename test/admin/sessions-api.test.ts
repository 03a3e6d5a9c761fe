/** The session operations of the management API, for front ends with a login. */
import { expect } from 'chai';
import type { WireSession } from '../../daemon/api/contract.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type AuditRow, auditOf } from '../support/management.js';

const AS_ADMIN = { 'x-llmp-actor': 'admin', 'x-llmp-client-ip': '203.0.113.7' };

describe('sessions in the management API', () => {
  let daemon: TestDaemon;

  beforeEach(async () => {
    daemon = await startDaemon();
  });
  afterEach(() => daemon.stop());

  const logIn = (token = MANAGEMENT_TOKEN, headers: Record<string, string> = AS_ADMIN) =>
    daemon.manage('POST', '/manage/sessions', { token }, headers);
  const recorded = async (action: string, count: number): Promise<AuditRow[]> => {
    let rows: AuditRow[] = [];
    await eventually(`${count} records of ${action}`, async () => {
      rows = (await auditOf(daemon)).filter((row) => row.action === action);
      return rows.length >= count;
    });
    expect(rows).to.have.length(count);
    return rows;
  };

  it('start with the management token, and are recorded with the address of the browser', async () => {
    const answer = await logIn();
    expect(answer.status).to.equal(201);
    const body = answer.body as WireSession;
    expect(body).to.have.property('ended_at', null);
    const [row] = await recorded('admin.login', 1);
    expect(row).to.include({ actor: 'admin', outcome: 'success', client_ip: '203.0.113.7' });
    expect((await daemon.manage('GET', `/manage/sessions/${body.id}`)).body).to.deep.equal(body);
  });

  it('end once, and remain ended after a restart', async () => {
    const { id } = (await logIn()).body as { id: string };
    const other = (await logIn()).body as { id: string };
    const path = `/manage/sessions/${id}`;
    const ended = await daemon.manage('DELETE', path, undefined, AS_ADMIN);
    expect(ended.status).to.equal(200);
    expect((await daemon.manage('DELETE', path, undefined, AS_ADMIN)).body).to.deep.equal(ended.body);
    expect((await recorded('admin.logout', 1))[0]).to.include({ actor: 'admin', client_ip: '203.0.113.7' });

    await daemon.stop();
    daemon = await startDaemon({ dir: daemon.dir });
    expect((await daemon.manage('GET', path)).body).to.deep.equal(ended.body);
    expect((await daemon.manage('GET', `/manage/sessions/${other.id}`)).body).to.have.property('ended_at', null);
  });

  it('are not found by an unknown ID, or by the ID of another resource', async () => {
    const project = await daemon.createProject();
    for (const id of [project.id, '00000000-0000-4000-8000-000000000000', 'admin']) {
      expect((await daemon.manage('GET', `/manage/sessions/${id}`)).status).to.equal(404);
      expect((await daemon.manage('DELETE', `/manage/sessions/${id}`)).status).to.equal(404);
    }
  });

  it('are refused with 403 for a wrong token, which is recorded with the address of the browser but never shown', async () => {
    const wrong = canary('management');
    const answer = await logIn(wrong);
    expect(answer.status).to.equal(403);
    expect(answer.body).to.include({ code: 'log_in_refused' });
    const [row] = await recorded('admin.login', 1);
    expect(row).to.include({ actor: 'admin', outcome: 'denied', client_ip: '203.0.113.7' });
    expect(JSON.stringify([row, answer.body, daemon.logged])).not.to.include(wrong);
  });

  it('P08 have a separate limit: wrong tokens at the login do not count as wrong credentials of requests', async () => {
    for (let i = 0; i < 11; i++) await logIn('wrong', { 'x-llmp-actor': 'admin' });
    const answer = await daemon.manage('GET', '/manage/projects', undefined, { authorization: 'Bearer wrong' });
    expect(answer.status).to.equal(401);
  });
});
