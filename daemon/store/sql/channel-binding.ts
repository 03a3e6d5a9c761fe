/**
 * `channel_binding` of DATABASE_URL. The password is then proven for this TLS connection only, so that nobody in between can pass the
 * proof on. The driver of PostgreSQL uses it where the server offers it; `require` has to be enforced here.
 */
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type { DatabaseServerAddress } from '../../../config/database-url.js';

export type ChannelBinding = DatabaseServerAddress['channelBinding'];

/** The code of the error if the server does not do what is required. */
export const NOT_BOUND = 'ERR_CHANNEL_BINDING';

const BINDING_MECHANISM = 'SCRAM-SHA-256-PLUS';

/** Options of the driver that Sequelize does not pass on. */
export const bindingOptions = (channelBinding: ChannelBinding): object =>
  channelBinding === 'disable' ? {} : { enableChannelBinding: true };

/** The part of the driver's connection that announces how the server wants to authenticate the client. */
interface Wire extends EventEmitter {
  stream: Socket;
}

/** Makes a connection that is not open yet fail unless the server binds the log-in to it, if that is required. @returns the client. */
export function bound<Client>(client: Client, channelBinding: ChannelBinding): Client {
  const wire = (client as { connection?: Wire }).connection;
  if (channelBinding !== 'require' || !wire) return client;
  let isBound = false;
  let hasProof = false;
  const refuse = () => {
    const why = 'the server does not bind the log-in to the TLS connection';
    // At once: the server may have said already, in the same packet, that it is ready.
    wire.emit('error', Object.assign(new Error(why), { code: NOT_BOUND }));
    wire.stream.destroy();
  };
  // Before the listeners of the driver, which would send the password.
  wire.prependListener('authenticationSASL', ({ mechanisms }: { mechanisms: readonly string[] }) => {
    isBound = mechanisms.includes(BINDING_MECHANISM);
    if (!isBound) refuse();
  });
  for (const other of ['authenticationCleartextPassword', 'authenticationMD5Password'])
    wire.prependListener(other, refuse);
  // The driver checks the proof. Without this, a server that sends none would be believed.
  wire.prependListener('authenticationSASLFinal', () => {
    hasProof = isBound;
  });
  wire.prependListener('authenticationOk', () => {
    if (!hasProof) refuse();
  });
  return client;
}
