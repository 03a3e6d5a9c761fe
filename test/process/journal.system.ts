import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isJournalStream } from '../../daemon/process/journal.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';

const LLMP = join(import.meta.dirname, '../../cli/main.js');

describe('a stream', () => {
  const { dev, ino } = fstatSync(1);

  it('is the journal if it is the one that systemd names', () => {
    expect(isJournalStream(`${dev}:${ino}`, 1)).to.equal(true);
    for (const other of [undefined, '', `${dev}:${ino}1`, 'journal']) expect(isJournalStream(other, 1)).to.equal(false);
  });
});

describe('the output of llmp in the journal', function () {
  this.timeout(60_000);

  /** Runs llmp with its output in a file that represents the journal. */
  async function run(args: string[], env: Record<string, string>, until: (text: string) => boolean, isNamed = true) {
    const path = join(temporaryFolder(), 'journal');
    const file = openSync(path, 'a');
    const { dev, ino } = fstatSync(file);
    const child = spawn(process.execPath, ['--', LLMP, ...args], {
      env: { PATH: process.env.PATH, MANAGEMENT_TOKEN, JOURNAL_STREAM: `${dev}:${isNamed ? ino : ino + 1}`, ...env },
      stdio: ['ignore', file, file],
    });
    closeSync(file);
    const exit = new Promise((resolve) => child.once('exit', resolve));
    try {
      await eventually('the expected output', () => until(readFileSync(path, 'utf8')));
    } finally {
      child.kill('SIGKILL');
      await exit;
    }
    return readFileSync(path, 'utf8');
  }
  const settings = () => ({
    LISTEN_ADDR: '127.0.0.1:0',
    DATABASE_URL: join(temporaryFolder(), 'llmp.db'),
    AUDIT_LOG_FILE: '',
    AUDIT_USE_LOG_FILE: '',
  });

  it('is text with priorities', async () => {
    const text = await run(['daemon'], settings(), (output) => output.includes('listening'));
    expect(text).to.match(/^<6>listening \{"address":"127\.0\.0\.1:\d+".*\}$/m);
  });

  it('has error priority if the settings are invalid', async () => {
    const text = await run(['daemon'], { ...settings(), LOG_LEVEL: 'loud' }, (output) => output.includes('LOG_LEVEL'));
    expect(text).to.match(/^<3>llmp: LOG_LEVEL must be/);
  });

  it('is JSON with a timestamp if stdout is another stream than the journal', async () => {
    const text = await run(['daemon'], settings(), (output) => output.includes('listening'), false);
    const listening = text.split('\n').find((line) => line.includes('listening')) ?? '';
    expect(JSON.parse(listening)).to.include({ level: 'info', message: 'listening' }).and.to.have.property('time');
  });
});
