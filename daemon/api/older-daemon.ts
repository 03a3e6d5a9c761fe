import { ApiError } from './client.js';

/** Whether a daemon of an earlier release refused a request because it does not know the field. */
export const isUnknownField = (error: unknown, name: string): boolean =>
  error instanceof ApiError &&
  error.code === 'invalid_request' &&
  /^unknown field/.test(error.message) &&
  error.message.split(/[^\w]+/).includes(name);

/** What the front ends say if the daemon cannot check projects. */
export const NO_PROJECT_CHECKS = 'the daemon is of an earlier release, which cannot check projects';

/** Whether the daemon does not know the path of a request, because it is of an earlier release. */
export const isUnknownPath = (error: unknown): boolean =>
  error instanceof ApiError && error.status === 404 && error.message.startsWith('no such path');

/** What the front ends say if the daemon does not know providers of projects. */
export const NO_PROVIDERS = 'the daemon is of an earlier release, in which all projects have the same provider';

/** Whether the daemon refused a project's provider because it is of an earlier release. */
export const isProviderUnknown = (error: unknown): boolean =>
  isUnknownField(error, 'upstream_base_url') || isUnknownField(error, 'upstream_auth');
