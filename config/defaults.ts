/** The defaults that depend on where the daemon runs or on other settings. */
import { dirname, join } from 'node:path';
import type { Environment } from './sources.js';

export interface DerivedDefault {
  /** What the documentation says in its place. */
  says: string;
  /** As it would be written; undefined: none. */
  of: (around: Surroundings) => string | undefined;
}

export interface Surroundings {
  env: Environment;
  /** Whether a person reads the log. */
  isReadByPeople: boolean;
  /** Another setting as it is written, its default included. */
  textOf: (name: string) => string | undefined;
}

/** A folder that systemd made for the unit. It may name several, separated by colons. */
const systemdFolder = (paths: string | undefined) => paths?.split(':')[0];

export const databaseUrl: DerivedDefault = {
  says: 'sqlite:./data/llmp.db; under systemd $STATE_DIRECTORY/llmp.db',
  of: ({ env }) => {
    const folder = systemdFolder(env.STATE_DIRECTORY);
    return folder ? `sqlite:${join(folder, 'llmp.db')}` : 'sqlite:./data/llmp.db';
  },
};

/** Where logs go, and what else is written line by line. */
export const logsFolder = ({ env }: Surroundings) => systemdFolder(env.LOGS_DIRECTORY) ?? './data';

export const auditLogFile: DerivedDefault = {
  says: './data/audit.log; under systemd $LOGS_DIRECTORY/audit.log',
  of: (around) => `${logsFolder(around)}/audit.log`,
};

/** Without an AUDIT_LOG_FILE to stand beside it goes where that would be: turning off one must not turn off the other. */
export const auditUseLogFile: DerivedDefault = {
  says: 'audit-use.log beside AUDIT_LOG_FILE',
  of: (around) => {
    const beside = around.textOf('AUDIT_LOG_FILE');
    return `${beside ? dirname(beside) : logsFolder(around)}/audit-use.log`;
  },
};

export const cacheBackend: DerivedDefault = {
  says: 'redis with REDIS_ADDR, else memory',
  of: ({ textOf }) => (textOf('REDIS_ADDR') === undefined ? 'memory' : 'redis'),
};

export const eventBus: DerivedDefault = {
  says: 'redis-streams with REDIS_ADDR, else in-memory',
  of: ({ textOf }) => (textOf('REDIS_ADDR') === undefined ? 'in-memory' : 'redis-streams'),
};

export const logFormat: DerivedDefault = {
  says: 'json; text on a terminal and in the journal of systemd',
  of: ({ isReadByPeople }) => (isReadByPeople ? 'text' : 'json'),
};
