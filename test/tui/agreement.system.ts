/** What the terminal UI says agrees with what it shows and with the daemon, in a real terminal: orders, failures, counts, and a refusal. */
import { expect } from 'chai';
import type { WireIncidents, WireStatus, WireTokenCreated, WireUsageLine } from '../../daemon/api/contract.js';
import { rate } from '../../daemon/api/formats.js';
import { eventually } from '../support/eventually.js';
import { makeTokens } from '../support/many-tokens.js';
import { json, type Provider, startProvider } from '../support/provider.js';
import { type Terminal, WITHOUT_TMUX } from '../support/tmux.js';
import { TerminalFixture } from './terminal-fixture.js';

/** Tokens of all states. */
const TOKENS = 9;
const HOUR_MS = 3_600_000;
const WITHIN_MS = 20_000; // On a busy machine.
const SIZES = [
  [200, 60],
  [120, 40],
  [80, 24],
] as const;
/** Some refreshes. */
const SOON_MS = 10_000;
const SCREENS = ['overview', 'tokens', 'projects', 'audit', 'cache', 'events', 'top'];

/** The requests of each token, of its project, and of all clients. Some have no token. */
const OF_TOKENS = {
  working: { requests: 60, errors: 0, refused: 0, upstream_refused: 0, failed: 0, cut: 0 },
  broken: { requests: 55, errors: 55, refused: 0, upstream_refused: 20, failed: 35, cut: 0 },
  leaked: { requests: 50, errors: 50, refused: 40, upstream_refused: 0, failed: 0, cut: 10 },
};
const WEB = { requests: 165, errors: 105, refused: 40, upstream_refused: 20, failed: 35, cut: 10 };
const ALL = { requests: 172, errors: 112, refused: 47, upstream_refused: 20, failed: 35, cut: 10 };

type Value = number | string;

const UNITS = { s: 1, m: 60, h: 3_600, d: 86_400 };
/** `in 3h`, `5m ago`, `now` or `never`, in seconds from now. */
function seconds(shown: string): number {
  const [, number, unit] = /(\d+)([smhd])/.exec(shown) ?? [];
  const distance = Number(number ?? 0) * UNITS[(unit ?? 's') as keyof typeof UNITS];
  return shown === 'never' ? -Infinity : shown.endsWith('ago') ? -distance : distance;
}
const number = (shown: string) => parseInt(shown.replaceAll(',', ''), 10);

/** The columns in the order in which the key sorts by them, with the arrows of both directions. */
const ORDERS: [title: string, valueOf: (cell: string) => Value, arrow: string, reversed: string][] = [
  ['CREATED', seconds, '▼', '▲'],
  ['LAST USED', seconds, '▼', '▲'],
  ['REQUESTS', number, '▼', '▲'],
  ['NAME', String, '▲', '▼'],
  ['EXPIRES', seconds, '▲', '▼'],
];

/** The cells of the column of a list that has this title. */
function cellsOf(screen: string, title: string): string[] {
  const lines = screen.replace(/[│█>]/g, ' ').split('\n');
  const titled = new RegExp(`${title}(?: [▲▼])?`);
  const head = lines.findIndex((line) => titled.test(line));
  const from = lines[head]?.search(titled) ?? 0;
  const to = from + (titled.exec(lines[head] ?? '')?.[0].length ?? 0);
  const end = lines.findIndex((line, at) => at > head && line.startsWith('└'));
  return lines.slice(head + 1, end).flatMap((line) => {
    const cells = [...line.matchAll(/\S+(?: \S+)*/g)];
    return cells.find(({ 0: cell, index }) => index < to && index + cell.length > from)?.[0] ?? [];
  });
}

/** The usable tokens by expiry, then the others: those that expired last come first. */
function usableByExpiry(screen: string): number[] {
  const expiries = cellsOf(screen, 'EXPIRES').map(seconds);
  const isUsable = cellsOf(screen, 'STATE').map((state) => /active|limited/.test(state));
  return expiries.map((expiry, at) => (isUsable[at] ? expiry : 1e9 - expiry));
}

/** In the order of an arrow. */
function ordered(values: readonly Value[], arrow: string): Value[] {
  const ascending = values.toSorted((one, other) => (one < other ? -1 : Number(one > other)));
  return arrow === '▲' ? ascending : ascending.reverse();
}

