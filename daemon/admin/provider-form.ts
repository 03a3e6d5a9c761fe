/** Reads the fields of a form for a project's provider. */
import {
  DEFAULT_PROVIDER,
  FORM_PROVIDERS,
  OTHER_PROVIDER,
  type ProjectUpstream,
  upstreamFrom,
  UpstreamIncomplete,
} from '../api/providers.js';
import { type MissingUsage, MISSING_USAGES, UPSTREAM_AUTHS } from '../api/vocabulary.js';
import { formValues, invalidRequest, type PageRequest } from './page-request.js';
import type { ProviderFormValues } from './pages/provider.js';

/** @returns the form as it was sent, or as it begins. */
export function providerForm({ form }: PageRequest, beginning: ProviderFormValues): ProviderFormValues {
  return form.has('provider') ? formValues(form, beginning) : beginning;
}

/** The missing usage of the form, if it has one. */
export function missingUsageOf(given: ProviderFormValues): { missing_usage?: MissingUsage } {
  const chosen = MISSING_USAGES.find((it) => it === given.missing_usage);
  return chosen === undefined ? {} : { missing_usage: chosen };
}

/** The provider of the form. @throws {ApiError} 400 if the fields do not fit together. */
export function upstreamOf(given: ProviderFormValues): Partial<ProjectUpstream> {
  const baseUrl = given.base_url;
  const [provider] = FORM_PROVIDERS.find(([name]) => name === given.provider) ?? [];
  const auth = UPSTREAM_AUTHS.find((it) => it === given.auth);
  if (provider === undefined || auth === undefined) throw invalidRequest('choose a provider');
  if (provider === DEFAULT_PROVIDER && baseUrl !== '') {
    throw invalidRequest('a base URL needs a provider: choose one, or Other');
  }
  try {
    return upstreamFrom({
      provider,
      baseUrl: baseUrl === '' ? undefined : baseUrl,
      auth: provider === OTHER_PROVIDER ? auth : undefined,
    });
  } catch (error) {
    if (!(error instanceof UpstreamIncomplete)) throw error;
    throw invalidRequest(error.message);
  }
}
