/**
 * How a new token is used. The secret itself is in none of these: it stays out of files and of the shell's history. What is for a shell
 * holds no comment, because zsh takes none at its prompt.
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
const answer = await client.chat.completions.create({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(answer.choices[0].message.content);`,
    },
    {
      id: 'python',
      title: 'Python',
      text: `from openai import OpenAI

# The token comes from ${KEY}.
client = OpenAI(base_url="${baseUrl}")
answer = client.chat.completions.create(
    model="gpt-4o-mini",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,
    },
  ] as const;

export function Snippets({ baseUrl }: { baseUrl: string }) {
  return (
    <section className="snippets" aria-labelledby="snippets-title">
      <h2 id="snippets-title">Use it</h2>
      <p className="hint">
        Clients use <code>{baseUrl}</code> as their base URL. Where a proxy stands in front, use its address instead.
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
