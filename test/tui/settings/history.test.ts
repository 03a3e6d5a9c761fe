import { expect } from 'chai';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommandHistory, readHistory } from '../../../tui/settings/history.js';
import { MAX_HISTORY } from '../../../tui/state/command-line.js';
import { canary } from '../../support/canaries.js';
import { temporaryFolder } from '../../support/daemon.js';

describe('the stored history of the command line', () => {
  let folder: string;
  beforeEach(() => {
    folder = join(temporaryFolder(), 'state/llmp');
  });
  const path = () => join(folder, 'tui-history');

  it('is for its owner only, and is read at the next start', async () => {
    const history = new CommandHistory(folder);
    history.add('tokens project:web', []);
    history.add('e status:5xx', []);
    await history.written();
    expect(await readHistory(folder)).to.deep.equal(['tokens project:web', 'e status:5xx']);
    expect(statSync(path()).mode & 0o777).to.equal(0o600);
    expect(statSync(folder).mode & 0o777).to.equal(0o700);
  });

  it('is shared by terminal UIs that run at the same time', async () => {
    const [one, other] = [new CommandHistory(folder), new CommandHistory(folder)];
    one.add('t one', []);
    await one.written();
    other.add('t other', []);
    await other.written();
    one.add('t again', []);
    await one.written();
    expect(await readHistory(folder)).to.deep.equal(['t one', 't other', 't again']);
  });

  it('contains the latest commands only', async () => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(path(), Array.from({ length: 500 }, (_, at) => `t ${at}\n`).join(''));
    expect(await readHistory(folder)).to.have.length(MAX_HISTORY);
    const history = new CommandHistory(folder);
    history.add('cache', []);
    await history.written();
    expect(readFileSync(path(), 'utf8').split('\n').filter(Boolean)).to.have.length(MAX_HISTORY);
  });

  it('contains no management token, and nothing that looks like a key', async () => {
    const secret = canary('management');
    const history = new CommandHistory(folder);
    history.add('cache', [secret]);
    history.add(`tokens ${secret}`, [secret]);
    history.add('tokens sk-live-0123456789', [secret]);
    await history.written();
    expect(readFileSync(path(), 'utf8')).to.equal('cache\n');
  });

  it('is neither read nor changed if others can write it', async () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(path(), 'tokens x\n');
    chmodSync(path(), 0o666);
    const history = new CommandHistory(folder);
    history.add('cache', []);
    await history.written();
    expect(await readHistory(folder)).to.deep.equal([]);
    expect(readFileSync(path(), 'utf8')).to.equal('tokens x\n');
  });

  it('is not stored without a folder, or where nothing can be written', async () => {
    for (const where of [undefined, '/dev/null/llmp']) {
      const history = new CommandHistory(where);
      history.add('cache', []);
      await history.written();
      expect(await readHistory(where)).to.deep.equal([]);
    }
  });
});
