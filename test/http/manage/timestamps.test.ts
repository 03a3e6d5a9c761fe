import { expect } from 'chai';
import { timestampMs } from '../../../daemon/api/timestamp.js';
import type { WireAuditRecord, WireProject, WireToken } from '../../../daemon/api/contract.js';
import { daemonForSuite } from '../../support/daemon.js';
import { bodyOf, problemOf } from '../../support/management.js';

const NOON = Date.UTC(2026, 10, 23, 12);

describe('a timestamp', () => {
  for (const written of [
    '2026-11-23T12:00:00Z',
    '2026-11-23T12:00:00+00:00',
    '2026-11-23T12:00:00-00:00',
    '2026-11-23T13:00:00+01:00',
    '2026-11-23T17:30:00+05:30',
    '2026-11-23T04:00:00-08:00',
    '2026-11-24T02:00:00+14:00',
    '2026-11-24T11:59:00+23:59',
    '2026-11-23t12:00:00z',
    '2026-11-23T12:00:00.0Z',
    '2026-11-23T12:00:00.000000000+00:00',
    // What a `+` in a query is decoded to if the client does not encode it.
    '2026-11-23T13:00:00 01:00',
  ]) {
    it(`may have any offset: ${written}`, () => {
      expect(timestampMs(written)).to.equal(NOON);
    });
  }

  for (const [written, ms] of [
    ['2026-11-23T12:00:00.5Z', NOON + 500],
    ['2026-11-23T12:00:00.123456789Z', NOON + 123],
    ['2026-11-23T12:00:00.9999999999999999999999Z', NOON + 999],
    ['2016-12-31T23:59:60Z', Date.UTC(2017, 0, 1)],
    ['2017-01-01T00:59:60.75+01:00', Date.UTC(2017, 0, 1)],
    ['2016-06-30T16:59:60-07:00', Date.UTC(2016, 6, 1)],
    ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
    ['0000-01-01T00:00:00+23:59', Date.parse('-000001-12-31T00:01:00Z')],
    ['0099-12-31T23:59:59Z', Date.parse('0099-12-31T23:59:59Z')],
    ['9999-12-31T23:59:59.999-23:59', Date.parse('+010000-01-01T23:58:59.999Z')],
  ] as const) {
    it(`has milliseconds and may have leap seconds: ${written}`, () => {
      expect(timestampMs(written)).to.equal(ms);
    });
  }

  for (const written of [
    '',
    '2026-11-23',
    '2026-11-23T12:00Z',
    '2026-11-23T12:00:00',
    '2026-11-23 12:00:00Z',
    '2026-11-23T12:00:00+0100',
    '2026-11-23T12:00:00+01',
    '2026-11-23T12:00:00+24:00',
    '2026-11-23T12:00:00+01:60',
    '2026-11-23T12:00:00.Z',
    '2026-11-23T24:00:00Z',
    '2026-11-23T12:60:00Z',
    '2026-11-23T12:00:60Z',
    '2026-11-23T23:59:61Z',
    '2026-02-29T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-11-31T00:00:00Z',
    '12026-11-23T12:00:00Z',
    '+02026-11-23T12:00:00Z',
    '2026-11-23T12:00:00ZZ',
    ' 2026-11-23T12:00:00Z',
    '２０２６-11-23T12:00:00Z',
  ]) {
    it(`is not ${JSON.stringify(written)}`, () => {
      expect(timestampMs(written)).to.equal(null);
    });
  }
});

describe('queries with timestamps', () => {
  let project: WireProject;
  let token: WireToken;
  const daemon = daemonForSuite();
  before(async () => {
    project = await daemon.createProject();
    token = await daemon.createToken(project.id, { duration_hours: 1 });
  });

  const MINUTE_MS = 60_000;
  /** The same moment with an offset of `hours`. */
  const at = (ms: number, hours: number) => {
    const sign = hours < 0 ? '-' : '+';
    const offset = `${sign}${String(Math.abs(hours)).padStart(2, '0')}:00`;
    return new Date(ms + hours * 3_600_000).toISOString().replace('Z', offset);
  };
  const ids = async (path: string) => (await bodyOf<{ id: string }[]>(daemon.manage('GET', path))).map(({ id }) => id);

  for (const hours of [0, 2, -7]) {
    for (const [how, encoded] of [
      ['percent-encoded', encodeURIComponent],
      ['unencoded', (text: string) => text],
    ] as const) {
      it(`accept an offset of ${hours} hours ${how}`, async () => {
        const expires = Date.parse(token.expires_at);
        const before = (ms: number) => ids(`/manage/tokens?expires_before=${encoded(at(ms, hours))}`);
        expect(await before(expires - MINUTE_MS)).to.deep.equal([]);
        expect(await before(expires + MINUTE_MS)).to.deep.equal([token.id]);

        const created = Date.parse(project.created_at);
        const since = (ms: number) => ids(`/manage/audit?action=project.create&since=${encoded(at(ms, hours))}`);
        expect(await since(created + MINUTE_MS)).to.deep.equal([]);
        expect(await since(created - MINUTE_MS)).to.have.lengthOf(1);

        const usage = (ms: number) => daemon.manage('GET', `/manage/usage?since=${encoded(at(ms, hours))}`);
        expect((await usage(created - MINUTE_MS)).status).to.equal(200);
        problemOf(await usage(daemon.clock.now() + 60 * MINUTE_MS), 400, 'invalid_request');
      });
    }
  }

  it('accept a time span for usage too', async () => {
    expect((await daemon.manage('GET', '/manage/usage?since=7d&until=1h')).status).to.equal(200);
  });

  it('refuse a range that ends before it begins, for usage and audit records', async () => {
    for (const path of ['/manage/usage', '/manage/audit']) {
      const asked = (since: string, until: string) => daemon.manage('GET', `${path}?since=${since}&until=${until}`);
      const error = problemOf(await asked('2026-11-23T13:00:00Z', '2026-11-23T12:00:00Z'), 400, 'invalid_request');
      expect(error, path).to.include('since must not be after until');
      problemOf(await asked('1h', '2h'), 400, 'invalid_request');
      // An hour later in local time, but the same moment.
      await bodyOf<WireAuditRecord[]>(asked('2026-11-23T13:00:00%2B01:00', '2026-11-23T12:00:00Z'));
      await bodyOf(asked('2h', '1h'));
    }
  });
});
