/**
 * The services that `llmp dispatcher` can forward events to. The values of DISPATCHER_SERVICE, the default of
 * DISPATCHER_ENDPOINT, the checks of both and their documentation follow from this table.
 *
 * The code of a service is the file of its name in daemon/dispatcher/backends/.
 */
import { type DerivedDefault, logsFolder } from './defaults.js';

interface DispatcherService {
  /** What DISPATCHER_ENDPOINT is: the path of a file, or the URL of a server. */
  endpoint: 'file' | 'URL';
  /** Null if DISPATCHER_ENDPOINT is required. */
  defaultEndpoint: string | DerivedDefault | null;
  /** Whether DISPATCHER_API_KEY is required. */
  needsKey: boolean;
}

const eventsFile: DerivedDefault = {
  documented: './data/events.jsonl, under systemd $LOGS_DIRECTORY/events.jsonl',
  resolve: (around) => `${logsFolder(around)}/events.jsonl`,
};

const SERVICES = {
  file: { endpoint: 'file', defaultEndpoint: eventsFile, needsKey: false },
  lunary: { endpoint: 'URL', defaultEndpoint: 'https://api.lunary.ai', needsKey: true },
  helicone: { endpoint: 'URL', defaultEndpoint: 'https://api.worker.helicone.ai', needsKey: true },
  otlp: { endpoint: 'URL', defaultEndpoint: 'http://localhost:4318', needsKey: false },
  webhook: { endpoint: 'URL', defaultEndpoint: null, needsKey: false },
} satisfies Record<string, DispatcherService>;

export type DispatcherServiceName = keyof typeof SERVICES;

export const DISPATCHER_SERVICES: Readonly<Record<DispatcherServiceName, DispatcherService>> = SERVICES;

/** In the order of the table. */
export const DISPATCHER_SERVICE_NAMES = Object.keys(SERVICES) as DispatcherServiceName[];

const namesOf = (isMeant: (service: DispatcherService) => boolean): string =>
  DISPATCHER_SERVICE_NAMES.filter((name) => isMeant(DISPATCHER_SERVICES[name])).join(' and ');

export const FILE_SERVICES = namesOf(({ endpoint }) => endpoint === 'file');
export const SERVICES_WITH_KEY = namesOf(({ needsKey }) => needsKey);

/** The default of DISPATCHER_ENDPOINT, which depends on DISPATCHER_SERVICE. */
export const dispatcherEndpoint: DerivedDefault = {
  documented: DISPATCHER_SERVICE_NAMES.flatMap((name) => {
    const { defaultEndpoint } = DISPATCHER_SERVICES[name];
    if (defaultEndpoint === null) return [];
    return `for ${name} ${typeof defaultEndpoint === 'string' ? defaultEndpoint : defaultEndpoint.documented}`;
  }).join('; '),
  resolve(around) {
    const name = DISPATCHER_SERVICE_NAMES.find((it) => it === around.textOf('DISPATCHER_SERVICE'));
    const fallback = name && DISPATCHER_SERVICES[name].defaultEndpoint;
    return typeof fallback === 'object' ? fallback?.resolve(around) : fallback;
  },
};
