/** Handlers of trusts. */
import type { Operations } from '../../api/operations.js';
import { unavailable } from '../../core/refusal.js';
import type { Handlers } from './endpoints.js';

type TrustOperation = 'createTrust' | 'listTrusts' | 'readTrust' | 'updateTrust' | 'deleteTrust';

const missing = () => Promise.reject(unavailable());

export const trustHandlers = (): Handlers<Pick<Operations, TrustOperation>> => ({
  createTrust: missing,
  listTrusts: missing,
  readTrust: missing,
  updateTrust: missing,
  deleteTrust: missing,
});
