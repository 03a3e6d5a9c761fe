/** `llmp token whois`: from a secret that turned up somewhere to the token it belongs to. */
import { command } from '../command.js';
import { EXIT, usage } from '../../console/failure.js';
import { tokenView } from '../../console/views.js';

export const whois = command({
  path: ['manage', 'token', 'whois'],
  summary: 'say which token a secret belongs to',
  examples: [
    ['token whois', 'asks for the secret, and does not show it'],
    ['token whois -o id < leaked.txt | llmp token revoke - --yes', 'revoke the token of a secret that leaked'],
  ],
  options: {},
  async run({ input, output, connect }) {
    const secret = await input.secretFrom('-', 'the secret');
    // Whatever else was pasted, such as a provider's key, is not sent anywhere.
    if (!/^sk-wt-[0-9A-Za-z]+$/.test(secret)) {
      throw usage('this is no secret of a token: it must be sk-wt-… and nothing else', { advice: 'Paste it again' });
    }
    const client = await connect();
    await output.one(await client.lookUpToken({ token: secret }), tokenView);
    return EXIT.done;
  },
});
