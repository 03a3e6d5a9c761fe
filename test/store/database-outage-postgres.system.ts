import { testOutages } from './database-outage.js';

testOutages('postgres', 'PostgreSQL');
