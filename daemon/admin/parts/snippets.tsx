/**
 * Code examples for a new token. They do not contain the secret, to keep it out of files and of the shell history. Shell examples have
 * no comments, because zsh does not accept comments at its prompt, and quote the URL, because zsh expands the brackets of an IPv6 address.
 */
import type { ReactNode } from 'react';

const KEY = 'OPENAI_API_KEY';

export interface Snippet {
  id: 'environment' | 'curl' | 'node' | 'python';
  title: string;
  /** What the example needs. */
  hint: ReactNode;
  text: string;
}

/** @param model that the token may use. */
export const snippetsFor = (baseUrl: string, model = 'gpt-4o-mini'): readonly Snippet[] => [
  {
    id: 'environment',
    title: 'Environment',
    hint: 'For bash and zsh. It asks for the secret and does not show it. The other examples, and most clients, read these variables.',
    text: `export OPENAI_BASE_URL='${baseUrl}'\nprintf 'Token: '; read -rs ${KEY}; export ${KEY}; echo`,
  },
  {
    id: 'curl',
    title: 'curl',
    hint: 'In the same shell.',
    text: `curl '${baseUrl}/chat/completions' \\\n  -H "Authorization: Bearer $${KEY}" \\\n  -H 'Content-Type: application/json' \\\n  -d '{"model": "${model}",\n       "messages": [{"role": "user", "content": "Hello"}]}'`,
  },
  {
    id: 'node',
    title: 'Node',
    hint: (
      <>
        Save it as <code>ask.mjs</code>, after <code>npm install openai</code>.
      </>
    ),
    text: `import OpenAI from 'openai';

// The token comes from ${KEY}.
const client = new OpenAI({ baseURL: '${baseUrl}' });
const response = await client.chat.completions.create({
  model: '${model}',
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(response.choices[0].message.content);`,
  },
  {
    id: 'python',
    title: 'Python',
    hint: (
      <>
        Save it as <code>ask.py</code>, after <code>pip install openai</code>.
      </>
    ),
    text: `from openai import OpenAI

# The token comes from ${KEY}.
client = OpenAI(base_url="${baseUrl}")
response = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(response.choices[0].message.content)`,
  },
];

export function Snippets({ baseUrl, model }: { baseUrl: string; model?: string | undefined }) {
  return (
    <section aria-labelledby="snippets-title">
      <h2 id="snippets-title">Use it</h2>
      <p className="hint">
        Clients use <code>{baseUrl}</code> as their base URL. If llmp has a reverse proxy in front, use the address of
        the proxy.{model === undefined ? ' Replace the model by one of your provider.' : ''}
      </p>
      <div className="snippets">
        {snippetsFor(baseUrl, model).map(({ id, title, hint, text }) => (
          <div key={id}>
            <div className="section-head">
              <h3 id={`${id}-title`}>{title}</h3>
              <button type="button" className="quiet" data-copy={`snippet-${id}`} aria-label={`Copy: ${title}`} hidden>
                Copy
              </button>
            </div>
            <pre id={`snippet-${id}`} tabIndex={0} role="region" aria-labelledby={`${id}-title`}>
              {text}
            </pre>
            <p className="hint">{hint}</p>
          </div>
        ))}
      </div>
    </section>
  );
}
