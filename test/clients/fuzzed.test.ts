/** Fuzzing with Schemathesis, which generates requests from the OpenAPI description. Only the findings listed here are allowed. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { DESCRIPTION } from '../support/description.js';
import { type Provider, startProvider } from '../support/provider.js';
import { startServer, type Server } from './server.js';
import { orPending, pythonTools, run, workFolder } from './tools.js';

const FORBIDDEN = 'ST401';
const ACCEPTED = 'ST201';
const REJECTED = 'ST202';

/** Findings that are not defects: code, text of the report, and why the behaviour is correct. */
const ALLOWED_FINDINGS: [code: string, text: RegExp, why: string][] = [
  [FORBIDDEN, /too_many_attempts/, 'repeated wrong credentials are rate-limited with 429'],
  [REJECTED, /cursor must be the cursor of a Link header/, 'a cursor comes from the daemon and cannot be generated'],
  [REJECTED, /since must not be after until/, 'a rule between two parameters, which OpenAPI can express only as text'],
  [REJECTED, /active_only and state contradict/, 'likewise'],
  [
    REJECTED,
    /give exactly one of: method with url/,
    'a rule between fields: expressed as text, because generators do not support more',
  ],
  [REJECTED, /budget must be an object with usd/, 'likewise, and no portable pattern can express a number above 0'],
  [REJECTED, /give either duration_hours or duration_minutes/, 'likewise'],
  ['ST101', /\[502\][\s\S]*key_not_checked/, 'a generated base URL leads to no provider that could check a key'],
  [REJECTED, /upstream_base_url must/, 'rules of URLs beyond a pattern'],
  [REJECTED, /another host, which must not get the stored key/, 'a rule between fields and the stored project'],
  [REJECTED, /check_key requires api_key|nothing to change: give at least one of/, 'likewise'],
  [REJECTED, /an undo must not have the ID of the batch itself/, 'a rule between a header and the path'],
  [REJECTED, /keep_tokens is for a deactivation/, 'a rule between a parameter and the body'],
  [REJECTED, /match needs a claim that identifies/, 'a rule between the names and the values of claims'],
  [REJECTED, /jwks_file needs the setting JWKS_DIR/, 'a rule between a field and the settings of the daemon'],
  [REJECTED, /project_id is required/, 'required unless `like` is given: likewise a rule between fields'],
  [
    REJECTED,
    /(?:since|until|expires_at|expires_after|expires_before|created_after|created_before) must be an RFC 3339 timestamp/,
    'a pattern cannot express the number of days in a month',
  ],
  [REJECTED, /q must be .* at least one letter or digit/, 'no portable pattern can express what a letter is'],
  [
    REJECTED,
    /name must be .* not only spaces/,
    'regular expression engines differ in what a space is, and few support line separators',
  ],
  [REJECTED, /words must be/, 'regular expression engines differ in what a space is'],
  [REJECTED, /url must be a path that is forwarded/, 'a pattern cannot express the plain form of a path'],
  [REJECTED, /\[412\][\s\S]*precondition_failed/, 'a generated ETag is that of no version'],
  [REJECTED, /Last-Event-ID must be/, 'the ID comes from the daemon and cannot be generated'],
  [
    'ST204',
    /Unsupported method DELETE returned 400[\s\S]*unknown field/,
    'a body that no operation accepts is rejected before the method, which is 405 without one',
  ],
  [
    ACCEPTED,
    /parameter `(?:project_id|token_id)` in query/,
    'a filter by an invalid ID matches nothing, as one by an unknown ID does',
  ],
];

/** The findings in the report. */
const findings = (output: string): { code: string; text: string }[] =>
  Array.from(output.matchAll(/^- (ST\d+) [\s\S]*?st replay/gm), ([text, code = '']) => ({ code, text }));

describe('requests generated from the OpenAPI description', function () {
  this.timeout(600_000);
  let provider: Provider;
  let server: Server;
  before(async () => {
    // It accepts every key that is to be checked.
    provider = await startProvider();
    server = await startServer(provider.url);
  });
  after(async () => {
    await server.stop();
    await provider.stop();
  });

  it('cause only allowed findings, and no errors in the log', async function () {
    const python = await orPending(this, 'what schemathesis finds', pythonTools());
    const folder = workFolder(join(python, '../..'));
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(DESCRIPTION));
    // The token is passed in the environment, because other users can read a command line.
    const settings = [
      'headers = { Authorization = "Bearer ${LLMP_TOKEN}" }',
      // Headers with rules that OpenAPI can express only as text; otherwise every request would fail.
      'parameters = { "header.X-Llmp-Client-IP" = "192.0.2.10", "header.X-Audit-Reason" = "a%20test", "header.X-Llmp-User" = "ana@laptop" }',
      'seed = 1',
    ];
    writeFileSync(join(folder, 'schemathesis.toml'), settings.join('\n'));
    // Streams do not end.
    const without = ['streamEvents', 'followAudit'].flatMap((id) => ['--exclude-operation-id', id]);
    const bounds = ['--max-examples', '8', '--request-timeout', '10', '--phases', 'examples,coverage,fuzzing'];
    const options = ['run', 'openapi.json', '--url', server.url, '--no-color', '--continue-on-failure'];
    const { output } = await run(join(python, 'schemathesis'), [...options, ...bounds, ...without], {
      cwd: folder,
      env: server.env,
      timeoutMs: 400_000,
    });
    expect(output, 'complete run').to.match(/[1-9]\d* generated/);
    const found = findings(output);
    const unexpected = found.filter(
      ({ code, text }) => !ALLOWED_FINDINGS.some(([of, pattern]) => of === code && pattern.test(text)),
    );
    expect(unexpected.map(({ text }) => text)).to.deep.equal([]);
    const counted = Array.from(output.matchAll(/^ {2}❌ ST\d+ .*: (\d+)$/gm), ([, count]) => Number(count));
    expect(found.length, 'parsed findings').to.equal(counted.reduce((sum, count) => sum + count, 0));
    expect(server.errors()).to.deep.equal([]);
  });
});
