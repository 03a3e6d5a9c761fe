/** `llmp token exchange`: a token for the JWT of a job or pod, which holds no secret of llmp. */
import { EXIT, usage } from '../../console/failure.js';
import type { View } from '../../console/table.js';
import { visible } from '../../console/escape.js';
import { spanShown } from '../../console/span.js';
import { command } from '../command.js';
import { connectionTo } from '../connection/connection.js';
import { type Exchanged, exchanged, jwtIn, jwtOptions } from '../connection/exchange.js';

export const exchange = command({
  path: ['manage', 'token', 'exchange'],
  ignores: ['managementToken', 'managementTokenFile', 'reason'],
  summary: 'exchange the JWT of a job or pod for a token, without a management token',
  examples: [
    ['token exchange --jwt-file /var/run/secrets/llmp/token -q', 'print only the secret, in a Kubernetes pod'],
    ['token exchange --audience llmp -q', 'the same in GitHub Actions, which is asked for the JWT'],
    ['token exchange --jwt-file jwt.txt -o json', 'print the response of RFC 8693'],
  ],
  options: jwtOptions,
  prints: () => exchangedView.fields,
  async run(invocation) {
    const { options, output } = invocation;
    if (output.format === 'id' && !output.isQuiet) {
      throw usage('a token that was exchanged has no ID for its holder', { advice: 'Use -q to print the secret' });
    }
    const connection = connectionTo(invocation);
    const jwt = await jwtIn(options, invocation, connection.timeoutMs);
    if (connection.server.isClearText) {
      output.warn(`the JWT is sent to ${connection.server.shown} in clear text; use https`);
    }
    const token = await exchanged(connection, jwt);
    if (output.isQuiet && output.format !== 'jq' && output.format !== 'template') {
      output.text(visible(token.access_token));
      return EXIT.done;
    }
    await output.one(token, exchangedView);
    output.note('The secret is not shown again. It ends by itself; DELETE /token/self ends it at once.');
    return EXIT.done;
  },
});

const exchangedView: View<Exchanged> = {
  idOf: () => '',
  fields: ['access_token', 'expires_in', 'token_type', 'issued_token_type'],
  columns: [],
  details: { expires_in: ({ expires_in: s }) => `${s} (${spanShown(s * 1000)})` },
};
