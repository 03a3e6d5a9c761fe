import { expect } from 'chai';
import type { WireEvent } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { perTest } from '../support/per-test.js';
import { replies } from '../support/provider.js';
import { head } from '../support/raw.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { llmp, type Situation } from './captured.js';
import { Running } from './running.js';
import { refuse, startStandIn } from './stand-in.js';

describe('llmp events list', function () {
  this.timeout(30_000);
  let scene: ProxyFixture;

  before(async () => {
    scene = await ProxyFixture.open();
    const capped = await scene.daemon.createToken(scene.project.id, { name: 'nightly tests', max_requests: 1 });
    await scene.get(capped.token);
    await scene.get(capped.token, { 'X-Request-ID': 'capped' });
    scene.provider.answer = replies(404, {});
    await scene.get(scene.secret, { 'X-Request-ID': 'unknown' });
    await eventually('all have ended', () => scene.daemon.ended.length === 3);
  });
  after(() => scene.close());

  const list = (args: string, situation: Situation = {}) =>
    llmp(`events list ${args}`.trim(), {
      env: { LLMP_SERVER: scene.daemon.url, MANAGEMENT_TOKEN, NO_COLOR: '1' },
      nowMs: scene.daemon.clock.now(),
      ...situation,
    });
  const listed = async (args: string) => {
    const { out, exitCode } = await list(`-o json ${args}`);
    expect(exitCode).to.equal(0);
    return (JSON.parse(out) as WireEvent[]).map((it) => it.request_id);
  };

  it('lists stored events, newest first, that match all options', async () => {
    expect((await listed('')).slice(0, 2)).to.deep.equal(['unknown', 'capped']);
    expect(await listed('--failed')).to.deep.equal(['unknown', 'capped']);
    expect(await listed('--failed --limit 1')).to.deep.equal(['unknown']);
    expect(await listed('--code request_limit_reached --since 1h')).to.deep.equal(['capped']);
    expect(await listed('--outcome upstream_refused,timeout')).to.deep.equal(['unknown']);
    expect(await listed(`--outcome !ok,refused --project-id ${scene.project.id}`)).to.deep.equal(['unknown']);
    expect(await listed('--model gpt')).to.deep.equal([]);
  });

  it('lists events that a query selects, of which --limit shows a part', async () => {
    expect(await listed('outcome:failed')).to.deep.equal(['unknown', 'capped']);
    expect(await listed('outcome:failed --limit 1')).to.deep.equal(['unknown']);
    expect(await listed('model:gpt status:4xx')).to.deep.equal([]);
    expect(await listed('why:cap')).to.deep.equal(['capped']);
    expect(await listed('why:provider,nothing')).to.deep.equal(['unknown']);
    expect(await listed('!status:404 --failed')).to.deep.equal(['capped']);
    expect((await list('outcome:failed --failed')).err).to.contain('outcome in the query and as an option');
  });

  it('says of a token that is no longer valid why the daemon refused it', async () => {
    const own = await ProxyFixture.open();
    try {
      const ending = await own.daemon.createToken(own.project.id, { duration_hours: 1 });
      const revoked = await own.daemon.createToken(own.project.id, {});
      await own.daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
      own.daemon.clock.advance(2 * 3_600_000);
      for (const { token } of [ending, revoked]) await own.get(token, { 'X-Request-ID': 'refused' });
      await eventually('all have ended', () => own.daemon.ended.length === 2);
      const { out } = await llmp('events list', {
        env: { LLMP_SERVER: own.daemon.url, MANAGEMENT_TOKEN, NO_COLOR: '1' },
        nowMs: own.daemon.clock.now(),
        terminal: 160,
      });
      const causes = Array.from(out.matchAll(/^[\d\s:-]+ 401 +(\w+(?: \w+)*)/gm), ([, why]) => why);
      expect(causes).to.deep.equal(['revoked', 'expired']);
    } finally {
      await own.close();
    }
  });

  it('shows a table with names, and says if nothing matches', async () => {
    const { out } = await list('--code request_limit_reached', { terminal: 160 });
    expect(out).to.match(/^TIME +STATUS +WHY +TOKEN +PROJECT +MODEL +COST +DURATION +CACHE +REQUEST$/m);
    expect(out).to.match(/ 429 +cap spent +nightly tests +project \d+ +\$0 +\d+ ms +miss +GET \/v1\/models/);
    expect((await list('--took-over 60s', { terminal: 80 })).err).to.contain('No matching events.');
  });

  it('has the error and the names as the last fields of CSV', async () => {
    const { out } = await list('--code request_limit_reached -o csv');
    const [titles = '', row = ''] = out.split('\r\n');
    expect(titles).to.match(/,id,token_name,project_name,error,user,cost_usd$/);
    expect(row).to.match(/,"nightly tests","project \d+","token request limit reached: ask for another token",,0\.00$/);
  });
});

