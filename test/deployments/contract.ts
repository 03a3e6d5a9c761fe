/** The contract that every deployment fulfils. Reports and lists come first, because the later parts add to what they sum up. */
import { behavesInAccess } from './contract/access.js';
import { behavesInTheAdminUi } from './contract/admin.js';
import { behavesInAudit } from './contract/audit.js';
import { behavesAtBudgets } from './contract/budgets.js';
import { behavesAtCaps } from './contract/caps.js';
import { behavesAfterACopy, type Carried, carry } from './contract/copied.js';
import { behavesInChanges } from './contract/changes.js';
import { behavesOnTheCommandLine } from './contract/cli.js';
import { behavesInLists } from './contract/lists.js';
import { behavesInOperation } from './contract/operations.js';
import { behavesInExchanges } from './contract/exchanges.js';
import type { ContractContext } from './contract/context.js';
import { behavesAtLimits } from './contract/limits.js';
import { behavesInTheTerminalUi } from './contract/tui.js';
import { behavesInTop } from './contract/top.js';
import { behavesInUsage } from './contract/usage.js';
import { insertTestData, type TestData } from './test-data.js';
import { ALONE_ON_SQLITE, skipReason } from './deployments.js';
import { type Deployment, System } from './system.js';

export function fulfilsTheContract(deployment: Deployment): void {
  const why = skipReason(deployment);
  describe(`llmp on ${deployment.name}${why}`, function () {
    this.timeout(60_000);
    let system: System | undefined;
    let furnished: TestData;
    let carried: Carried;
    const given = {
      get system() {
        if (!system) throw new Error('it is not running');
        return system;
      },
      get testData() {
        return furnished;
      },
      get carried() {
        return carried;
      },
    } satisfies ContractContext & { carried: Carried };

    before(async function () {
      this.timeout(180_000);
      if (why) this.skip();
      system = await System.start(deployment.isCopied ? ALONE_ON_SQLITE : deployment);
      furnished = await insertTestData(system);
      if (!deployment.isCopied) return;
      carried = await carry(system, furnished);
      system = await system.growTo(deployment);
    });
    after(() => system?.stop());

    behavesInUsage(given);
    behavesInLists(given);
    behavesInAudit(given);
    behavesOnTheCommandLine(given);
    behavesInTheTerminalUi(given);
    behavesInTheAdminUi(given);
    if (deployment.isCopied) behavesAfterACopy(given);
    behavesInChanges(given);
    behavesInAccess(given);
    behavesInExchanges(given);
    behavesInTop(given);
    behavesAtCaps(given);
    behavesAtLimits(given);
    behavesAtBudgets(given);
    behavesInOperation(given);
  });
}
