// Makes the calls that it reads from standard input with one SDK of JavaScript, and prints what became of each as a line of JSON.
import console from 'node:console';
import process from 'node:process';
import * as consumers from 'node:stream/consumers';
import { anthropic } from './anthropic.mjs';
import { google } from './google.mjs';
import { mistral } from './mistral.mjs';
import { azure, groq, openai } from './openai.mjs';
import { vercel } from './vercel.mjs';

const { sdk, base, calls } = JSON.parse(await consumers.text(process.stdin));

const SDKS = {
  'ai-openai': () => vercel('openai', base),
  'ai-anthropic': () => vercel('anthropic', base),
  'ai-google': () => vercel('google', base),
  anthropic0: () => anthropic('anthropic0', base),
  anthropic1: () => anthropic('anthropic1', base),
  azure: () => azure(base),
  google: () => google(base),
  groq: () => groq(base),
  mistral: () => mistral(base),
};

/** What an error says in the format of its API: the SDK has it as a value, as the text of the response, or as the message. */
function saidBy(error) {
  const { error: said, responseBody, body, message } = error;
  if (typeof said === 'object') return said;
  for (const text of [responseBody, body, message]) {
    try {
      return JSON.parse(text);
    } catch {
      // Not this one.
    }
  }
  return {};
}

function codeAndType(error) {
  const said = saidBy(error);
  const inner = typeof said.error === 'object' ? said.error : said;
  const reason = inner.details?.find(({ metadata }) => metadata)?.metadata.code;
  return { code: reason ?? said.code ?? inner.code ?? error.code ?? null, type: inner.status ?? inner.type ?? null };
}

/** Some wrap what they were told, after they have tried again. */
function describe(error) {
  const it = error.lastError ?? error;
  return {
    class: it.constructor?.name === 'Object' ? 'object' : (it.constructor?.name ?? typeof it),
    status: it.status ?? it.statusCode ?? null,
    ...codeAndType(it),
    message: String(it.message),
  };
}

const made = await (SDKS[sdk] ?? (() => openai(sdk, base)))();
for (const call of calls) {
  let became;
  try {
    became = { ok: await made[call.kind](call) };
  } catch (error) {
    became = { error: describe(error) };
  }
  console.log(JSON.stringify({ id: call.id, ...became }));
}
