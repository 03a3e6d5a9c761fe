/**
 * Code examples for a new token. They do not contain the secret, to keep it out of files and of the shell history. Shell examples have
 * no comments, because zsh does not accept comments at its prompt.
 */

const KEY = 'OPENAI_API_KEY';

const snippetsFor = (baseUrl: string) =>
  [
    {
      id: 'environment',
      title: 'Environment',
      text: `export OPENAI_BASE_URL=${baseUrl}\nprintf 'Token: '; read -rs ${KEY}; export ${KEY}`,
    },
    {
      id: 'curl',
      title: 'curl',
      text: `curl ${baseUrl}/chat/completions \\\n  -H "Authorization: Bearer $${KEY}" \\\n  -H 'Content-Type: application/json' \\\n  -d '{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello"}]}'`,
    },
    {
      id: 'node',
      title: 'Node',
      text: `import OpenAI from 'openai';

// The token comes from ${KEY}.
const client = new OpenAI({ baseURL: '${baseUrl}' });
const response = await client.chat.completions.create({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(response.choices[0].message.content);`,
    },
    {
      id: 'python',
      title: 'Python',
      text: `from openai import OpenAI

# The token comes from ${KEY}.
client = OpenAI(base_url="${baseUrl}")
response = client.chat.completions.create(
    model="gpt-4o-mini",
    messages=[{"role": "user", "content": "Hello"}],
)
print(response.choices[0].message.content)`,
    },
  ] as const;

export function Snippets({ baseUrl }: { baseUrl: string }) {
  return (
    <section className="snippets" aria-labelledby="snippets-title">
      <h2 id="snippets-title">Use it</h2>
      <p className="hint">
        Clients use <code>{baseUrl}</code> as their base URL. If llmp has a reverse proxy in front, use the address of
        the proxy.
      </p>
      {snippetsFor(baseUrl).map(({ id, title, text }) => (
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
        </div>
      ))}
    </section>
  );
}
