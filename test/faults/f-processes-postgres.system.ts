import { testProcesses } from './f-processes.js';

testProcesses('postgres', 'PostgreSQL');
