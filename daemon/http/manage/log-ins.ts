/** Handlers of the log-in of people with the company's identity provider. */
import type { Operations } from '../../api/operations.js';
import { Refusal } from '../../core/refusal.js';
import type { Sessions } from '../../core/sessions.js';
import type { LogIns } from '../../oidc/log-ins.js';
import type { Handlers } from './endpoints.js';
import { wireSession } from './wire.js';

type Started = Awaited<ReturnType<Sessions['beginForPerson']>>;

export interface LogInOptions {
  /** Null if people do not log in with an identity provider. */
  logIns: LogIns<Started> | null;
}

type LogInOperation = 'readLogin' | 'beginWebLogin' | 'finishWebLogin' | 'beginDeviceLogin' | 'finishDeviceLogin';

export function logInHandlers({ logIns }: LogInOptions): Handlers<Pick<Operations, LogInOperation>> {
  const configured = () => {
    if (logIns) return logIns;
    throw new Refusal('not_found', 'people cannot log in here: OIDC_ISSUER is not set');
  };
  return {
    readLogin: () => Promise.resolve({ issuer: logIns?.issuer ?? null }),

    // `async`, so that a refusal rejects the promise, as in the other handlers.
    beginWebLogin: async () => configured().beginWeb(),

    finishWebLogin: async ({ body, caller }) => {
      const { session } = await configured().finishWeb(body.state, body.query, caller);
      return wireSession(session);
    },

    beginDeviceLogin: async ({ caller }) => {
      const begun = await configured().beginDevice(caller);
      return {
        device_code: begun.step,
        user_code: begun.userCode,
        verification_uri: begun.verificationUri,
        verification_uri_complete: begun.verificationUriComplete,
        expires_in: begun.expiresInSeconds,
        interval: begun.intervalSeconds,
      };
    },

    finishDeviceLogin: async ({ body, caller }) => {
      const { session, secret } = await configured().finishDevice(body.device_code, caller);
      if (secret === null) throw new Error('a session of a command line has a secret');
      return { ...wireSession(session), secret };
    },
  };
}
