/** The command line, as processes: its exports are complete, and its changes are made. */
import { expect } from 'chai';
import type { WireStatus, WireToken } from '../../../daemon/api/contract.js';
import type { ContractContext } from './context.js';
import { inOrder, stateOf, storedTokens } from './stored.js';

export function behavesOnTheCommandLine(given: ContractContext): void {
  describe('the command line', () => {
    /** The output of a command that succeeds. */
    async function printed(args: string, stdin = ''): Promise<string> {
      const { exitCode, out, err } = await given.system.llmp(args.split(' '), stdin);
      expect(exitCode, `llmp ${args}: ${err}`).to.equal(0);
      return out;
    }
    const linesOf = (text: string) => text.split('\n').filter(Boolean);

    it('lists every token, in each format and in order', async () => {
      const stored = await storedTokens(given.system);
      expect(stored.length, 'more than one page of the maximum size').to.be.greaterThan(1_000);
      const wanted = inOrder(stored, 'name', true);
      expect(linesOf(await printed('token list --sort -name -o id'))).to.deep.equal(wanted);
      const asJson = JSON.parse(await printed('token list --sort -name -o json')) as WireToken[];
      expect(asJson.map(({ id }) => id)).to.deep.equal(wanted);
      const asLines = linesOf(await printed('token list --sort -name -o jsonl'));
      expect(asLines.map((line) => (JSON.parse(line) as WireToken).id)).to.deep.equal(wanted);
      const [header, ...rows] = linesOf(await printed('token list --sort -name -o csv'));
      const column = header?.split(',').indexOf('id') ?? -1;
      expect(column).to.be.at.least(0);
      // No field before the ID contains a comma.
      expect(rows.map((row) => row.split(',')[column])).to.deep.equal(wanted);
    });

    it('lists the tokens of a state, and as many as requested', async () => {
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
      expect(records.pages, 'more than one page of the maximum size').to.be.greaterThan(1);
      const listed = linesOf(await printed('audit list -o id'));
      // Uses are recorded a while later, and possibly meanwhile.
      const added = (await walk()).items.filter(({ id }) => !records.items.some((known) => known.id === id));
      expect(added.filter(({ action }) => action !== 'token.use')).to.deep.equal([]);
      const isAdded = (id: string) => added.some((record) => record.id === id);
      expect(listed.filter((id) => !isAdded(id))).to.deep.equal(records.items.map(({ id }) => id));
    });

    it('shows the health of the daemon', async () => {
      const status = JSON.parse(await printed('status -o json')) as WireStatus;
      expect(status).to.deep.include({ status: 'ready', missing: [], degraded: [] });
      expect(JSON.parse(await printed('migrate status -o json'))).to.deep.include({ pending: [] });
    });

    it('draws a frame of each screen of the terminal UI', async () => {
      for (const screen of ['overview', 'tokens', 'projects', 'audit', 'cache']) {
        const frame = await printed(`tui --once --screen ${screen}`);
        expect(frame, screen).to.match(/llmp/);
        expect(frame, screen).not.to.match(/cannot|cursor must|no response/i);
      }
    });
  });
}
