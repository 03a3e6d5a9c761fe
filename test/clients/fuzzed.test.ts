/** Requests made up from the description, by schemathesis: what it finds is nothing but what is listed here as its opinion. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { DESCRIPTION } from '../support/description.js';
import { startServer, type Server } from './server.js';
import { orPending, pythonTools, run, workFolder } from './tools.js';

const FORBIDDEN = 'ST401';
const ACCEPTED = 'ST201';
const REJECTED = 'ST202';

/** What it reports and is as it should be: its code, what stands in the report, and why it is no defect. */
const OPINIONS: [code: string, said: RegExp, why: string][] = [
  [FORBIDDEN, /too_many_attempts/, 'whoever tries one wrong credential after the other is slowed down with 429'],
  [REJECTED, /cursor must be the cursor of a Link header/, 'a cursor is made by the daemon; nobody can make one up'],
  [REJECTED, /since must not be after until/, 'a rule between two parameters, which OpenAPI can only say in words'],
  [REJECTED, /active_only and state contradict/, 'likewise'],
  [
    REJECTED,
    /give exactly one of method with url/,
    'likewise between fields: said in words, because generators fail at more',
  ],
  [REJECTED, /duration_hours and duration_minutes exclude each other/, 'likewise'],
  [
    REJECTED,
    /(?:since|until|expires_after|expires_before) must be an RFC 3339 timestamp/,
    'a pattern cannot say which days a month has',
  ],
  [
    REJECTED,
    /q must be .* a letter or a digit among them/,
    'no pattern that all engines read can say what a letter is',
  ],
  [REJECTED, /name must be .* not only spaces/, 'engines differ in what a space is, and few know line separators'],
  [REJECTED, /words must be/, 'engines differ in what a space is'],
  [
    REJECTED,
    /url must be a path under \/v1 in its plain form/,
    'a pattern cannot say what the plain form of a path is',
  ],
  [REJECTED, /Last-Event-ID must be/, 'such an id is made by the daemon; nobody can make one up'],
  [
    ACCEPTED,
    /parameter `(?:project_id|token_id)` in query/,
    'a filter by what is no id finds nothing, as older clients know it',
  ],
];

/** What it says of requests, one by one. */
const findings = (output: string): { code: string; said: string }[] =>
  Array.from(output.matchAll(/^- (ST\d+) [\s\S]*?st replay/gm), ([said, code = '']) => ({ code, said }));

describe('requests made up from the description', function () {
  this.timeout(600_000);
  let server: Server;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  it('find nothing but what is listed as an opinion, and no error in the log (finding H9) (finding H11)', async function () {
    const python = await orPending(this, 'what schemathesis finds', pythonTools());
    const folder = workFolder(join(python, '../..'));
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(DESCRIPTION));
    // By the environment, because everybody can read a command line.
    const settings = [
      'headers = { Authorization = "Bearer ${LLMP_TOKEN}" }',
      // Rules that only words can say; each request would fail by them.
      'parameters = { "header.X-Llmp-Client-IP" = "192.0.2.10", "header.X-Audit-Reason" = "a%20test" }',
      'seed = 1',
    ];
    writeFileSync(join(folder, 'schemathesis.toml'), settings.join('\n'));
    // Streams go on for ever.
    const without = ['streamEvents', 'followAudit'].flatMap((id) => ['--exclude-operation-id', id]);
    const bounds = ['--max-examples', '8', '--request-timeout', '10', '--phases', 'examples,coverage,fuzzing'];
    const options = ['run', 'openapi.json', '--url', server.url, '--no-color', '--continue-on-failure'];
    const { output } = await run(join(python, 'schemathesis'), [...options, ...bounds, ...without], {
      cwd: folder,
      env: server.env,
      timeoutMs: 400_000,
    });
    expect(output, 'a whole run').to.match(/[1-9]\d* generated/);
    const found = findings(output);
    const unexpected = found.filter(
      ({ code, said }) => !OPINIONS.some(([of, pattern]) => of === code && pattern.test(said)),
    );
    expect(unexpected.map(({ said }) => said)).to.deep.equal([]);
    const counted = Array.from(output.matchAll(/^ {2}❌ ST\d+ .*: (\d+)$/gm), ([, count]) => Number(count));
    expect(found.length, 'findings that were read').to.equal(counted.reduce((sum, count) => sum + count, 0));
    expect(server.errors()).to.deep.equal([]);
  });
});
