/** Handlers of trusts and log-ins. */
import type { Operations } from '../../api/operations.js';
import { unavailable } from '../../core/refusal.js';
import type { Handlers } from './endpoints.js';

type TrustOperation = 'createTrust' | 'listTrusts' | 'readTrust' | 'updateTrust' | 'deleteTrust';
type LoginOperation = 'readLogin' | 'beginWebLogin' | 'finishWebLogin' | 'beginDeviceLogin' | 'finishDeviceLogin';

const missing = () => Promise.reject(unavailable());

export const trustHandlers = (): Handlers<Pick<Operations, TrustOperation>> => ({
  createTrust: missing,
  listTrusts: missing,
  readTrust: missing,
  updateTrust: missing,
  deleteTrust: missing,
});

export const loginHandlers = (): Handlers<Pick<Operations, LoginOperation>> => ({
  readLogin: () => Promise.resolve({ issuer: null }),
  beginWebLogin: missing,
  finishWebLogin: missing,
  beginDeviceLogin: missing,
  finishDeviceLogin: missing,
});
