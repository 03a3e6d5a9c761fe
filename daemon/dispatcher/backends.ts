/** Which back ends there are. Each is loaded only when it is the one. */
import { type Settings, SettingsError } from '../../config/settings.js';
import type { Clock, Log } from '../core/ports.js';
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

const BACKENDS: Partial<Record<Service, Opening>> = {
  file: async ({ endpoint }) => new (await import('./file.js')).FileBackend(endpoint),
  webhook: async (options) => new (await import('./webhook.js')).WebhookBackend(options),
};

/** @throws {SettingsError} when this build has no such back end. */
export async function openBackend(service: Service, options: BackendOptions): Promise<Backend> {
  const open = BACKENDS[service];
  if (!open) throw new SettingsError([`DISPATCHER_SERVICE=${service} is not in this build`]);
  return open(options);
}
