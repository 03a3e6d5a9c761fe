/** Opens the backend of a service. config/dispatcher-services.ts declares the services. */
import type { DispatcherServiceName } from '../../../config/dispatcher-services.js';
import type { Backend, BackendOptions, CreateBackend } from './backend.js';

/** Loads only the file of this folder that has the name of the service. */
export async function openBackend(service: DispatcherServiceName, options: BackendOptions): Promise<Backend> {
  const { createBackend } = (await import(`./${service}.js`)) as { createBackend: CreateBackend };
  return createBackend(options);
}
