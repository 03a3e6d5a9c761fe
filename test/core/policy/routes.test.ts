/** Presets and escapes, by the routes of OpenAI's SDK. A new release of it shows here which of its routes are new. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { FormModels } from '../../../daemon/core/policy/form-models.js';
import { Asked } from '../../../daemon/core/policy/policy.js';
import { type AskedRoute, Route, RouteList } from '../../../daemon/core/policy/routes.js';

const SDK = resolve(import.meta.dirname, '../../../../node_modules/openai/resources');
const CALL = /_client\.(get|post|delete)\((?:\(0, path_\d?\.?path\))?[`'](\/[^`',?]*)/g;

const routeOf = (asked: string, more: Partial<AskedRoute> = {}): Route => {
  const [method = '', path = ''] = asked.split(' ');
  return new Route({ method, path, isHandshake: false, hasBody: method === 'POST', ...more });
};
const allows = (entry: string, asked: string, more: Partial<AskedRoute> = {}) =>
  new RouteList([entry]).allows(routeOf(asked, more));

function routesOfSdk(): string[] {
  const files = readdirSync(SDK, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'));
  const calls = files.flatMap((name) => [...readFileSync(join(SDK, name), 'utf8').matchAll(CALL)]);
  return [...new Set(calls.map(([, method = '', path = '']) => `${method.toUpperCase()} /v1${path}`))].sort();
}

describe('the routes of an SDK', () => {
  const all = routesOfSdk();
  const contained = all.filter((route) => allows('contained', route));

  it('run a model, escape, or do neither', () => {
    expect(all).to.include.members(['POST /v1/batches', 'POST /v1/realtime/client_secrets', 'POST /v1/evals']);
    expect(contained.filter((route) => allows('inference', route))).to.deep.equal([
      'POST /v1/audio/speech',
      'POST /v1/audio/transcriptions',
      'POST /v1/audio/translations',
      'POST /v1/chat/completions',
      'POST /v1/completions',
      'POST /v1/embeddings',
      'POST /v1/images/edits',
      'POST /v1/images/generations',
      'POST /v1/images/variations',
      'POST /v1/moderations',
      'POST /v1/responses',
      'POST /v1/responses/compact',
      'POST /v1/responses/input_tokens',
    ]);
    const others = contained.filter((route) => route.startsWith('POST') && !allows('inference', route));
    expect(others).to.deep.equal([
      'POST /v1/assistants',
      'POST /v1/conversations',
      'POST /v1/files',
      'POST /v1/skills',
      'POST /v1/threads',
      'POST /v1/threads/runs',
      'POST /v1/uploads',
      'POST /v1/vector_stores',
      'POST /v1/videos',
      'POST /v1/videos/characters',
      'POST /v1/videos/edits',
      'POST /v1/videos/extensions',
    ]);
  });

  it('that escape are those of no preset but all', () => {
    const escapes = all.filter((route) => !contained.includes(route));
    expect(escapes.filter((route) => allows('inference', route))).to.deep.equal([]);
    for (const route of escapes) expect(routeOf(route).forms[0]?.escape, route).not.to.equal(null);
  });

  it('of other providers run a model, and those that look like them do not', () => {
    for (const route of [
      'POST /v1/messages',
      'POST /v1/messages/count_tokens',
      'POST /v1beta/models/gemini-2.5-pro:streamGenerateContent',
      'POST /openai/deployments/d/chat/completions',
      'POST /openai/v1/responses',
    ]) {
      expect(allows('inference', route), route).to.equal(true);
    }
    for (const route of ['POST /v1/threads/t/messages', 'GET /v1/chat/completions', 'POST /v1/responses/r/cancel']) {
      expect(allows('inference', route), route).to.equal(false);
    }
    expect(allows('inference', 'GET /v1/realtime', { isHandshake: true })).to.equal(true);
    expect(allows('read', 'GET /v1/realtime', { isHandshake: true })).to.equal(false);
  });
});

describe('a hostile target', () => {
  const HOSTILE = ['/', '/files/', '/threads/a', '/runs/', '/responses/', '/models/a:', '/deployments;', ';', '%252f'];
  const targets = HOSTILE.flatMap((part) =>
    ['', ':x', ':cancel', '/submit_tool_outputs'].map((end) => `/v1${part.repeat(8_000 / part.length)}${end}`),
  );
  targets.push(`/v1/x?${'&'.repeat(8_000)}`, `/v1/x?${'%6dodel=&'.repeat(880)}`);

  it('is read in time that grows with its length', () => {
    const rest = { method: 'POST', isHandshake: false, hasBody: true, contentTypes: [], contentCodings: [] };
    for (const target of targets) {
      const began = process.cpuUsage();
      for (let n = 0; n < 5; n++) new Asked({ ...rest, target, overridesMethod: false, choosingHeader: null });
      // A pattern that tried the rest again at each part took 40 ms.
      expect(process.cpuUsage(began).user / 5_000, `ms for ${target.slice(0, 20)}…${target.slice(-20)}`).to.be.lessThan(
        15,
      );
    }
  });
});

describe('the models that a form names', () => {
  it('are the same wherever it is cut', () => {
    const form =
      '--B\r\nContent-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: audio/mpeg\r\n\r\n\r\n--A\r\n-\r\n' +
      '--B\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--B\r\n' +
      'content-disposition: form-data; name="x"\r\n\r\n\r\n--B--\r\n';
    for (let cut = 0; cut <= form.length; cut++) {
      const models = new FormModels('B');
      models.add(Buffer.from(form.slice(0, cut)));
      models.add(Buffer.from(form.slice(cut)));
      models.end();
      expect(models, String(cut)).to.deep.include({ names: ['whisper-1'], problem: null, isComplete: true });
    }
  });
});
