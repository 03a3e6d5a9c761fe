/** Which releases of Node.js get security fixes, and what the daemon says of one that does not. The command line: see test/cli. */
import { expect } from 'chai';
import { endOfSupport } from '../../config/node-support.js';
import { TestClock } from '../support/clock.js';
import { startDaemon } from '../support/daemon.js';

const at = (text: string) => Date.parse(text);

describe('the support of a release of Node.js', () => {
  it('lasts until its last day is over', () => {
    expect(endOfSupport('20.19.0', at('2026-04-30T23:59:59Z'))).to.equal(null);
    expect(endOfSupport('20.19.0', at('2026-05-01T00:00:00Z'))).to.deep.equal({
      problem: 'Node.js 20.19.0 has had no security fixes since 2026-04-30',
      advice: 'Install Node.js 24, or a newer llmp if Node.js came with it',
    });
    expect(endOfSupport('24.21.0', at('2028-04-30T12:00:00Z'))).to.equal(null);
    expect(endOfSupport('24.21.0', at('2028-05-01T00:00:00Z'))?.advice).to.match(/^Install Node\.js 26,/);
    expect(endOfSupport('26.10.0', at('2029-04-30T12:00:00Z'))).to.equal(null);
    expect(endOfSupport('26.10.0', at('2029-05-01T00:00:00Z'))?.advice).to.match(
      /^Install a newer release of Node\.js/,
    );
  });

  it('does not exist for a release between those with long-term support', () => {
    for (const version of ['21.0.0', '23.11.1', '25.2.0'])
      expect(endOfSupport(version, at('2026-06-01'))?.problem).to.equal(`Node.js ${version} gets no security fixes`);
  });

  it('is not known of a newer release', () => {
    expect(endOfSupport('27.0.0', at('2035-01-01'))).to.equal(null);
  });

  it('is in the log when the daemon starts, once it has ended', async () => {
    const started = async (startMs: number) => {
      const daemon = await startDaemon({ clock: new TestClock({ standsStill: false, startMs }) });
      await daemon.stop();
      return daemon.logged.filter((line) => line.includes(`Node.js ${process.versions.node}`));
    };
    expect(await started(at('2026-04-30T12:00:00Z'))).to.deep.equal([]);
    const lines = await started(at('2035-01-01'));
    expect(lines).to.have.lengthOf(1);
    expect(lines[0])
      .to.match(/warn/)
      .and.to.match(/no security fixes since [\d-]+\. Install /);
  });
});