describe('llmp events tail', function () {
  this.timeout(30_000);

  describe('against a daemon', () => {
    let scene: ProxyFixture;
    let running: Running | null = null;

    before(async () => {
      scene = await ProxyFixture.open();
    });
    beforeEach(() => scene.begin());
    afterEach(async () => {
      await running?.press();
      running = null;
      await scene.end();
    });
    after(() => scene.close());

    /** Runs the command until it receives an event: it does not get events published before it connects. */
    async function tail(args: string, situation: Situation = {}): Promise<Running> {
      const { streams } = scene.daemon.daemon;
      running = new Running(scene.daemon.url, args, situation);
      await eventually('it follows', () => streams.size === 1);
      return running;
    }
    const eventsOf = ({ out }: Running) =>
      out
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as WireEvent);

    for (const words of ['events tail', 'manage events tail -f']) {
      it(`${words} prints JSON, an event a line, until ^C, which it says nothing of`, async () => {
        const tailing = await tail(words);
        await scene.get();
        await eventually('it is printed', () => tailing.out.includes('\n'));
        expect(eventsOf(tailing)).to.have.length(1);
        expect(eventsOf(tailing)[0]).to.include({ kind: 'request.completed', status: 200, token_id: scene.token.id });
        running = null;
        const { exitCode, err } = await tailing.press();
        expect({ exitCode, err }).to.deep.equal({ exitCode: 130, err: '' });
      });
    }

    it('shows only events that a query selects, also where the daemon does not filter', async () => {
      const tailing = await tail('events tail !404 -o jsonl');
      scene.provider.answer = replies(404, {});
      await scene.get(scene.secret, { 'X-Request-ID': 'unknown' });
      scene.provider.answer = replies(200, {});
      await scene.get(scene.secret, { 'X-Request-ID': 'known' });
      await eventually('it is printed', () => tailing.out.includes('\n'));
      expect(eventsOf(tailing).map((event) => event.request_id)).to.deep.equal(['known']);
    });

    it('shows only matching events', async () => {
      const other = await scene.daemon.createProject({ name: 'elsewhere' });
      const { token } = await scene.daemon.createToken(other.id);
      scene.provider.answer = replies(404, {});
      const tailing = await tail('events tail --project-id elsewhere --status 404,5xx');
      await scene.get();
      await scene.get(token);
      await scene.daemon.createToken(other.id);
      scene.provider.answer = replies(500, {});
      await scene.get(token);
      await eventually('both are printed', () => eventsOf(tailing).length === 2);
      expect(eventsOf(tailing).map((it) => 'status' in it && [it.project_id, it.status])).to.deep.equal([
        [other.id, 404],
        [other.id, 500],
      ]);
    });

    it('shows one line per event on a terminal, under titles, in fixed columns', async () => {
      const tailing = await tail('events tail', {
        terminal: 120,
        env: { LLMP_SERVER: scene.daemon.url, MANAGEMENT_TOKEN, NO_COLOR: '1' },
      });
      await scene.get();
      await scene.send(`GET /v1/a\u00e9 HTTP/1.1\r\nHost: x\r\n\r\n`);
      await scene.daemon.createToken(scene.project.id);
      await eventually('three lines', () => tailing.out.split('\n').length === 4);
      const [titles = '', request = '', change = ''] = tailing.out.split('\n');
      expect(titles).to.match(/^TIME {6}STATUS {2}WHY {19}TOKEN {11}PROJECT {5}MODEL {9}DURATION {2}REQUEST$/);
      expect(request).to.match(/^\d\d:\d\d:\d\d {2}200 .* \d+ ms {2}GET/);
      expect(request.slice(titles.indexOf('REQUEST'))).to.equal('GET /v1/models');
      expect(request.slice(titles.indexOf('TOKEN'))).to.match(new RegExp(`^${scene.token.id.slice(0, 8)} `));
      expect(change.slice(titles.indexOf('REQUEST'))).to.equal('token.created by management');
    });

    it('shows names, and why requests failed', async () => {
      const capped = await scene.daemon.createToken(scene.project.id, { name: 'nightly tests', max_requests: 1 });
      const tailing = await tail('events tail --failed', {
        terminal: 150,
        env: { LLMP_SERVER: scene.daemon.url, MANAGEMENT_TOKEN, NO_COLOR: '1' },
      });
      await scene.get(capped.token);
      await scene.get(capped.token);
      scene.provider.answer = replies(404, {});
      await scene.get();
      await eventually('two lines', () => tailing.out.split('\n').length === 4);
      const [, refused = '', unknown = ''] = tailing.out.split('\n');
      expect(refused).to.match(/ 429 {5}cap spent {13}nightly tests {3}project .* \d+ ms {2}miss /);
      expect(unknown).to.match(/ 404 {5}provider refused .* \d+ ms {2}miss /);
    });

    it('begins with stored events when asked to, and goes on', async () => {
      await scene.get();
      scene.daemon.clock.advance(20 * 60_000);
      await scene.get(scene.secret, { 'X-Request-ID': 'stored' });
      const nowMs = scene.daemon.clock.now();
      const tailing = await tail('events tail --since 15m --kind request.completed', { nowMs });
      await eventually('the stored one', () => eventsOf(tailing).length === 1);
      await scene.get(scene.secret, { 'X-Request-ID': 'new' });
      await eventually('the new one', () => eventsOf(tailing).length === 2);
      expect(eventsOf(tailing).map((it) => it.request_id)).to.deep.equal(['stored', 'new']);
    });

    it('omits columns that do not fit, and is as wide as the terminal', async () => {
      for (const width of [30, 40, 80, 100]) {
        const tailing = await tail('events tail', { terminal: width });
        await scene.send(head(`GET /v1/${'a-long-path-'.repeat(12)}`, scene.secret));
        await eventually('a line', () => tailing.out.split('\n').length === 3);
        // eslint-disable-next-line no-control-regex -- colors
        const lines = tailing.out.replaceAll(/\x1b\[[\d;]*m/g, '').split('\n');
        for (const line of lines) expect(line.length, line).to.be.at.most(width);
        expect(lines[0]).to.include('STATUS').and.include('REQUEST');
        if (width <= 40) expect(lines[0]).not.to.include('CACHE');
        await tailing.press();
        await eventually('it has gone', () => scene.daemon.daemon.streams.size === 0);
      }
    });

    it('prints CSV with one line of titles, and ids alone, when asked to', async () => {
      const csv = await tail('events tail -o csv');
      await scene.get();
      await scene.get();
      await eventually('both', () => csv.out.split('\r\n').length === 4);
      const [titles, row] = csv.out.split('\r\n');
      expect(titles).to.match(/^time,kind,status,outcome,code,method,path,/);
      expect(row).to.match(/Z,request\.completed,200,ok,,GET,\/v1\/models,/);
      await csv.press();
      await eventually('it has gone', () => scene.daemon.daemon.streams.size === 0);
      const ids = await tail('events tail -o id');
      await scene.get();
      await eventually('an id', () => /^[0-9a-f-]{36}\n$/.test(ids.out));
    });

    it('refuses an invalid status, kind or ID before it sends a request', async () => {
      for (const args of [
        '--status 6xx',
        '--status',
        '--status 4xx,',
        '--kind x',
        '--code 429',
        '--outcome success',
        '--outcome ok --failed',
        '--model a,,b',
        '--took-over 1h',
        '--since tomorrow',
        '--token-id sk-wt-x',
        '--project-id sk-wt-x',
      ]) {
        expect(
          (await llmp(`events tail ${args}`, { env: { LLMP_SERVER: 'http://127.0.0.1:9', MANAGEMENT_TOKEN } }))
            .exitCode,
          args,
        ).to.equal(2);
      }
    });
  });

  describe('against one that fails', () => {
    const standIn = perTest(startStandIn);

    it('continues after the last event when the stream ends or breaks', async () => {
      let asked = 0;
      standIn.answer = (_req, res) => {
        asked += 1;
        if (asked === 3) {
          res.writeHead(503).end();
          return;
        }
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write(`id: ${asked}-0\ndata: {"id":"${asked}"}\n\n`, () => {
          if (asked === 1) res.end();
          if (asked === 2) res.destroy();
        });
      };
      const running = new Running(standIn.url, 'events tail -o id');
      await eventually('it came back', () => running.out === '1\n2\n4\n', 20_000);
      expect(standIn.asked.map(({ headers }) => headers['last-event-id'])).to.deep.equal([
        undefined,
        '1-0',
        '2-0',
        '2-0',
      ]);
      expect(running.err).to.include('ended; reconnecting');
      expect((await running.press()).exitCode).to.equal(130);
    });

    it('reports the reason when the first attempt fails, or the daemon refuses', async () => {
      standIn.answer = refuse(404, 'not_found', 'no events are published: LLM_PROXY_EVENT_BUS is off');
      const refused = new Running(standIn.url, 'events tail');
      await eventually('it says so', () => refused.err.includes('no events are published'));
      expect((await refused.press()).exitCode).to.equal(4);
      const unreachable = new Running('http://127.0.0.1:9', 'events tail');
      await eventually('it says so', () => unreachable.err !== '');
      expect((await unreachable.press()).exitCode).to.equal(6);
    });
  });
});
