import { testOutages } from './database-outage.js';

testOutages('mysql', 'MariaDB');
