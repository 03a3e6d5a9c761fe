/** Opens the back end of a service. Which services there are stands in config/dispatcher-services.ts. */
import type { DispatcherServiceName } from '../../../config/dispatcher-services.js';
import type { Backend, BackendOptions, CreateBackend } from './backend.js';

/** Loads the code of this service alone: the file in this folder that has its name. */
export async function openBackend(service: DispatcherServiceName, options: BackendOptions): Promise<Backend> {
  const { createBackend } = (await import(`./${service}.js`)) as { createBackend: CreateBackend };
  return createBackend(options);
}
