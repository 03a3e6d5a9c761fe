import { appendFileSync, readFileSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { chmod, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Delivery } from '../../daemon/dispatcher/backends/backend.js';
import { FileBackend } from '../../daemon/dispatcher/backends/file.js';
import { temporaryFolder } from '../support/daemon.js';
import { startTestDispatcher } from '../support/dispatcher.js';
import { eventOf, GROUP, idsOf, publish, STREAM } from '../support/events.js';
import { eventually } from '../support/eventually.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';

const deliveriesOf = (...ids: string[]): Delivery[] =>
  ids.map((id) => ({ event: eventOf(id), json: JSON.stringify(eventOf(id)) }));
const idIn = (line: string) => (JSON.parse(line) as { id: string }).id;
const linesOf = (path: string) => readFileSync(path, 'utf8').split('\n').slice(0, -1);

describe('L: events in a file', () => {
  let path: string;
  let backend: FileBackend;
  const write = (...ids: string[]) => backend.deliver(deliveriesOf(...ids));
  const DELIVERED = { kind: 'delivered' };

  beforeEach(() => {
    path = join(temporaryFolder(), 'below', 'events.jsonl');
    backend = new FileBackend(path);
  });
  afterEach(() => backend.close());

  it('are one line each, as in the stream, in a file that only its owner can read', async () => {
    expect(await write('one', 'two')).to.deep.equal([DELIVERED, DELIVERED]);
    expect(readFileSync(path, 'utf8')).to.equal(
      deliveriesOf('one', 'two')
        .map(({ json }) => `${json}\n`)
        .join(''),
    );
    expect((await stat(path)).mode & 0o777).to.equal(0o600);
  });

  it('L12 on a full disk events are not acknowledged; they are written once there is space', async () => {
    await mkdir(join(path, '..'));
    symlinkSync('/dev/full', path);
    expect(await write('one', 'two')).to.deep.equal(
      Array<unknown>(2).fill({ kind: 'retry', why: 'cannot write the file (ENOSPC)' }),
    );
    rmSync(path);
    expect(await write('one', 'two')).to.deep.equal([DELIVERED, DELIVERED]);
    expect(linesOf(path).map(idIn)).to.deep.equal(['one', 'two']);
  });

  it('L12 without a usable file events are not acknowledged; they are written once there is one', async () => {
    writeFileSync(join(path, '..'), 'a file where the folder should be');
    expect(await write('one')).to.deep.equal([{ kind: 'retry', why: 'cannot write the file (EEXIST)' }]);
    rmSync(join(path, '..'));
    await mkdir(join(path, '..'));
    await mkdir(path);
    expect(await write('one')).to.deep.equal([{ kind: 'retry', why: 'cannot write the file (EISDIR)' }]);
    rmSync(path, { recursive: true });
    expect(await write('one')).to.deep.equal([DELIVERED]);
  });

  it('L12 without permission to write events are not acknowledged', async function () {
    if (process.getuid?.() === 0) this.skip(); // Root has all permissions.
    await mkdir(join(path, '..'));
    await chmod(join(path, '..'), 0o500);
    expect(await write('one')).to.deep.equal([{ kind: 'retry', why: 'cannot write the file (EACCES)' }]);
    await chmod(join(path, '..'), 0o700);
    expect(await write('one')).to.deep.equal([DELIVERED]);
  });

  it('L13 after a rename events go to a new file, with or without SIGHUP', async () => {
    await write('one');
    renameSync(path, `${path}.1`);
    await write('two');
    renameSync(path, `${path}.2`);
    await backend.reopen();
    await write('three');
    expect([`${path}.1`, `${path}.2`, path].map((it) => linesOf(it).map(idIn))).to.deep.equal([
      ['one'],
      ['two'],
      ['three'],
    ]);
  });

  it('L13 after a deletion events go to a new file', async () => {
    await write('one');
    rmSync(path);
    await write('two');
    expect(linesOf(path).map(idIn)).to.deep.equal(['two']);
  });

  it('L13 if someone deletes each new file, events are in a file that stays, or are tried again', async () => {
    const removing = setInterval(() => {
      rmSync(path, { force: true });
    }, 1);
    const verdicts = [];
    for (let n = 0; n < 100; n++) verdicts.push(...(await write(`event-${n}`)));
    clearInterval(removing);
    // How many of them stay depends on the speed of the machine.
    for (const { kind } of verdicts) expect(kind).to.be.oneOf(['delivered', 'retry']);
    expect(verdicts).to.have.lengthOf(100);
    expect(await write('last')).to.deep.equal([DELIVERED]);
    expect(linesOf(path).map(idIn)).to.include('last');
  });

  it('L13 after copytruncate events begin at the beginning of the file', async () => {
    await write('one', 'two');
    truncateSync(path);
    await write('three');
    expect(readFileSync(path, 'utf8')).to.equal(`${JSON.stringify(eventOf('three'))}\n`);
  });

  it('L14 after a torn line events begin on a new line', async () => {
    await write('one');
    await backend.close();
    appendFileSync(path, '{"schema":1,"id":"to');
    backend = new FileBackend(path);
    await write('two', 'three');
    const lines = linesOf(path);
    expect(lines).to.have.length(4);
    expect([0, 2, 3].map((at) => idIn(lines[at]!))).to.deep.equal(['one', 'two', 'three']);
  });

  it(`L12 events are acknowledged only after they are written${WITHOUT_REDIS}`, async function () {
    if (WITHOUT_REDIS) this.skip();
    await mkdir(join(path, '..'));
    symlinkSync('/dev/full', path);
    const redis = await TestRedis.start();
    const pending = async () => (await redis.client.xpending(STREAM, GROUP))[0];
    const ids = idsOf('event', 40);
    // All events are in the stream before the dispatcher reads it, so it takes them as one batch. If they were more than two batches, it
    // would leave the third in the stream.
    await publish(redis.client, ids);
    const dispatcher = await startTestDispatcher({ redis, env: { DISPATCHER_ENDPOINT: path } });
    try {
      await eventually('it was tried', async () => (await dispatcher.metric('retried_total')) >= 40);
      expect(await pending()).to.equal(40);
      rmSync(path);
      await eventually('everything is acknowledged', async () => {
        dispatcher.clock.advance(100);
        return (await pending()) === 0;
      });
      expect(linesOf(path).map(idIn)).to.have.members(ids).and.have.length(40);
      renameSync(path, `${path}.1`);
      await dispatcher.reopen();
      await publish(redis.client, ['later']);
      await eventually('it is acknowledged', async () => (await dispatcher.metric('delivered_total')) === 41);
      expect(linesOf(path).map(idIn)).to.deep.equal(['later']);
    } finally {
      await dispatcher.stop();
      await redis.stop();
    }
  });
});
