/** The command line, as processes: what it exports is all there is, and what it is told to change is changed. */
import { expect } from 'chai';
import type { WireStatus, WireToken } from '../../../daemon/api/contract.js';
import type { Given } from './part.js';
import { inOrder, stateOf, storedTokens } from './stored.js';

export function behavesOnTheCommandLine(given: Given): void {
  describe('the command line', () => {
    /** What a command prints that ends well. */
    async function printed(args: string, stdin = ''): Promise<string> {
      const { exitCode, out, err } = await given.system.llmp(args.split(' '), stdin);
      expect(exitCode, `llmp ${args}: ${err}`).to.equal(0);
      return out;
    }
    const linesOf = (text: string) => text.split('\n').filter(Boolean);

    it('lists every token, in each format and in order', async () => {
      const stored = await storedTokens(given.system);
      expect(stored.length, 'more than one page of the largest size').to.be.greaterThan(1_000);
      const wanted = inOrder(stored, 'name', true);
      expect(linesOf(await printed('token list --sort -name -o id'))).to.deep.equal(wanted);
      const asJson = JSON.parse(await printed('token list --sort -name -o json')) as WireToken[];
      expect(asJson.map(({ id }) => id)).to.deep.equal(wanted);
      const asLines = linesOf(await printed('token list --sort -name -o jsonl'));
      expect(asLines.map((line) => (JSON.parse(line) as WireToken).id)).to.deep.equal(wanted);
      const [header, ...rows] = linesOf(await printed('token list --sort -name -o csv'));
      const column = header?.split(',').indexOf('id') ?? -1;
      expect(column).to.be.at.least(0);
      // No field before the id holds a comma.
      expect(rows.map((row) => row.split(',')[column])).to.deep.equal(wanted);
    });

    it('lists the tokens of a state, and as many as it is told to', async () => {
      const stored = await storedTokens(given.system);
      const revoked = stored.filter((token) => stateOf(token, Date.now()) === 'revoked');
      expect(linesOf(await printed('token list --state revoked --sort created_at -o id'))).to.deep.equal(
        inOrder(revoked, 'created_at', false),
      );
      expect(linesOf(await printed('token list --limit 1005 --sort expires_at -o id'))).to.deep.equal(
        inOrder(stored, 'expires_at', false).slice(0, 1005),
      );
    });

    it('lists every project and every audit record', async () => {
      const projects = await given.system.walk<{ id: string }>('/manage/projects');
      expect(linesOf(await printed('project list -o id'))).to.deep.equal(projects.items.map(({ id }) => id));
      const walk = () => given.system.walk<{ id: string; action: string }>('/manage/audit?limit=1000');
      const records = await walk();
      expect(records.pages, 'more than one page of the largest size').to.be.greaterThan(1);
      const listed = linesOf(await printed('audit list -o id'));
      // What requests were used for is written a while later, and may be so meanwhile.
      const added = (await walk()).items.filter(({ id }) => !records.items.some((known) => known.id === id));
      expect(added.filter(({ action }) => action !== 'token.use')).to.deep.equal([]);
      const isAdded = (id: string) => added.some((record) => record.id === id);
      expect(listed.filter((id) => !isAdded(id))).to.deep.equal(records.items.map(({ id }) => id));
    });

    it('says how the daemon is', async () => {
      const status = JSON.parse(await printed('status -o json')) as WireStatus;
      expect(status).to.deep.include({ status: 'ready', missing: [], degraded: [] });
      expect(JSON.parse(await printed('migrate status -o json'))).to.deep.include({ pending: [] });
    });

    it('draws a frame of each screen of the terminal UI', async () => {
      for (const screen of ['overview', 'tokens', 'projects', 'audit', 'cache']) {
        const frame = await printed(`tui --once --screen ${screen}`);
        expect(frame, screen).to.match(/llmp/);
        expect(frame, screen).not.to.match(/cannot|cursor must|no answer/i);
      }
    });
  });
}
