import { type ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { permit } from '../support/leaks.js';

/** Installing, and the first answer, take no longer on a machine like those of the tests. */
export const PROMISED_MS = 60_000;

/**
 * Sends a request to `llmp demo --json` with the token that it shows, and expects an answer.
 *
 * @param demo the process, which goes on. @param limitMs how long it may take until it shows the token.
 */
export async function firstAnswer(
  demo: ChildProcessByStdio<null, Readable, Readable>,
  limitMs = PROMISED_MS,
): Promise<void> {
  permit(/^stdout of /, ['token'], 'it prints commands to be pasted');
  let shown = '';
  for (const stream of [demo.stdout, demo.stderr]) stream.on('data', (data) => (shown += String(data)));
  const isShown = () => /"token": "sk-wt-\w+"\n\}/.test(shown);
  await eventually('the demo shows a token', isShown, limitMs).catch((error: unknown) => {
    throw new Error(shown, { cause: error });
  });
  const [, token = ''] = /"token": "(sk-wt-\w+)"/.exec(shown) ?? [];
  const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(shown) ?? [];
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  expect(response.status, await response.text()).to.equal(200);
}
