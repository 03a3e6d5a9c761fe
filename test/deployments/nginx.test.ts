import { keepsTheContract } from './contract.js';
import { ROWS } from './rows.js';

keepsTheContract(ROWS.nginx);
