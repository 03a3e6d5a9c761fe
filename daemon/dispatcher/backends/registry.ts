/** Which back ends there are. Each is loaded only when it is the one. */
import type { Settings } from '../../../config/settings.js';
import type { Clock, Log } from '../../core/ports.js';
import type { Backend } from './backend.js';

/** What a back end is made from. */
export interface BackendOptions {
  /** The path of a file, or a URL. */
  endpoint: string;
  apiKey: string | undefined;
  clock: Clock;
  log: Log;
  /** Of llmp. */
  version: string;
}

type Service = Settings['dispatcherService'];
type Opening = (options: BackendOptions) => Promise<Backend>;

const BACKENDS: Record<Service, Opening> = {
  file: async ({ endpoint }) => new (await import('./file.js')).FileBackend(endpoint),
  webhook: async (options) => new (await import('./webhook.js')).WebhookBackend(options),
  lunary: async (options) => (await import('./lunary.js')).openLunary(options),
  helicone: async (options) => (await import('./helicone.js')).openHelicone(options),
  otlp: async (options) => (await import('./otlp.js')).openOtlp(options),
};

/** @throws {SettingsError} when the service needs a setting that is missing. */
export const openBackend = (service: Service, options: BackendOptions): Promise<Backend> => BACKENDS[service](options);
