/** The contract on each deployment. `npx mocha dist/test/deployments/deployments.test.js -g 'on MariaDB'` runs it on one. */
import { fulfilsTheContract } from './contract.js';
import { DEPLOYMENTS } from './deployments.js';

for (const deployment of DEPLOYMENTS) fulfilsTheContract(deployment);
