/** Defaults that depend on the environment or on other settings. */
import { dirname, join } from 'node:path';
import type { Environment } from './sources.js';

export interface DerivedDefault {
  /** The text in the documentation. */
  documented: string;
  /** The default as it would be written; undefined for none. */
  resolve: (around: DefaultInputs) => string | undefined;
}

export interface DefaultInputs {
  env: Environment;
  /** Whether the log goes to a terminal or the journal, where people read it. */
  isReadByPeople: boolean;
  /** The text of another setting, or its default. */
  textOf: (name: string) => string | undefined;
}

/** The first of the folders that systemd created for the unit. They are separated by colons. */
const systemdFolder = (paths: string | undefined) => paths?.split(':')[0];

export const databaseUrl: DerivedDefault = {
  documented: 'sqlite:./data/llmp.db; under systemd $STATE_DIRECTORY/llmp.db',
  resolve: ({ env }) => {
    const folder = systemdFolder(env.STATE_DIRECTORY);
    return folder ? `sqlite:${join(folder, 'llmp.db')}` : 'sqlite:./data/llmp.db';
  },
};

/** The folder for log files and similar files. */
export const logsFolder = ({ env }: DefaultInputs) => systemdFolder(env.LOGS_DIRECTORY) ?? './data';

export const auditLogFile: DerivedDefault = {
  documented: './data/audit.log; under systemd $LOGS_DIRECTORY/audit.log',
  resolve: (around) => `${logsFolder(around)}/audit.log`,
};

/** If AUDIT_LOG_FILE is turned off, the file goes where it would be: turning off one file must not turn off the other. */
export const auditUseLogFile: DerivedDefault = {
  documented: 'audit-use.log in the folder of AUDIT_LOG_FILE',
  resolve: (around) => {
    const beside = around.textOf('AUDIT_LOG_FILE');
    return `${beside ? dirname(beside) : logsFolder(around)}/audit-use.log`;
  },
};

export const cacheBackend: DerivedDefault = {
  documented: 'redis with REDIS_ADDR, otherwise memory',
  resolve: ({ textOf }) => (textOf('REDIS_ADDR') === undefined ? 'memory' : 'redis'),
};

export const eventBus: DerivedDefault = {
  documented: 'redis-streams with REDIS_ADDR, otherwise in-memory',
  resolve: ({ textOf }) => (textOf('REDIS_ADDR') === undefined ? 'in-memory' : 'redis-streams'),
};

export const logFormat: DerivedDefault = {
  documented: 'json; text on a terminal and in the systemd journal',
  resolve: ({ isReadByPeople }) => (isReadByPeople ? 'text' : 'json'),
};
