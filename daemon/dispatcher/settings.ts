/** Settings of a dispatcher. It does not read other settings of the daemon, such as the management token. */
import { DISPATCHER_SERVICES } from '../../config/dispatcher-services.js';
import { type AllSettings, loadPart, SettingsError } from '../../config/settings.js';
import type { Sources } from '../../config/sources.js';

const KEYS = [
  'redisAddress',
  'redisDatabase',
  'redisUsername',
  'redisPassword',
  'redisTls',
  'eventBus',
  'redisStreamKey',
  'redisStreamMaxLength',
  'dispatcherService',
  'dispatcherEndpoint',
  'dispatcherApiKey',
  'dispatcherClaimIdleMs',
  'dispatcherListenAddress',
  'logLevel',
  'logFormat',
  'shutdownGraceMs',
] as const satisfies readonly (keyof AllSettings)[];

export type DispatcherSettings = Pick<AllSettings, (typeof KEYS)[number]> & { dispatcherEndpoint: string };

/** @throws {SettingsError} with all problems at once. */
export function loadDispatcherSettings(sources: Sources) {
  const loaded = loadPart(sources, KEYS);
  const { eventBus, redisAddress, dispatcherService, dispatcherEndpoint, dispatcherApiKey } = loaded.settings;
  const problems: string[] = [];
  // The default of the event bus depends on REDIS_ADDR, so a missing REDIS_ADDR is reported instead of its consequence.
  if (!redisAddress) problems.push('REDIS_ADDR is required: the dispatcher reads events from Redis');
  if (eventBus !== 'redis-streams' && (redisAddress || loaded.found.get('eventBus')?.origin !== 'default')) {
    problems.push(
      `LLM_PROXY_EVENT_BUS=${eventBus} gives the dispatcher no events; set it to redis-streams here and for the daemon`,
    );
  }
  if (dispatcherEndpoint === undefined) {
    problems.push(`DISPATCHER_ENDPOINT is required with DISPATCHER_SERVICE=${dispatcherService}`);
  }
  // The setting is absent if this process gets no credentials.
  const lacksKey = 'dispatcherApiKey' in loaded.settings && dispatcherApiKey === undefined;
  if (lacksKey && DISPATCHER_SERVICES[dispatcherService].needsKey) {
    problems.push(`DISPATCHER_API_KEY is required with DISPATCHER_SERVICE=${dispatcherService}`);
  }
  if (problems.length > 0 || dispatcherEndpoint === undefined) throw new SettingsError(problems);
  return { ...loaded, settings: { ...loaded.settings, dispatcherEndpoint } satisfies DispatcherSettings };
}
