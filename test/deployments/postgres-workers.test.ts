import { fulfilsTheContract } from './contract.js';
import { DEPLOYMENTS } from './deployments.js';

fulfilsTheContract(DEPLOYMENTS.postgresWorkers);
