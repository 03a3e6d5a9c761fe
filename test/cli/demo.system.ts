import { expect } from 'chai';
import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { starting } from '../../cli/commands/demo-guide.js';
import { llmp } from './captured.js';

const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

interface Demo {
  child: ChildProcessByStdio<null, Readable, Readable>;
  /** The temporary folder of the demo. */
  tmp: string;
  out: string;
  err: string;
  ended: Promise<number | null>;
}

describe('llmp demo', function () {
  this.timeout(60_000);
  const demos: Demo[] = [];
  afterEach(async () => {
    for (const { child, ended } of demos.splice(0)) {
      child.kill('SIGKILL');
      await ended;
    }
  });

  /** Starts the demo, and waits until it is ready or has ended. */
  async function start(...options: string[]): Promise<Demo> {
    const tmp = temporaryFolder();
    const env = { PATH: process.env.PATH, TMPDIR: tmp, MANAGEMENT_TOKEN: canary('management'), LOG_LEVEL: 'nonsense' };
    const child = spawn(process.execPath, [MAIN, 'demo', ...options], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = once(child, 'close').then(([code]) => code as number | null);
    const demo: Demo = { child, tmp, out: '', err: '', ended };
    demos.push(demo);
    const ready = new Promise<void>((resolve) => {
      child.stdout.on('data', (text: Buffer) => {
        demo.out += text.toString();
        if (options.includes('--json') && demo.out.endsWith('}\n')) resolve();
      });
      child.stderr.on('data', (text: Buffer) => {
        demo.err += text.toString();
        if (demo.err.includes('Requests are listed here')) resolve();
      });
    });
    await Promise.race([ready, ended]);
    return demo;
  }

  /** The part of its output that matches, unchanged. */
  const printed = ({ out }: Demo, pattern: RegExp): string =>
    pattern.exec(out)?.[0] ?? `no ${String(pattern)} in ${out}`;

  /** Runs commands in a shell, in a clone of the repository. @returns their output. */
  async function pasted(commands: string): Promise<string> {
    const { stdout } = await promisify(execFile)('bash', ['-c', commands], { cwd: ROOT });
    return stdout;
  }

  /** The output with --json. */
  interface Facts {
    server: string;
    management_token_file: string;
    token_id: string;
    token: string;
  }
  async function startForProgram(): Promise<{ demo: Demo; facts: Facts; client: OpenAI }> {
    const demo = await start('--json');
    const facts = JSON.parse(demo.out) as Facts;
    return { demo, facts, client: new OpenAI({ baseURL: `${facts.server}/v1`, apiKey: facts.token, maxRetries: 0 }) };
  }
  const hello = { model: 'demo', messages: [{ role: 'user' as const, content: 'Hello "you"' }] };

  const CURL = /^curl (?:.*\\\n)*.*$/m;
  /** What sets the variables of the commands in a shell. */
  const variablesOf = (demo: Demo) => printed(demo, /^\. .*$/m);
  /** Starts the demo. @returns what runs commands in a terminal with its variables, and what `--examples` prints there. */
  async function startWithExamples() {
    const demo = await start();
    const inTerminal = (commands: string) => pasted(`${variablesOf(demo)}\n${commands}`);
    const out = await inTerminal('llmp demo --examples');
    return { demo, inTerminal, example: (pattern: RegExp) => printed({ ...demo, out }, pattern) };
  }
  const statusOf = (curl: string) => curl.replace('curl ', "curl -s -o /dev/null -w '%{http_code} ' ");

  it('prints at most 20 lines of 80 columns, and no secret', async () => {
    const { out, err } = await start();
    const lines = [starting(true), ...`${out}${err}`.trimEnd().split('\n')];
    expect(lines.length).to.be.at.most(20);
    const wide = lines.filter((line) => line.length > 80 && !line.startsWith('. ')); // The folder is that of the test.
    expect(wide).to.deep.equal([]);
    expect(out).not.to.contain('sk-wt-');
  });

  it('prints what opens the terminal UI and the Admin UI, and a request, which works until the token is revoked', async () => {
    const demo = await start();
    expect(demo.out).to.match(/^With a token, a client sent "Hello" to http.*\nYou said "Hello"\. /m);
    const [tui, admin, revoke] = ['\nllmp tui\n', '/admin/\ncat $MANAGEMENT_TOKEN_FILE\n', 'llmp token revoke demo'];
    for (const command of [tui, admin]) expect(demo.out).to.contain(command);
    const variables = variablesOf(demo);
    const curl = printed(demo, CURL);
    expect(JSON.parse(await pasted(`${variables}\n${curl}`)))
      .to.have.nested.property('choices[0].message.content')
      .that.contains('"Hello"');
    const printedRevocation = printed(demo, new RegExp(`^${revoke}$`, 'm'));
    const after = `${variables}\n${printedRevocation}\n${statusOf(curl)}`;
    expect((await pasted(after)).trim()).to.equal('401');
    await eventually('both are listed', () =>
      [/^200 POST \/v1\/chat\/completions \d+ ms$/m, /^401 POST .* ms unauthorized$/m].every((it) => it.test(demo.err)),
    );
  });

  it('prints examples for a running demo that work unchanged', async () => {
    const { demo, inTerminal, example } = await startWithExamples();
    expect(await inTerminal(example(/^node --input-type[^]*?^END$/m))).to.contain('You said "Hello".');
    const cached = example(/^curl .*\n.*\n.*\n.*Cache-Control: public.*$/m);
    expect(await inTerminal(cached)).to.match(/^x-proxy-cache: miss\r$/im);
    expect(await inTerminal(cached)).to.match(/^x-proxy-cache: hit\r$/im);

    expect(await inTerminal('llmp events list --project-id mobile -o id')).to.not.equal('');
    // It is checked with the provider before it is stored.
    await inTerminal(example(/^echo .* project set-key mobile$/m));

    const webSocket = example(/^node --input-type=module <<'END'\nimport WebSocket [^]*?^END$/m);
    expect(await inTerminal(webSocket)).to.equal('Received Hello\n');
    await eventually('it is listed', () => demo.err.includes('/v1/realtime'));
    expect(demo.err)
      .to.match(/^101 GET \/v1\/realtime \d+ ms$/m)
      .and.not.to.match(/warning/i);
  });

  it('prints examples that revoke, reactivate and end tokens', async () => {
    const { demo, inTerminal, example } = await startWithExamples();
    const status = async () => (await inTerminal(statusOf(printed(demo, CURL)))).trim();
    await inTerminal(example(/^llmp token revoke .*$/m));
    expect(await status()).to.equal('401');
    await inTerminal(example(/^llmp token reactivate .*$/m));
    expect(await status()).to.equal('200');
    expect(await inTerminal(example(/^llmp status$/m))).to.match(/^status .* ready$/m);
    const generate = example(/^TOKEN=.*$/m);
    const request = statusOf(printed(demo, CURL));
    const statuses = await inTerminal([generate, request, request, request].join('\n'));
    expect(statuses.trim()).to.equal('200 200 429');
  });

  it('prints a Python program with valid syntax', async function () {
    const { out } = await llmp('demo --examples');
    const [, program = ''] = /^python3 - <<'END'\n([^]*?)^END$/m.exec(out) ?? [];
    expect(program).to.contain('OpenAI(base_url=');
    await pasted('python3 --version').catch(() => {
      this.skip();
    });
    await pasted(`python3 -c 'import ast, sys; ast.parse(sys.argv[1])' '${program}'`);
    expect((await llmp('demo --examples --empty')).exitCode).to.equal(2);
  });

  it('answers the OpenAI SDK: chat, chat in pieces, models and files', async () => {
    const { client } = await startForProgram();
    const answer = await client.chat.completions.create(hello);
    expect(answer.choices[0]?.message.content).to.contain(JSON.stringify('Hello "you"'));

    const pieces = [];
    for await (const chunk of await client.chat.completions.create({ ...hello, stream: true })) {
      pieces.push(chunk.choices[0]?.delta.content ?? '');
    }
    expect(pieces.length).to.be.greaterThan(5);
    expect(pieces.join('')).to.equal(answer.choices[0]?.message.content);

    expect((await client.models.list()).data.map(({ id }) => id)).to.include('demo');
    const file = new File(['some text'], 'notes.txt');
    expect(await client.files.create({ file, purpose: 'assistants' })).to.include({ filename: 'notes.txt' });
    const wrong = await client.embeddings.create({ model: 'demo', input: 'x' }).catch((error: unknown) => error);
    expect(wrong).to.include({ status: 404 });
  });

  it('stores everything in a private folder, and no secret on the command line', async () => {
    const { demo, facts } = await startForProgram();
    const [folder = '', ...others] = readdirSync(demo.tmp);
    expect(others).to.deep.equal([]);
    expect(dirname(facts.management_token_file)).to.equal(join(demo.tmp, folder));
    expect(statSync(join(demo.tmp, folder)).mode & 0o777).to.equal(0o700);
    for (const file of readdirSync(join(demo.tmp, folder))) {
      expect(statSync(join(demo.tmp, folder, file)).mode & 0o077, file).to.equal(0);
    }
  });

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    it(`ends with 0 at ${signal}, also a repeated one, and removes all files`, async () => {
      const { demo, client } = await startForProgram();
      // Neither a request in flight nor a keep-alive connection prevents the end.
      const stream = await client.chat.completions.create({ ...hello, stream: true });
      const pieces = stream[Symbol.asyncIterator]();
      await pieces.next();
      // npm repeats the terminal's ^C during the cleanup.
      const again = setInterval(() => {
        if (readdirSync(demo.tmp).length > 0) demo.child.kill(signal);
      }, 1);
      const exitCode = await demo.ended.finally(() => {
        clearInterval(again);
      });
      expect(exitCode).to.equal(0);
      expect(readdirSync(demo.tmp)).to.deep.equal([]);
    });
  }

  it('leaves no files when the reader of its output is gone', async () => {
    const demo = await start();
    const request = `${variablesOf(demo)}\n${printed(demo, CURL)}`;
    demo.child.stderr.destroy(); // Where each request is to be listed.
    await pasted(request);
    expect(await demo.ended).to.equal(141);
    expect(readdirSync(demo.tmp)).to.deep.equal([]);
  });

  it('listens on the requested port, and reports when it is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const refused = await start('--port', String(port));
    expect(await refused.ended).to.equal(69);
    expect(refused.err).to.contain(`cannot listen on port ${port}`).and.to.contain('Omit --port');
    expect(readdirSync(refused.tmp)).to.deep.equal([]);
    other.close();
    await once(other, 'close');
    expect((await start('--port', String(port))).out).to.contain(`http://127.0.0.1:${port}/admin/`);
  });

  for (const options of [[], ['--empty']]) {
    it(`names its own daemon if that is slower than --timeout ${options.join(' ')}`.trim(), async () => {
      const late = await start(...options, '--timeout', '1ms');
      expect(await late.ended).to.equal(6);
      expect(late.err)
        .to.match(/^llmp: the daemon at http:\/\/127\.0\.0\.1(?::\d+)? does not respond$/m)
        .and.to.contain('raise --timeout')
        .and.not.to.contain('127.0.0.1:8080');
      expect(readdirSync(late.tmp)).to.deep.equal([]);
    });
  }

  it('accepts only ports above 1023', async () => {
    expect((await llmp('demo --port 80')).exitCode).to.equal(2);
  });
});
