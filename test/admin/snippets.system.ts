/** The code examples for a new token, run as a user would: pasted into a shell, and saved as a program. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { snippetsFor } from '../../daemon/admin/parts/snippets.js';
import { ProxyFixture } from '../support/proxy-fixture.js';

const PACKAGES = resolve(import.meta.dirname, '../../../node_modules');

describe('the code examples of the Admin UI', function () {
  this.timeout(60_000);
  let scene: ProxyFixture;
  let folder: string;

  before(async () => {
    scene = await ProxyFixture.open();
    folder = mkdtempSync(join(tmpdir(), 'llmp-snippets-'));
    symlinkSync(PACKAGES, join(folder, 'node_modules'));
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await scene.close();
  });
  beforeEach(() => scene.begin());

  const textOf = (id: string) => snippetsFor(`${scene.daemon.url}/v1`).find((snippet) => snippet.id === id)!.text;
  const env = { PATH: process.env.PATH, HOME: process.env.HOME };

  async function outputOf(running: ChildProcess, typed = ''): Promise<string> {
    let output = '';
    running.stdout!.on('data', (piece: Buffer) => (output += piece.toString()));
    running.stdin!.end(typed);
    const code = await new Promise((ended) => running.once('close', ended));
    expect(code, output).to.equal(0);
    return output;
  }

  it('ask for the secret in a shell, and call the proxy from it', async () => {
    // A shell that reads its commands from standard input takes the secret from the line after the command, like one at a terminal.
    const typed = `${textOf('environment')}\n${scene.secret}\n${textOf('curl')}\nprintf '\\n%s' "$OPENAI_BASE_URL"\n`;
    const shell = spawn('bash', { env, cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] });
    const output = await outputOf(shell, typed);
    expect(output).to.include('Token: ').and.to.include('"object":"chat.completion"');
    expect(output)
      .to.match(new RegExp(`\n${scene.daemon.url}/v1$`))
      .and.not.to.include(scene.secret);
    expect(scene.provider.received.map(({ url }) => url)).to.deep.equal(['/v1/chat/completions']);
  });

  it('run as a program for Node', async () => {
    writeFileSync(join(folder, 'ask.mjs'), textOf('node'));
    const program = spawn(process.execPath, ['ask.mjs'], {
      env: { ...env, OPENAI_API_KEY: scene.secret },
      cwd: folder,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    expect((await outputOf(program)).trim()).not.to.equal('');
    expect(scene.provider.received.map(({ url }) => url)).to.deep.equal(['/v1/chat/completions']);
  });

  it('quote the address, which can contain brackets', () => {
    for (const { text } of snippetsFor('http://[::1]:8080/v1'))
      expect(text).to.match(/['"]http:\/\/\[::1\]:8080\/v1(?:\/chat\/completions)?['"]/);
  });
});
