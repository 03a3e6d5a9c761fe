/** `llmp token whois`: from a secret that turned up somewhere to the token it belongs to. */
import { command } from '../command.js';
import { EXIT, usage } from '../../console/failure.js';
import { tokenView } from '../../console/views.js';

export const whois = command({
  path: ['manage', 'token', 'whois'],
  summary: 'find the token of a secret',
  examples: [
    ['token whois', 'prompts for the secret'],
    ['token whois -o id < leaked.txt | llmp token revoke - --yes', 'revoke the token of a secret that leaked'],
  ],
  options: {},
  async run({ input, output, connect }) {
    const secret = await input.secretFrom('-', 'the secret');
    // Whatever else was pasted, such as a provider's key, is not sent anywhere.
    if (!/^sk-wt-[0-9A-Za-z]+$/.test(secret)) {
      throw usage('this is not the secret of a token: expected sk-wt-… and nothing else', { advice: 'Paste it again' });
    }
    const client = await connect();
    await output.one(await client.lookUpToken({ token: secret }), tokenView);
    return EXIT.done;
  },
});
