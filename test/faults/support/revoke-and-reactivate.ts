import { expect } from 'chai';
import { auditOf } from '../../support/management.js';
import { expectRefusal, UNAUTHORIZED } from '../../support/refusals.js';
import type { ProxyFixture } from '../../support/proxy-fixture.js';

const LOOK_EVERY = 10;

/** Revokes and reactivates the scene's token that many times while four clients use it, and checks that the last change always holds. */
export async function revokeAndReactivate(scene: ProxyFixture, times: number): Promise<void> {
  const setActive = async (isActive: boolean) => {
    const path = `/manage/tokens/${scene.token.id}`;
    expect((await scene.daemon.manage('PATCH', path, { is_active: isActive })).status).to.equal(200);
  };
  const calling = { isOver: false };
  const seen = new Set<number>();
  const callers = Array.from({ length: 4 }, async () => {
    while (!calling.isOver) seen.add((await scene.get()).status);
  });
  for (let n = 0; n < times; n++) {
    await setActive(false);
    if (n % LOOK_EVERY === 0) expectRefusal(await scene.get(), UNAUTHORIZED);
    await setActive(true);
    if (n % LOOK_EVERY === 0) expect((await scene.get()).status).to.equal(200);
  }
  calling.isOver = true;
  await Promise.all(callers);
  expect([...seen].sort()).to.deep.equal([200, 401]);
  expect((await scene.get()).status).to.equal(200);
  const actions = (await auditOf(scene.daemon)).map(({ action }) => action);
  for (const action of ['token.revoke', 'token.reactivate']) {
    expect(
      actions.filter((each) => each === action),
      action,
    ).to.have.length(times);
  }
}
