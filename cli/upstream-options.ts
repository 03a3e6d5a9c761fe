/** The options for a project's provider. */
import { oneOf } from '../config/kinds.js';
import { PROVIDER_CHOICES, type ProjectUpstream, upstreamFrom, UpstreamIncomplete } from '../daemon/api/providers.js';
import { MISSING_USAGES, UPSTREAM_AUTHS } from '../daemon/api/vocabulary.js';
import { shellWord } from '../console/escape.js';
import { usage } from '../console/failure.js';
import { text, value, type Values } from './option.js';

export const upstreamOptions = {
  provider: value(
    '--provider <NAME>',
    oneOf(...PROVIDER_CHOICES),
    'provider of the project; azure requires --base-url, and default is UPSTREAM_BASE_URL of the daemon',
  ),
  baseUrl: text('--base-url <URL>', 'base URL of the provider, in place of that of --provider'),
  auth: value(
    '--auth <HOW>',
    oneOf(...UPSTREAM_AUTHS),
    'how the provider receives the key, in place of that of --provider: bearer, or the name of a header',
  ),
};

export const missingUsageOption = {
  missingUsage: value(
    '--missing-usage <HOW>',
    oneOf(...MISSING_USAGES),
    'what happens with chat streams that do not ask for their usage: off (they pass), bound (they pass, and budgets are charged the most that they can cost), refuse, or inject (llmp asks for the usage and removes it from the response)',
  ),
};

export const missingUsageIn = ({ missingUsage }: Values<typeof missingUsageOption>) =>
  missingUsage === undefined ? {} : { missing_usage: missingUsage };

/** @returns the fields of the API that these options set; empty without any of them. @throws {Failure} if they do not fit together. */
export function upstreamIn(options: Values<typeof upstreamOptions>): Partial<ProjectUpstream> {
  if (options.provider === 'default' && options.baseUrl !== undefined) {
    throw usage('--provider default and --base-url exclude each other', {
      why: 'default is UPSTREAM_BASE_URL of the daemon',
    });
  }
  try {
    return upstreamFrom(options);
  } catch (error) {
    if (!(error instanceof UpstreamIncomplete)) throw error;
    throw usage(error.message, {
      advice: 'Add --base-url URL, such as https://RESOURCE.openai.azure.com',
      cause: error,
    });
  }
}

/** The options that describe an upstream. */
export function optionsOf({ upstream_base_url: baseUrl, upstream_auth: auth }: ProjectUpstream): string {
  return `${baseUrl === null ? '--provider default' : `--base-url ${shellWord(baseUrl)}`} --auth ${auth}`;
}
