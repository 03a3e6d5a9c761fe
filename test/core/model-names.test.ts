/** The model of a request in its records: events, usage, audit. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, UPSTREAM_KEY } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { permit } from '../support/leaks.js';
import { json } from '../support/provider.js';
import { head } from '../support/raw.js';
import { ProxyFixture } from '../support/proxy-fixture.js';

// In the format of providers' keys, but invalid.
const letters = (count: number) => 'aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0z'.repeat(2).slice(0, count);

describe('the recorded model of a request', () => {
  const otherKey = canary('upstream');

  const scene = ProxyFixture.forEachTest({ ENABLE_METRICS: 'true' });
  beforeEach(async () => {
    await scene.daemon.createProject({ name: 'another', api_key: otherKey });
  });

  const chat = async (body: object | string, secret = scene.secret, type = 'application/json') => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await scene.send(scene.post({ 'Content-Type': type }, text, secret));
    await scene.inFlight(0);
    return answer;
  };
  const recorded = (requests: number) => eventually('all requests end', () => scene.daemon.ended.length === requests);
  const echoing = (model: unknown) => {
    scene.provider.answer = (_req, res) => {
      json(res, 200, { ...(model !== undefined && { model }), usage: { prompt_tokens: 1 } });
    };
  };

  /** Everything that the daemon records about the model. */
  const records = async () => {
    const usage: unknown = (await scene.daemon.manage('GET', '/manage/usage?by=model')).body;
    const audit: unknown = (await scene.daemon.manage('GET', '/manage/audit?action=token.use')).body;
    const top: unknown = (await scene.daemon.manage('GET', '/manage/top?by=model')).body;
    const events: unknown = (await scene.daemon.manage('GET', '/manage/events')).body;
    const metrics = await (await fetch(`${scene.daemon.managementUrl}/metrics`)).text();
    await scene.daemon.stop(); // Writes all that is still buffered.
    const file = readFileSync(join(scene.daemon.dir, 'audit-use.log'), 'utf8');
    return JSON.stringify([scene.daemon.ended, usage, audit, top, events]) + metrics + file;
  };

  const SECRETS: Record<string, () => string> = {
    "the project's key": () => UPSTREAM_KEY,
    'the management token': () => MANAGEMENT_TOKEN,
    'the key of another project': () => otherKey,
    'a key of Nvidia': () => `nvapi-${letters(60)}`,
    'a key of Cerebras': () => `csk-${letters(48)}`,
    'the secret of a token': () => scene.secret,
    'a key of OpenAI': () => `sk-proj-${letters(40)}`,
    'a key of Google': () => `AIza${letters(35)}`,
    'a key of Groq': () => `gsk_${letters(52)}`,
    'a key of xAI': () => `xai-${letters(60)}`,
  };
  const A16 = ['the management token', 'the key of another project', 'a key of Nvidia', 'a key of Cerebras'];
  for (const [what, secretOf] of Object.entries(SECRETS)) {
    const row = A16.includes(what) ? '' : '';
    for (const [where, around] of Object.entries({ alone: '', 'within a name': 'openai/' })) {
      it(`${row}does not contain ${what}, ${where}, that a client sent`, async () => {
        const secret = secretOf();
        echoing(undefined);
        await chat({ model: around + secret });
        await recorded(1);
        expect(scene.daemon.ended[0]!.model).to.equal(`${around}********`);
        expect(await records()).not.to.include(secret);
      });

      it(`${row}does not contain ${what}, ${where}, that a provider repeated`, async () => {
        permit(
          /^forwarded response /,
          ['upstream', 'token', 'management', 'unknown'],
          'the provider repeats it, and its bytes are its own',
        );
        const secret = secretOf();
        echoing(around + secret);
        await chat({ model: 'm' });
        await recorded(1);
        expect(scene.daemon.ended[0]!.model).to.equal(`${around}********`);
        expect(await records()).not.to.include(secret);
      });
    }
  }

  for (const [what, secretOf] of Object.entries(SECRETS)) {
    if (what === 'the secret of a token') continue; // It is refused in a path.
    it(`as well as its path and its IDs do not contain ${what}, plain or percent-encoded`, async () => {
      permit(/^forwarded response /, ['upstream', 'management', 'unknown'], 'the provider repeats it');
      const secret = secretOf();
      const encoded = Array.from(secret, (it) => `%${Buffer.from(it).toString('hex')}`).join('');
      scene.provider.answer = (_req, res) => {
        json(res, 200, {}, { 'x-request-id': secret });
      };
      for (const path of [secret, encoded, `models/${encoded}:generateContent`]) {
        await scene.send(head(`GET /v1/${path}/x`, scene.secret, { 'X-Request-ID': secret }));
      }
      await recorded(3);
      const all = await records();
      expect(all).not.to.include(secret);
      expect(all).not.to.include(encoded);
    });
  }

  it('does not contain the part of a key before the truncation of a name', async () => {
    echoing(undefined);
    await chat({ model: `${'a'.repeat(190)}/${UPSTREAM_KEY}` });
    await recorded(1);
    expect(scene.daemon.ended[0]!.model).to.equal(`${'a'.repeat(190)}/********`);
  });

  it('does not contain a key with control characters in between', async () => {
    echoing(undefined);
    await chat({ model: UPSTREAM_KEY.split('').join('\u0000\u0007') });
    await recorded(1);
    expect(scene.daemon.ended[0]!.model).to.equal('********');
  });

  it('is unchanged for names that only resemble keys', async () => {
    const names = [
      'task-classifier-2024',
      'xai-grok-2-vision-latest',
      'pplx-70b-online',
      'gpt-4o',
      'hf_model',
      'AIza-7b',
    ];
    echoing(undefined);
    for (const model of names) await chat({ model });
    await recorded(names.length);
    expect(scene.daemon.ended.map(({ model }) => model)).to.deep.equal(names);
  });

  const form = (fields: Record<string, string>) =>
    Object.entries(fields)
      .map(([name, value]) => `--xyz\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
      .join('');
  const IN_FORMS: [what: string, body: string, model: string | null][] = [
    ['the first field', `${form({ model: 'whisper-1' })}--xyz--\r\n`, 'whisper-1'],
    ['after other fields', `${form({ file: 'RIFF'.repeat(100), n: '1', model: 'whisper-1' })}--xyz--`, 'whisper-1'],
    ['after a field of line breaks', `${form({ a: '\r\n\r\n--\r\n--xy\r\n', model: 'm' })}--xyz--`, 'm'],
    [
      'in a part header of several lines',
      '--b\r\nX: y\r\ncontent-disposition:form-data;filename="a;";NAME="model"\r\n\r\nm\r\n--b--',
      'm',
    ],
    [
      'in the quotes of another parameter',
      '--b\r\nContent-Disposition: form-data; filename="a; name=\\"model\\"; b"; name="f"\r\n\r\nm\r\n--b--',
      null,
    ],
    ['a value of several lines', `${form({ model: 'a\r\nb' })}--xyz--`, null],
    ['an empty value', `${form({ model: '' })}--xyz--`, null],
    ['an unterminated part', '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm', null],
    ['after the end of the form', `--xyz--\r\n${form({ model: 'm' })}`, null],
    [
      'after an empty part',
      '--b\r\n\r\n\r\n--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b--',
      'm',
    ],
    ['a form without the field', `${form({ mode: 'm', models: 'm' })}--xyz--`, null],
  ];
  for (const [what, body, model] of IN_FORMS) {
    it(`is read from a form: ${what}`, async () => {
      echoing(undefined);
      await chat(body, scene.secret, 'multipart/form-data; boundary=xyz');
      await recorded(1);
      expect(scene.daemon.ended[0]!.model).to.equal(model);
    });
  }

  it('is not searched for in a refused request', async () => {
    const capped = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
    echoing(undefined);
    // Both are admitted, but only one use is left.
    const body = '{"model":"m"}';
    const whole = scene.post({ 'Content-Type': 'application/json' }, body, capped.token);
    const clients = [await scene.client(whole.slice(0, -1)), await scene.client(whole.slice(0, -1))];
    await scene.inFlight(2);
    for (const client of clients) client.send(body.slice(-1));
    await recorded(2);
    expect(scene.daemon.ended.map(({ status, model }) => [status, model])).to.have.deep.members([
      [200, 'm'],
      [429, null],
    ]);
  });

  it('is found quickly even in forms crafted to be slow, with a token of one use', async () => {
    const capped = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
    const line = '\r\ncontent-disposition:;name="model"';
    const body = `--b${line.repeat(Math.floor(60_000 / line.length))}`;
    const begun = process.cpuUsage();
    await Promise.all(
      Array.from({ length: 40 }, () =>
        scene.send(scene.post({ 'Content-Type': 'multipart/form-data' }, body, capped.token)),
      ),
    );
    await recorded(40);
    const { user, system } = process.cpuUsage(begun);
    // Both ends of 40 requests run in this process; one search for the model alone took 200 ms.
    expect((user + system) / 1000).to.be.below(1_500);
  });
});
