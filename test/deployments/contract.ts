/** The one contract of every deployment. Reports and lists come first: what follows adds to what they add up. */
import { behavesInTheAdminUi } from './contract/admin.js';
import { behavesInAudit } from './contract/audit.js';
import { behavesAtCaps } from './contract/caps.js';
import { behavesInChanges } from './contract/changes.js';
import { behavesOnTheCommandLine } from './contract/cli.js';
import { behavesInLists } from './contract/lists.js';
import { behavesInOperation } from './contract/operations.js';
import type { Given } from './contract/part.js';
import { behavesInTheTerminalUi } from './contract/tui.js';
import { behavesInUsage } from './contract/usage.js';
import { furnish, type Furnished } from './furnished.js';
import { without } from './rows.js';
import { type Deployment, System } from './system.js';

export function keepsTheContract(deployment: Deployment): void {
  const why = without(deployment);
  describe(`llmp on ${deployment.name}${why}`, function () {
    this.timeout(60_000);
    let system: System | undefined;
    let furnished: Furnished;
    const given: Given = {
      get system() {
        if (!system) throw new Error('it does not run');
        return system;
      },
      get furnished() {
        return furnished;
      },
    };

    before(async function () {
      this.timeout(180_000);
      if (why) this.skip();
      system = await System.start(deployment);
      furnished = await furnish(system);
    });
    after(() => system?.stop());

    behavesInUsage(given);
    behavesInLists(given);
    behavesInAudit(given);
    behavesOnTheCommandLine(given);
    behavesInTheTerminalUi(given);
    behavesInTheAdminUi(given);
    behavesInChanges(given);
    behavesAtCaps(given);
    behavesInOperation(given);
  });
}
