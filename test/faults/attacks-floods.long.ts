/**
 * Floods of tiny pieces, bodies that unpack to much more, and clients that do not read, on a daemon with a heap of 256 MB. Each attack runs while
 * another project's requests arrive at a steady rate. README.md has the figures.
 */
import { expect } from 'chai';
import { whyNoNamespace } from './support/attacks/namespace.js';
import { resultOf } from './support/attacks/run.js';
import type { SceneResult } from './support/attacks/scene.js';

const MOST_MB = 64;
const GRACE_MS = 5_000;
/** What a daemon needs to end after the grace. */
const ENDING_MS = 1_500;

/** The other project's requests are all answered, in not more than twice the time. */
function expectUndisturbed({ before, during, after }: SceneResult): void {
  expect(Object.keys(during.statuses), "the other project's responses").to.deep.equal(['200']);
  expect(Object.keys(after.statuses), "the other project's responses after it").to.deep.equal(['200']);
  expect(during.p50Ms, "the other project's p50").to.be.at.most(2 * Math.max(before.p50Ms, after.p50Ms));
}

function expectBounded({ rssBeforeMb, rssPeakMb, died, workersLost }: SceneResult, processes = 1): void {
  expect({ died, workersLost }).to.deep.equal({ died: null, workersLost: 0 });
  expect(rssPeakMb - rssBeforeMb, 'MB more').to.be.below(MOST_MB * processes);
}

/** Each request that reached a provider is recorded, and the daemon ends within the grace. */
function expectRecorded({ uses, stopMs }: SceneResult): void {
  expect(stopMs, 'ends after SIGTERM').to.be.a('number');
  expect(stopMs).to.be.below(GRACE_MS + ENDING_MS);
  for (const [who, { forwarded, counted, reported }] of Object.entries(uses)) {
    expect(counted, `uses of ${who}`).to.be.at.least(forwarded);
    expect(reported, `requests of ${who} in the usage report`).to.be.at.least(forwarded);
  }
}

describe('Floods and clients that do not read, with a heap of 256 MB', function () {
  this.timeout(120_000);
  this.retries(1); // The times are those of a machine that may do something else for some seconds.

  /** Far more than the 0.9 MB per second at which one connection once stopped all others. */
  const RATE = '--rate 4';

  const UPLOADS = [
    '--connections 1 --token',
    '--connections 8 --token',
    '--connections 30 --token',
    '--connections 30',
    '--connections 4 --token --workers 2',
    '--connections 30 --workers 2',
    ...['chunks17', 'extensions', 'segments', 'trailers', 'websocket'].map(
      (variant) => `--variant ${variant} --connections 8 --token`,
    ),
    ...['after-refusal', 'segments'].map((variant) => `--variant ${variant} --connections 8`),
    '--target manage --connections 8',
    '--target admin --connections 8',
    '--variant after-refusal --target manage --connections 8',
  ];
  for (const args of UPLOADS) {
    it(`findings-3 A1: uploads in tiny pieces: ${args}`, async () => {
      const result = await resultOf(`--attack A1 ${RATE} ${args}`);
      expectUndisturbed(result);
      expectBounded(result, args.includes('--workers') ? 2 : 1);
    });
  }

  it('findings-3 A1: 300 uploads in tiny pieces take bounded memory', async () => {
    expectBounded(await resultOf('--attack A1 --connections 300 --token'));
  });

  /** What waits, waits in the daemon. */
  const inSmallBuffers = (title: string, args: string, check: (result: SceneResult) => void) =>
    it(title, async function () {
      const reason = whyNoNamespace();
      if (reason !== null) {
        console.log(`      skipped: ${reason}`);
        this.skip();
      }
      check(await resultOf(`${args} --small-buffers`));
    });

  for (const variant of ['chunks', 'chunks17', 'extensions', 'websocket']) {
    const args = `--attack A2 --variant ${variant} --token --seconds 10`;
    it(`findings-3 A2: uploads that the provider does not read: ${variant}`, async () => {
      expectBounded(await resultOf(args));
    });
    inSmallBuffers(
      `findings-3 A2: uploads that the provider does not read, with small socket buffers: ${variant}`,
      args,
      expectBounded,
    );
  }

  it('findings-3 A4: 400 answers that unpack to 4 MB each', async () => {
    const result = await resultOf('--attack A4 --answers 400');
    expectUndisturbed(result);
    expectRecorded(result);
  });

  for (const workers of [1, 2]) {
    it(`findings-3 A4: 3,000 answers that unpack to 4 MB each, WORKERS=${workers}`, async () => {
      const result = await resultOf(`--attack A4 --answers 3000 --workers ${workers}`);
      expectUndisturbed(result);
      expectRecorded(result);
    });
  }

  const FLOODS = ['', '--connections 1000', '--variant sse', '--variant websocket', '--cache', '--workers 2'];
  for (const given of FLOODS) {
    const args = `--attack A5 ${given}`.trim();
    const check = (result: SceneResult) => {
      expectBounded(result, given.includes('--workers') ? 2 : 1);
      expect(Object.keys(result.during.statuses), "the other project's responses").to.deep.equal(['200']);
    };
    it(`findings-3 A5: a flood of tiny pieces to clients that do not read: ${given}`, async () => {
      check(await resultOf(args));
    });
    inSmallBuffers(
      `findings-3 A5: a flood of tiny pieces to clients that do not read, with small socket buffers: ${given}`,
      `${args} --seconds 10`,
      check,
    );
  }

  for (const workers of [1, 2]) {
    it(`findings-3 A6: a flood of messages of four bytes on eight WebSockets, WORKERS=${workers}`, async () => {
      expectUndisturbed(await resultOf(`--attack A6 --workers ${workers}`));
    });
  }

  for (const connections of [1_000, 4_000]) {
    const args = `--attack A9 --connections ${connections}`;
    it(`findings-3 A9: ${connections} clients in pairs of identical requests, the first of each reads nothing`, async () => {
      expectBounded(await resultOf(args));
    });
    inSmallBuffers(
      `findings-3 A9: ${connections} clients in pairs of identical requests, with small socket buffers`,
      args,
      expectBounded,
    );
  }
});