/** The text in the frame with this title, with single spaces. */
function paneOf(screen: string, title: string): string {
  const lines = screen.split('\n');
  const top = lines.findIndex((line) => line.includes(`┌ ${title} `));
  const from = lines[top]?.indexOf(`┌ ${title} `) ?? 0;
  const to = lines[top]?.indexOf('┐', from);
  const rows = lines.slice(top + 1).map((line) => line.slice(from, to));
  const end = rows.findIndex((row) => row.startsWith('└'));
  return rows
    .slice(0, end)
    .join(' ')
    .replace(/[│█\s]+/g, ' ');
}

describe(`what the terminal UI says${WITHOUT_TMUX}`, function () {
  this.timeout(120_000);
  let stage: TerminalFixture;
  let provider: Provider;
  let webId: string;

  before(async function () {
    if (WITHOUT_TMUX) this.skip();
    provider = await startProvider();
    provider.answer = ({ url = '' }, res) => {
      const status = Number(/\d+$/.exec(url)?.[0] ?? 0);
      if (status > 0) json(res, status, {});
      else res.writeHead(200).write('It does not end.');
    };
    stage = await TerminalFixture.open({ UPSTREAM_BASE_URL: provider.url });
    webId = (await stage.project('web')).id;
    await stage.kill();
    await makeTokens(stage.database, TOKENS, { everyMs: 7 * HOUR_MS });
    await stage.begin();
    await sendAll();
  });
  after(async () => {
    if (WITHOUT_TMUX) return;
    await stage.close();
    await provider.stop();
  });

  async function sendAll(): Promise<void> {
    const { working, broken, leaked } = OF_TOKENS;
    const issue = (name: string) =>
      stage.manage<WireTokenCreated>('POST', '/manage/tokens', { project_id: webId, name, duration_hours: 50 });
    const send = (secret: string, path: string, times: number) => {
      const headers = { authorization: `Bearer ${secret}` };
      return Promise.all(Array.from({ length: times }, () => fetch(`${stage.server}/v1/${path}`, { headers })));
    };
    const revoked = await issue('leaked');
    const held = await send(revoked.token, 'held', leaked.cut);
    await stage.manage('PATCH', `/manage/tokens/${revoked.id}`, { is_active: false });
    await Promise.allSettled(held.map((response) => response.text()));
    const failing = (await issue('broken')).token;
    const responses = await Promise.all([
      send(revoked.token, 'refused', leaked.refused),
      send((await issue('working')).token, '200', working.requests),
      send(failing, '404', broken.upstream_refused),
      send(failing, '500', broken.failed),
      send('no-token', 'refused', ALL.refused - WEB.refused),
    ]);
    await Promise.all(responses.flat().map((response) => response.text()));
    await issue('unused');
  }

  for (const [columns, rows] of SIZES) {
    describe(`at ${columns}x${rows}`, () => {
      let terminal: Terminal;
      before(async () => {
        terminal = await stage.watch({ columns, rows, args: ['--screen', 'overview'] });
        await terminal.shows(/● live/, WITHIN_MS);
      });
      after(() => terminal.close());

      it('sorts the tokens as the title of a column says', async () => {
        /** Waits for the order of the arrow, because a screen that is read may still be changing. */
        const isSorted = async (head: RegExp, valuesOf: (screen: string) => Value[], arrow: string) => {
          const seen = await terminal.shows((screen) => {
            const values = valuesOf(screen);
            return head.test(screen) && values.length >= TOKENS && values.join() === ordered(values, arrow).join();
          }, WITHIN_MS);
          expect(new Set(valuesOf(seen)).size, 'of equal values').to.be.above(1);
        };
        await terminal.press('2');
        for (const [which, arrow] of [
          ['first', '▲'],
          ['last', '▼'],
        ] as const) {
          await isSorted(new RegExp(`usable ${which}, by expiry[^▲▼]*CI job`), usableByExpiry, arrow);
          await terminal.press('S');
        }
        for (const [title, valueOf, ...arrows] of ORDERS) {
          await terminal.press('s');
          for (const arrow of arrows) {
            await isSorted(new RegExp(`${title} ${arrow}`), (screen) => cellsOf(screen, title).map(valueOf), arrow);
            await terminal.press('S');
          }
        }
      });

      it('counts what is created elsewhere', async () => {
        await terminal.press('1');
        const [, tokens, projects] =
          /2 Tokens (\d+) +3 Projects (\d+) /.exec(await terminal.shows(/2 Tokens \d+ +3 Projects \d/, WITHIN_MS)) ??
          [];
        await stage.token(webId, `elsewhere-${columns}`);
        await stage.project(`without-tokens-${columns}`);
        const later = `2 Tokens ${Number(tokens) + 1} +3 Projects ${Number(projects) + 1} `;
        await terminal.shows(new RegExp(later), SOON_MS);
      });

      it('says once in help that there are no saved views', async () => {
        await terminal.press('?', '/');
        await terminal.type('view');
        const help = await terminal.shows(/show the next saved view/, WITHIN_MS);
        expect(help.match(/There are no/g)).to.have.length(1);
        await terminal.press('Escape', 'Escape');
      });

      it('counts the same failures on each screen, in the same words, as the usage reports', async () => {
        const usage = async (query: string) => (await stage.manage<WireUsageLine[]>('GET', `/manage/usage${query}`))[0];
        await eventually('all is counted', async () => (await usage(''))?.requests === ALL.requests);
        expect(await usage('')).to.include(ALL);
        expect(await usage(`?project_id=${webId}`)).to.include(WEB);
        for (const [name, figures] of Object.entries(OF_TOKENS))
          expect(await usage(`?token_id=${(await stage.tokenNamed(name)).id}`)).to.include(figures);
        await terminal.press('1');
        const words = '112 failures: 47 refused, 20 provider refused, 35 failed, 10 cut';
        await terminal.shows(
          (screen) =>
            paneOf(screen, 'Traffic, last hour').includes(`172 in the hour ${words}`) &&
            (columns < 120 || paneOf(screen, 'Last 24 hours').includes('172 requests 112 failures')),
          WITHIN_MS,
        );
        await eventually('the rates of the last minute are those of the daemon', async () => {
          await terminal.press('C-r');
          const { requests } = await stage.manage<WireStatus>('GET', '/manage/status');
          const rates = `req ${rate(requests!.per_second)}/s  failures ${rate(requests!.errors_per_second)}/s`;
          return (await terminal.screen()).includes(rates);
        });
        const { incidents } = await stage.manage<WireIncidents>('GET', '/manage/incidents');
        const problems = incidents.length;
        await terminal.shows(new RegExp(`1 Overview +✗${problems} [^]*┌ Problems ${problems} `), WITHIN_MS);

        await terminal.press('7');
        const foot = columns >= 120 ? words : '112 failures';
        await terminal.shows(
          (screen) =>
            screen.includes(`172 requests, ${foot}`) && cellsOf(screen, 'FAILURES').map(number).join() === '55,50,0',
          WITHIN_MS,
        );
        for (const [row, shown] of [
          ['g', /top › broken[^]*Last 24 hours +55 requests +55 failures(?:: 20 provider refused, 35 failed)? /],
          ['j', /top › leaked[^]*Last 24 hours +50 requests +50 failures(?:: 40 refused, 10 cut)? /],
        ] as const) {
          await terminal.press(row, 'Enter');
          await terminal.shows(shown, WITHIN_MS);
          await terminal.press('h');
          await terminal.shows(/Tokens, last hour/, WITHIN_MS);
        }

        await terminal.press('3');
        await terminal.shows(/REQ 24H +FAIL 24H [^]*> .*web .* 165 +105 /, WITHIN_MS);
        await terminal.press('Enter');
        await terminal.shows(/64% of the requests in 24 h failed/, WITHIN_MS);
        await terminal.shows(/requests +failures [^]*working +60 +0 [^]*broken +55 +55 [^]*leaked +50 +50 /, WITHIN_MS);
        const kinds = columns >= 120 ? ': 40 refused, 20 provider refused, 35 failed, 10 cut ' : ' ';
        await terminal.shows(new RegExp(`Last 24 hours +165 requests +105 failures${kinds}`), WITHIN_MS);
      });
    });
  }

  it('says that it is denied, and nowhere that it is connected, with a wrong management token', async () => {
    const terminal = await stage.watch();
    await terminal.shows(/● live/, WITHIN_MS);
    await terminal.type(':context wrong');
    await terminal.press('Enter');
    for (const [columns, rows] of SIZES) {
      await terminal.resize(columns, rows);
      for (const [at, screen] of SCREENS.entries()) {
        await terminal.press(String(at + 1));
        const denied = `wrong .*${screen} .*✗ denied[^]*! the management token was refused`;
        const seen = await terminal.shows(new RegExp(denied), WITHIN_MS);
        expect(seen).not.to.match(/\b(?:re)?connected|switched|● live|not responding/i);
      }
    }
  });
});
