import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import { ServedDaemon } from './served-daemon.js';

/** Ends a daemon that many times, alternately by a kill and by a stop, and restarts it on the same files. @returns the last one. */
export async function restartRepeatedly(times: number): Promise<ServedDaemon> {
  let served = await ServedDaemon.start();
  const { dir } = served;
  const files = () => readdirSync(dir).sort();
  const before = files();
  for (let n = 0; n < times; n++) {
    if (n % 2 === 1) {
      served.process.child.kill('SIGTERM');
      expect(await served.process.exit).to.equal(0);
    }
    await served.stop();
    served = await ServedDaemon.start({ dir });
    expect((await served.get()).status).to.equal(200);
  }
  expect(files()).to.deep.equal(before);
  const { applied, pending } = await served.management.migrations();
  expect(new Set(applied).size).to.equal(applied.length);
  expect(pending).to.deep.equal([]);
  return served;
}
