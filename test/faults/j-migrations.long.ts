import { testMigrations } from '../store/migrations.js';

testMigrations(1);
