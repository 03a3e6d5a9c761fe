import { testProcesses } from './f-processes.js';

testProcesses('mysql', 'MariaDB');
