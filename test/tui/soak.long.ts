/** The terminal UI, open for a long time in front of live traffic: its memory stays flat. */
import { expect } from 'chai';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import { completion, json } from '../../daemon/demo/responses.js';
import { makeTokens } from '../support/many-tokens.js';
import { startProvider, type Provider } from '../support/provider.js';
import { type Terminal, WITHOUT_TMUX } from '../support/tmux.js';
import { TerminalFixture } from './terminal-fixture.js';

/** LLMP_TEST_SOAK_MINUTES=60 runs it for an hour. */
const MINUTES = Number(process.env.LLMP_TEST_SOAK_MINUTES ?? 1);
/** What the runtime needs until its heap has its size: the first part of the run does not count. */
const WARM_UP = 0.4;
/** Between the warm-up and the end. A leak of one screen of 200 rows a second would be more in a minute. */
const MOST_GROWTH_MB = 25;
const REQUESTS_PER_SECOND = 20;

/** Each begins and ends on a screen with tabs. */
const TOURS: readonly (readonly string[])[] = [
  ['2', 'j', 'j', 'G', 'g', 'Enter', 'j', 'q'],
  ['2', '/', 'w', 'e', 'b', 'Enter', 'Escape'],
  ['2', 's', 's', 'S', 'S', 's', 's', 's'],
  ['6', 'Enter', 'j', 'k', 'Escape', 'e', 'e'],
  ['4', 'j', 'Enter', 'Escape', 'G', 'g'],
  ['3', 'j', 'k'],
  ['5', '1'],
  ['7', 'o', 'm', 't', 'w', 'w', 's', 'Enter', 'Escape'],
  ['3', 'j', 'Enter', 'Escape'],
  ['2', ':', 't', 'o', 'Escape', '?', 'j', 'Escape'],
  ['2', 'C', 'Escape', 'c', 'Escape', '1'],
];

describe(`llmp tui, open for ${MINUTES} min${WITHOUT_TMUX}`, function () {
  this.timeout((MINUTES + 2) * 60_000);
  let stage: TerminalFixture;
  let provider: Provider;
  let terminal: Terminal;
  const stopped = new AbortController();
  let traffic: Promise<void>;

  before(async function () {
    if (WITHOUT_TMUX) this.skip();
    provider = await startProvider();
    provider.answer = (_req, res) => {
      provider.received.length = 0;
      if (Math.random() < 0.1) json(res, 500, { error: { message: 'overloaded' } });
      else json(res, 200, completion('model-1', 'Hello.'));
    };
    stage = await TerminalFixture.open({ UPSTREAM_BASE_URL: provider.url });
    for (const name of ['web', 'batch', 'notebooks']) await stage.project(name);
    await stage.kill();
    await makeTokens(stage.database, 5_000);
    await stage.begin();
    const [project] = await stage.manage<{ id: string }[]>('GET', '/manage/projects');
    const issue = (name: string) =>
      stage.manage<WireTokenCreated>('POST', '/manage/tokens', { project_id: project?.id, name });
    const issued = await Promise.all(['alpha', 'beta', 'gamma', 'delta'].map(issue));
    traffic = sendUntilStopped(
      stage.server,
      issued.map(({ token }) => token),
      stopped.signal,
    );
    terminal = await stage.watch({ columns: 120, rows: 40 });
    await terminal.shows(/live/);
  });
  after(async () => {
    if (WITHOUT_TMUX) return;
    stopped.abort();
    await traffic;
    await stage.close();
    await provider.stop();
  });

  it('uses no more memory at the end than after its start', async () => {
    const pid = await terminal.program();
    const beganMs = Date.now();
    const endMs = beganMs + MINUTES * 60_000;
    const samples: { atMs: number; mb: number }[] = [];
    for (let tour = 0; Date.now() < endMs; tour++) {
      for (const key of TOURS[tour % TOURS.length] ?? []) {
        await terminal.press(key);
        await sleep(150);
      }
      samples.push({ atMs: Date.now() - beganMs, mb: await residentMb(pid) });
      if (MINUTES > 1 && tour % 10 === 0) console.log(Math.round((Date.now() - beganMs) / 1000), samples.at(-1)?.mb);
    }
    await terminal.press('2');
    await terminal.shows(/live/);
    const settled = samples.filter(({ atMs }) => atMs > WARM_UP * (endMs - beganMs));
    const third = Math.ceil(settled.length / 3);
    const first = median(settled.slice(0, third).map(({ mb }) => mb));
    const last = median(settled.slice(-third).map(({ mb }) => mb));
    if (MINUTES > 1) console.log('after the warm-up', first, 'at the end', last);
    expect(last - first, `${first} MB, later ${last} MB`).to.be.below(MOST_GROWTH_MB);
  });
});

async function sendUntilStopped(server: string, secrets: readonly string[], signal: AbortSignal): Promise<void> {
  for (let n = 0; !signal.aborted; n++) {
    await fetch(`${server}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secrets[n % secrets.length]}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: `model-${n % 5}`, messages: [{ role: 'user', content: `${n}` }] }),
    })
      .then((response) => response.arrayBuffer())
      .catch(() => undefined);
    await sleep(1000 / REQUESTS_PER_SECOND);
  }
}

/** Resident memory of a process in MB. */
async function residentMb(pid: number): Promise<number> {
  const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kb) / 1024);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
