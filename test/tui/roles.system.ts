/** Operators with roles in a real terminal: who is logged in, what that offers, and the end of it. */
import { expect } from 'chai';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireOperator, WireOperatorCreated, WireProject } from '../../daemon/api/contract.js';
import { WITHOUT_TMUX } from '../support/tmux.js';
import { TerminalFixture } from './terminal-fixture.js';

const WITHIN_MS = 20_000; // On a busy machine.

describe(`llmp tui for operators with roles${WITHOUT_TMUX}`, function () {
  this.timeout(60_000);
  let stage: TerminalFixture;
  let web: WireProject;

  before(async function () {
    if (WITHOUT_TMUX) this.skip();
    stage = await TerminalFixture.open();
    web = await stage.project('web');
    await stage.project('payroll');
    await stage.token(web.id, 'of-the-team');
  });
  after(() => (WITHOUT_TMUX ? undefined : stage.close()));

  /** Gives the context of an operator the file of its secret, as the one who gets the secret does. */
  function writeContext(name: string, secretFile: string): void {
    const lines = [`[contexts.${name}]`, `server = "${stage.server}"`, `token_file = "${secretFile}"`];
    writeFileSync(stage.config, `\n${lines.join('\n')}\n`, { flag: 'a' });
  }

  for (const [columns, rows] of [
    [80, 24],
    [120, 40],
  ] as const) {
    const name = `ana-${columns}`;

    it(`lets an issuer issue a token within the ceilings, and nothing else, at ${columns}x${rows}`, async () => {
      const ceilings = { hours: 8, requests: 500, models: ['gpt-5-mini'] };
      const terms = { name, role: 'issuer', projects: [web.id], ceilings };
      const { secret, ...ana } = await stage.manage<WireOperatorCreated>('POST', '/manage/operators', terms);
      const file = join(stage.folder, `${name}-secret`);
      writeFileSync(file, `${secret}\n`, { mode: 0o600 });
      writeContext(name, file);
      const it = await stage.watch({ columns, rows, args: ['-c', name] });
      const begun = await it.shows(new RegExp(`${name} \\(issuer\\) .*tokens .*● live`), WITHIN_MS);
      expect(begun).to.match(/1 Overview +2 Tokens.* 3 Projects.* 7 Top/);
      expect(begun).not.to.match(/Audit|Cache|Events|payroll|of-the-team| limits| budget/);
      await it.press('4');
      await it.shows(/not permitted: the role issuer may not read the audit log/);
      await it.press('n');
      await it.shows(/At most: 8 h, 500 requests, models gpt-5-mini/);
      await it.type('ci');
      await it.press('C-s');
      await it.shows(/Token created · shown once/, WITHIN_MS);
      await it.press('Enter', 'Enter');
      await it.shows(/1 of 1/, WITHIN_MS);
      await it.press('Enter');
      await it.shows(new RegExp(`issued by operator ${name} `), WITHIN_MS);
      const [issued] = (await stage.tokens()).filter(({ issued_by: by }) => by === `operator:${name}`);
      expect(issued).to.deep.include({ max_requests: 500, allow: { models: ['gpt-5-mini'] }, project_id: web.id });
      expect(Date.parse(issued!.expires_at) - Date.parse(issued!.created_at)).to.equal(8 * 3_600_000);

      await stage.manage('DELETE', `/manage/operators/${ana.id}`);
      await it.shows(new RegExp(`✗ denied[^]*! the secret of ${name} was refused`), WITHIN_MS);
      expect((await stage.tokens()).find(({ id }) => id === issued!.id)).to.include({ state: 'revoked' });
    });

    it(`lets the holder of the management token create and deactivate an operator, at ${columns}x${rows}`, async () => {
      const other = `bo-${columns}`;
      const it = await stage.watch({ columns, rows });
      await it.shows(/● live/, WITHIN_MS);
      await it.press('O');
      await it.shows(/Operators · T trusts/, WITHIN_MS);
      await it.press('n');
      await it.shows(/New operator/);
      await it.type(other);
      await it.press('Tab', 'Right', 'C-s');
      await it.shows(/Operator created · shown once/, WITHIN_MS);
      await it.press('w');
      await it.shows(/operator\.txt/);
      await it.press('C-u');
      await it.type(`${other}-secret`);
      await it.press('Enter');
      await it.shows(/Written to/, WITHIN_MS);
      await it.press('Enter', 'g');
      await it.shows(new RegExp(`> .*${other} +operator +● active`), WITHIN_MS);
      const file = join(stage.folder, `${other}-secret`);
      expect(statSync(file).mode & 0o777).to.equal(0o600);
      expect(readFileSync(file, 'utf8')).to.match(/^sk-op-\w{49}\n$/);
      writeContext(other, file);
      const theirs = await stage.watch({ columns, rows, args: ['-c', other] });
      await theirs.shows(new RegExp(`${other} \\(operator\\) .*● live`), WITHIN_MS);

      await it.press('d');
      await it.shows(/Its secret and its sessions end at once/);
      await it.press('Right', 'Enter');
      await it.shows(new RegExp(`${other} +operator +.* inactive`), WITHIN_MS);
      const all = await stage.manage<WireOperator[]>('GET', '/manage/operators');
      expect(all.find((operator) => operator.name === other)).to.include({ is_active: false });
      // Many refusals from one address are slowed down.
      await theirs.shows(
        new RegExp(`! the secret of ${other} was refused|too many wrong management tokens`),
        WITHIN_MS,
      );
    });
  }
});
