/** `llmp token whois`: finds the token of a secret, for example of a leaked one. */
import { command } from '../command.js';
import { EXIT, usage } from '../../console/failure.js';
import { tokenView } from '../../console/views.js';

export const whois = command({
  path: ['manage', 'token', 'whois'],
  summary: 'find the token of a secret',
  examples: [
    ['token whois', 'prompt for the secret'],
    ['token whois -o id < leaked.txt | llmp token revoke - --yes', 'revoke the token of a leaked secret'],
  ],
  options: {},
  async run({ input, output, connect }) {
    const secret = await input.secretFrom('-', 'the secret');
    // Other input, such as a provider's key pasted by mistake, must not be sent anywhere.
    if (!/^sk-wt-[0-9A-Za-z]+$/.test(secret)) {
      throw usage('this is not the secret of a token', { advice: 'Enter only the secret: sk-wt-…' });
    }
    const client = await connect();
    await output.one(await client.lookUpToken({ token: secret }), tokenView);
    return EXIT.done;
  },
});
