import { expect } from 'chai';
import { aTop, aTopRow } from '../../support/factories.js';
import { frameLines, screenText } from './rendering.js';
import { scene } from './scenes.js';
import type { Setting } from './screen-fixture.js';

const shown = (setting: Setting, ...keys: string[]) =>
  screenText(scene({ tab: 'top', ...setting }).press(...keys).state);
const lines = (setting: Setting, ...keys: string[]) => shown(setting, ...keys).split('\n');

describe('the Top screen', () => {
  it('shows figures, kinds of failures and the trend of each token', () => {
    const [, , title, heads, first] = lines({ columns: 153 });
    expect(title).to.contain('┌ Tokens, last hour ─');
    expect(heads).to.match(
      /TOKEN +PROJECT +REQUESTS +FAILURES ▼ +FAILURE KINDS +MODEL TOKENS +COST +P50 +P95 +LAST USED +TREND/,
    );
    expect(first).to.match(
      /> {2}ci-deploy +web +4,211 +61 +refused 40 {2}provider refused 21 +1\.20M +\$0 +412 ms +1,890 ms +now +[▁▂▃▄▅▆▇█]{10} /,
    );
  });

  it('drops columns one by one, and keeps the one that it is sorted by', () => {
    const heads = (columns: number, ...keys: string[]) => lines({ columns }, ...keys)[3]!;
    expect(heads(80)).to.contain('TREND').and.not.to.contain('P95');
    expect(heads(54)).to.match(/TOKEN +PROJECT +REQUESTS +FAILURES ▼ /);
    expect(heads(50)).to.match(/TOKEN +REQUESTS +FAILURES ▼ /);
    expect(heads(50, 's', 's', 's', 's')).to.contain('P95 ▼');
    expect(heads(50, '$')).to.contain('COST ▼');
  });

  it('has two kinds of failures beside the trend at 120 columns', () => {
    const kinds = { requests: 98, errors: 98, refused: 55, failed: 43 };
    const top = aTop({ rows: [aTopRow({ token_name: 'support-bot-user-4998', project_name: 'legacy', ...kinds })] });
    const [head, row] = lines({ columns: 120, top }).slice(3);
    expect(row).to.contain(' support-bot-user-4998 ').and.to.contain(' refused 55  failed 43 ');
    expect(head).to.contain('TREND');
  });

  it('says how many rows there are', () => {
    const top = aTop({ rows: [aTopRow()], row_count: 512 });
    expect(lines({ columns: 140, top })[2]).to.contain('Tokens, last hour · first 1 of 512 rows');
  });

  it('colors the steps of the trend that have failures', () => {
    const row = aTopRow({ token_id: 'second', history: [4, 4], error_history: [0, 1] });
    const top = aTop({ rows: [aTopRow({ requests: 9 }), row] });
    // The row under the cursor has a color of its own.
    const line = frameLines(scene({ tab: 'top', top, columns: 90 }).state)[5]!;
    // eslint-disable-next-line no-control-regex
    const [good, bad] = [...line.matchAll(/\x1b\[([\d;]+)m█/g)].map(([, color]) => color);
    expect(good).not.to.equal(undefined);
    expect(bad).not.to.equal(undefined);
    expect(good).not.to.equal(bad);
  });

  it('is readable in ASCII', () => {
    expect(shown({ look: { ascii: true }, columns: 120 })).to.match(/^[\x20-\x7e\n]*$/);
    expect(shown({ look: { ascii: true }, columns: 120 })).to.contain('FAILURES v');
  });

  it('says what an empty list means', () => {
    expect(shown({ top: aTop() }))
      .to.contain('No requests in the last hour.')
      .and.to.contain('w shows another time.');
  });

  it('says that a filter on models needs models', () => {
    const it = scene({ tab: 'top' }).press('/').act({ on: 'paste', text: 'model:gpt' }).press('enter');
    expect(screenText(it.state)).to.contain('No tokens match model:gpt.').and.to.contain('m shows models');
  });

  it('shows how many rows match the filter', () => {
    const it = scene({ tab: 'top', columns: 120 }).press('/').act({ on: 'paste', text: 'job-1' }).press('enter');
    expect(screenText(it.state)).to.contain('filter 3/12');
  });
});
