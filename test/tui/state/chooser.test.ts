import { expect } from 'chai';
import { choicesFound } from '../../../tui/state/chooser.js';
import { focused } from '../../../tui/state/dialog.js';
import { screenText } from '../screens/rendering.js';
import { project as aProject, ScreenFixture } from '../screens/screen-fixture.js';
import { Operator } from '../operator.js';
import { project, SimulatedDaemon, token } from '../simulated.js';

const NAMES = ['alpha', 'batch', 'cron', 'prod-web', 'web', 'web-eu', 'web us', 'zeta'];

/** The form for a new token, with eight projects to choose from. */
const choosing = () => {
  const daemon = new SimulatedDaemon({ projects: NAMES.map((name) => project(name)), tokens: [token(0)] });
  return new Operator({ daemon }).press('n');
};
/** The names of the list that is open; null: it is closed. */
const listed = (operator: Operator) => {
  const field = focused(operator.dialog);
  return field?.search ? choicesFound(field).map(({ label }) => label) : null;
};

describe('project chooser', () => {
  it('is narrowed by typing and widened by Backspace, and the choice does not jump (finding A5)', () => {
    const operator = choosing();
    expect(operator.value('Project'), 'the project of the row').to.equal('project-web');
    expect(listed(operator)).to.equal(null);
    expect(listed(operator.press('w'))).to.deep.equal(['web', 'web-eu', 'web us', 'prod-web']);
    const seen = ['e', 'b'].map((letter) => operator.press(letter).value('Project'));
    expect(seen).to.deep.equal(['project-web', 'project-web']);
    expect(operator.press('-').value('Project')).to.equal('project-web-eu');
    expect(listed(operator)).to.deep.equal(['web-eu']);
    expect(listed(operator.press('backspace'))).to.have.lengthOf(4);
    expect(operator.press('space').value('Project')).to.equal('project-web us');
    expect(listed(operator.press('ctrl+u')), 'the whole list').to.have.lengthOf(NAMES.length);
    expect(operator.value('Project')).to.equal('project-web us');
  });

  it('is a list while it is open: down and up select, Enter takes it and goes on', () => {
    const operator = choosing().types('web').press('down', 'down', 'up');
    expect(operator.value('Project')).to.equal('project-web-eu');
    operator.press('pagedown');
    expect(operator.value('Project'), 'it stops at the end').to.equal('project-prod-web');
    operator.press('enter');
    expect(operator.field).to.equal('Name');
    operator.types('ci').submits();
    expect(operator.daemon.made[0]?.change).to.have.nested.property('body.project_id', 'project-prod-web');
  });

  it('is opened by space, and leaves the keys of the dialog as they are while it is closed', () => {
    const operator = choosing();
    operator.press('down');
    expect(operator.field).to.equal('Name');
    operator.press('up', 'right');
    expect(operator.value('Project')).to.equal('project-web-eu');
    expect(listed(operator)).to.equal(null);
    expect(listed(operator.press('space'))).to.have.lengthOf(NAMES.length);
    operator.press('tab');
    expect(operator.field).to.equal('Name');
    operator.press('shift+tab');
    expect(listed(operator), 'it closes when it is left').to.equal(null);
  });

  it('is closed by Escape, which restores the choice; a second Escape closes the dialog', () => {
    const operator = choosing().types('zet');
    expect(operator.value('Project')).to.equal('project-zeta');
    operator.press('escape');
    expect(operator.value('Project')).to.equal('project-web');
    expect(listed(operator)).to.equal(null);
    expect(operator.press('escape').top).to.equal(undefined);
  });

  it('rejects a letter that matches nothing, with a message (finding A5)', () => {
    const operator = choosing().types('webx');
    expect(operator.value('Project')).to.equal('project-web');
    expect(operator.dialog.problem).to.equal('No match for “webx” in Project');
    expect(operator.press('right').value('Project'), 'arrows go through what fits').to.equal('project-web-eu');
    expect(operator.press('right', 'right').value('Project'), 'a part of the name fits last').to.equal(
      'project-prod-web',
    );
    expect(operator.press('right').value('Project')).to.equal('project-web');
  });

  it('says where a name belongs that was typed too early', () => {
    const operator = choosing().types('x');
    expect(operator.dialog.problem).to.equal('No match for “x” in Project');
    expect(screenText(operator.state)).to.contain('No match for “x” in Project; tab goes to Name');
    const customKeys = new Map([['dialog.next', ['ctrl+n']]]);
    const other = screenText({ ...operator.state, customKeys });
    expect(other).to.contain('No match for “x” in Project; ^n goes to Name');
    operator.press('tab').types('x');
    expect(operator.value('Name')).to.equal('x');
  });

  it('starts again after it was left or its text was deleted (finding A5)', () => {
    const operator = choosing().types('we').press('tab', 'shift+tab').types('z');
    expect(operator.value('Project')).to.equal('project-zeta');
    expect(operator.press('ctrl+u').types('cr').value('Project')).to.equal('project-cron');
  });

  it('accepts a pasted name', () => {
    expect(choosing().pastes('web-eu\n').value('Project')).to.equal('project-web-eu');
  });

  it('is skipped if there is only one project', () => {
    const operator = new Operator({ daemon: new SimulatedDaemon({ tokens: [token(0)] }) }).press('n').types('ci bot');
    expect(operator.field).to.equal('Name');
    expect(operator.value('Name')).to.equal('ci bot');
  });

  for (const [columns, rows] of [
    [50, 10],
    [80, 24],
    [120, 40],
  ] as const) {
    it(`scrolls through many projects, and does not change its height, at ${columns}x${rows}`, () => {
      const projects = Array.from({ length: 300 }, (_, number) => aProject(number + 1, { name: `team-${number + 1}` }));
      const it = new ScreenFixture({ columns, rows, projects, tokens: [] }).press('n', ...'team'.split(''));
      const height = () =>
        screenText(it.state)
          .split('\n')
          .filter((line) => line.includes('│')).length;
      const before = height();
      expect(screenText(it.state))
        .to.match(/> Project: +\[ team█ .*\] {2}1 of 300/)
        .and.to.match(/> team-1 /);
      for (let n = 0; n < 150; n++) it.press('down');
      expect(screenText(it.state))
        .to.match(/> team-151 /)
        .and.to.contain('151 of 300')
        .and.to.contain('Cancel');
      it.press('-', '2', '9', '9');
      expect(screenText(it.state))
        .to.match(/> team-299 /)
        .and.to.contain('1 of 1')
        .and.to.not.contain('team-298');
      expect(height()).to.equal(before);
    });
  }
});
