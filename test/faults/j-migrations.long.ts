import { testMigrations } from '../stores/migrations.js';

testMigrations(1);
