/** The Events page, and the stream that its script reads. */
import { Readable } from 'node:stream';
import { expect } from 'chai';
import type { WireProject } from '../../daemon/api/contract.js';
import { EventStreamParser, type ServerSentEvent } from '../../daemon/api/event-stream.js';
import { startDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { perTest } from '../support/per-test.js';
import { startProvider } from '../support/provider.js';
import { adminForEachTest, type Fields, loggedIn } from './test-browser.js';

describe('the Events page of the Admin UI', () => {
  const provider = perTest(startProvider);
  const { daemon, browser } = adminForEachTest(() => ({ upstream: provider.url }));
  let project: WireProject;
  const streams: AbortController[] = [];

  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
  });
  afterEach(() => {
    for (const stream of streams.splice(0)) stream.abort();
  });

  /** Makes requests whose events are published when it resolves. */
  async function use(token: string, path = '/v1/models', times = 1): Promise<void> {
    for (let i = 0; i < times; i++) await (await daemon.call(token, path)).text();
    daemon.daemon.scheduler.publishAll();
  }

  interface OpenStream {
    status: number;
    headers: Headers;
    /** What came so far. */
    pieces: string[];
    isOver: () => boolean;
  }

  async function open(to: string, headers: Fields = {}): Promise<OpenStream> {
    const response = await browser.openStream(to, headers);
    const stop = new AbortController();
    streams.push(stop);
    const pieces: string[] = [];
    let isOver = false;
    void (async () => {
      const body = Readable.fromWeb(response.body!);
      stop.signal.addEventListener('abort', () => body.destroy());
      for await (const piece of body) pieces.push(String(piece));
      isOver = true;
    })().catch(() => (isOver = true));
    return { status: response.status, headers: response.headers, pieces, isOver: () => isOver };
  }

  const eventsIn = ({ pieces }: OpenStream): ServerSentEvent[] => new EventStreamParser().push(pieces.join(''));
  const textOf = (stream: OpenStream) =>
    eventsIn(stream)
      .map(({ data }) => data)
      .join('\n');

  it('lists the last events with the reason of a refusal, and filters them', async () => {
    const { token, id } = await daemon.createToken(project.id, { name: 'ci', max_requests: 1 });
    await use(token, '/v1/<img src=x>', 2);
    const { html } = await browser.get('events');
    expect(html).to.include('token.created').and.to.include('refused by llmp').and.to.include('request_limit_reached');
    expect(html).to.include('Token request limit reached: ask for another token.').and.not.to.include('<img');
    expect(html)
      .to.include(`href="/admin/tokens/${id}"`)
      .and.to.include(`href="/admin/events?project_id=${project.id}"`);
    expect(html)
      .to.include('<noscript>')
      .and.to.match(/data-stream="\/admin\/events\/stream\?since=/);

    const rowsOf = async (query: string) =>
      (await browser.get(`events?${query}`)).html.match(/<details id="/g)?.length ?? 0;
    expect(await rowsOf('show=requests')).to.equal(2);
    expect(await rowsOf('show=failures')).to.equal(2);
    expect(await rowsOf('show=refused')).to.equal(1);
    expect(await rowsOf(`show=requests&token_id=${id}&status=429`)).to.equal(1);
    expect(await rowsOf('model=gpt-4o')).to.equal(0);
    for (const text of ['ci', 'CI', id.slice(0, 8)])
      expect(await rowsOf(`show=refused&token_id=${text}`), text).to.equal(1);
    await daemon.createToken(project.id, { name: 'ci-2' });
    expect(await rowsOf('show=refused&token_id=ci'), 'the whole name').to.equal(1);
    expect((await browser.get('events?token_id=i')).html).to.include('Several tokens match this name or ID');
    expect((await browser.get('usage?token_id=nobody')).html).to.include('No token has this name or ID.');
    expect((await browser.get('audit?token_id=ci-2')).html).to.include('token.create');
    const wrong = await browser.get('events?status=many');
    expect(wrong.status).to.equal(400);
    expect(wrong.html).to.include('Status must be').and.to.include('value="many"').and.not.to.include('data-stream');
  });

  it('has older events on further pages, which do not change', async () => {
    const { token } = await daemon.createToken(project.id);
    await use(token, '/v1/models', 101);
    const first = await browser.get('events?show=requests');
    const next = /<a href="([^"]+)" rel="next"/.exec(first.html)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const second = await browser.get(next);
    expect(second.html.match(/<details id="/g)).to.have.length(1);
    expect(second.html).not.to.include('data-stream');
  });

  it('explains how to turn events on', async () => {
    const own = await startDaemon({ env: { LLM_PROXY_EVENT_BUS: 'off' } });
    const there = await loggedIn(own.managementUrl);
    const { status, html } = await there.get('events');
    expect(status).to.equal(200);
    expect(html).to.include('Events are turned off').and.to.include('LLM_PROXY_EVENT_BUS=off');
    await own.stop();
  });

  describe('its stream', () => {
    it('sends new events as rows, in the order of the list, without gap and without renewing the session', async () => {
      const { token } = await daemon.createToken(project.id, { max_requests: 1 });
      const { html } = await browser.get('events?show=requests');
      const to = /data-stream="\/admin\/([^"]+)"/.exec(html)?.[1]?.replaceAll('&amp;', '&') ?? '';
      await use(token, '/v1/before');
      const stream = await open(to);
      expect(stream.status).to.equal(200);
      expect(stream.headers.get('content-type')).to.equal('text/event-stream');
      expect(stream.headers.get('cache-control')).to.equal('no-store');
      expect(stream.headers.has('content-security-policy')).to.equal(true);
      expect(stream.headers.has('set-cookie'), 'does not renew the session').to.equal(false);
      await use(token, '/v1/after');
      await eventually('both requests came', () => {
        daemon.clock.advance(500);
        return /\/v1\/before/.test(textOf(stream)) && /\/v1\/after/.test(textOf(stream));
      });
      expect(textOf(stream)).to.include('Token request limit reached').and.not.to.include('token.created');
      expect(stream.pieces.join('')).to.include('event: rows\n');

      // A browser that reconnects gets what came since.
      const { id } = eventsIn(stream).at(-1)!;
      await use(token, '/v1/later');
      const again = await open(to, { 'last-event-id': id });
      await eventually('it continues', () => {
        daemon.clock.advance(500);
        return textOf(again).includes('/v1/later');
      });
      expect(textOf(again)).not.to.include('/v1/after');
    });

    const rowsIn = (stream: OpenStream) =>
      eventsIn(stream).map(({ data }) => data.match(/<details id="/g)?.length ?? 0);
    const sumOf = (numbers: number[]) => numbers.reduce((sum, number) => sum + number, 0);

    it('begins with up to 200 events', async () => {
      const { token } = await daemon.createToken(project.id);
      await use(token, '/v1/models', 210);
      const stream = await open('events/stream?show=requests&since=1h');
      await eventually('they came', () => sumOf(rowsIn(stream)) === 200);
      expect(stream.pieces.join('')).not.to.include('event: skipped');
    });

    it('leaves out events that nobody could read, and counts them', async () => {
      const { token } = await daemon.createToken(project.id);
      const stream = await open('events/stream?show=requests');
      await use(token);
      await eventually('it has begun', () => sumOf(rowsIn(stream)) === 1);
      await use(token, '/v1/models', 100);
      const skipped = () =>
        sumOf(
          [...stream.pieces.join('').matchAll(/event: skipped\ndata: (\d+)\n/g)].map(([, number]) => Number(number)),
        );
      await eventually('each of them is shown or counted', () => sumOf(rowsIn(stream)) + skipped() === 101);
      expect(Math.max(...rowsIn(stream))).to.equal(20);
      expect(skipped()).to.be.within(1, 80);
    });

    it('sends beats while the session is active, and ends with it', async () => {
      const stream = await open('events/stream');
      await eventually('there are beats', () => {
        daemon.clock.advance(2_500);
        return stream.pieces.join('').split('event: beat').length > 3;
      });
      await browser.get();
      await browser.post('logout');
      await eventually('it ends', () => {
        daemon.clock.advance(2_500);
        return stream.isOver();
      });
      expect((await browser.openStream('events/stream')).status).to.equal(303);
    });

    it('ends when the daemon stops', async () => {
      const stream = await open('events/stream');
      await daemon.stop();
      await eventually('it ends', () => stream.isOver());
    });

    it('refuses an invalid filter, and more than 20 streams', async () => {
      expect((await browser.openStream('events/stream?status=many')).status).to.equal(400);
      for (let i = 0; i < 20; i++) expect((await open('events/stream')).status).to.equal(200);
      const refused = await browser.openStream('events/stream');
      expect(refused.status).to.equal(503);
      expect(await refused.text()).to.include('Too many live pages');
      streams[0]!.abort();
      await eventually('there is room again', async () => (await open('events/stream')).status === 200);
    });
  });
});
