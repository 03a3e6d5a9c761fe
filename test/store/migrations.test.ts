import { testMigrations } from './migrations.js';

testMigrations(11);
