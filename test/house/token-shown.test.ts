/** Where a token is shown completely, each of its properties is shown, so that a new property is not forgotten on a screen or page. */
import { expect } from 'chai';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { offersOf } from '../../daemon/admin/offers.js';
import { FrameContext } from '../../daemon/admin/parts/frame.js';
import { lastSteps } from '../../daemon/admin/parts/timeline.js';
import { TokenPage } from '../../daemon/admin/pages/token.js';
import type { WireToken } from '../../daemon/api/contract.js';
import { projectExample as project, tokenExample as whole } from '../../daemon/api/schemas.js';
import { frameLines } from '../tui/screens/rendering.js';
import { ScreenFixture } from '../tui/screens/screen-fixture.js';

/** The example's token, which records the properties that are read. */
function watched(): { token: WireToken; read: Set<string> } {
  const read = new Set<string>();
  const token = new Proxy(whole, {
    get(target, name) {
      read.add(String(name));
      return Reflect.get(target, name) as unknown;
    },
  });
  return { token, read };
}

const properties = Object.keys(whole);
// `state` and the project already show these.
const shownOtherwise = ['is_active', 'project_id'];
const forgotten = (read: Set<string>) => properties.filter((it) => !read.has(it) && !shownOtherwise.includes(it));

describe('each property of a token', () => {
  it('is shown on its screen of the terminal UI', () => {
    const { token, read } = watched();
    const { state } = new ScreenFixture({ tokens: [whole], projects: [project], rows: 60 }).press('enter');
    frameLines({ ...state, token: { ...state.token!, token } });
    expect(forgotten(read)).to.deep.equal([]);
  });

  it('is shown on its page of the Admin UI', () => {
    const { token, read } = watched();
    const nowMs = Date.UTC(2030, 0, 31, 13);
    const used = { usage: [], spanName: '24h', timeline: lastSteps(24, 'hour', nowMs) } as const;
    const page = createElement(TokenPage, { token, used, records: [], failures: null, done: null });
    const frame = { base: '/admin/', formToken: null, nowMs, offers: offersOf([])(null) };
    renderToStaticMarkup(createElement(FrameContext, { value: frame }, page));
    expect(forgotten(read)).to.deep.equal([]);
  });
});
