/** Linters and validators find no problems in the OpenAPI description. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { DESCRIPTION } from '../support/description.js';
import { npmTools, orPending, pythonTools, run, workFolder } from './tools.js';

describe('the OpenAPI description has no problems', function () {
  this.timeout(600_000);

  function stage(parent: string): string {
    const folder = workFolder(parent);
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(DESCRIPTION));
    return folder;
  }

  it('in Redocly, with its recommended rules', async function () {
    const npm = await orPending(this, 'Redocly', npmTools());
    const redocly = join(npm, 'node_modules/.bin/redocly');
    const { code, output } = await run(redocly, ['lint', '--extends=recommended', '--format=json', 'openapi.json'], {
      cwd: stage(npm),
      env: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    });
    const [, totals = output] = /"totals": (\{[^}]*\})/.exec(output) ?? [];
    expect(totals.replace(/\s/g, ''), output).to.equal('{"errors":0,"warnings":0,"ignored":0}');
    expect(code).to.equal(0);
  });

  it('in Spectral, with its OpenAPI rules', async function () {
    const npm = await orPending(this, 'Spectral', npmTools());
    const folder = stage(npm);
    writeFileSync(join(folder, 'rules.yaml'), 'extends: ["spectral:oas"]\n');
    const spectral = join(npm, 'node_modules/.bin/spectral');
    const options = ['lint', 'openapi.json', '-r', 'rules.yaml', '--fail-severity=hint', '--display-only-failures'];
    const { code, output } = await run(spectral, options, { cwd: folder });
    expect(code, output).to.equal(0);
    expect(output).to.include('No results');
  });

  it('in openapi-spec-validator', async function () {
    const python = await orPending(this, 'openapi-spec-validator', pythonTools());
    const folder = stage(join(python, '../..'));
    const { code, output } = await run(join(python, 'openapi-spec-validator'), ['openapi.json'], { cwd: folder });
    expect({ code, output }).to.deep.equal({ code: 0, output: 'openapi.json: OK\n' });
  });

  it('in Python, which can compile all its patterns', async function () {
    const python = await orPending(this, 'the patterns in Python', pythonTools());
    const folder = stage(join(python, '../..'));
    writeFileSync(
      join(folder, 'patterns.py'),
      `import json, re
def walk(at):
    if isinstance(at, dict):
        if isinstance(at.get("pattern"), str):
            re.compile(at["pattern"])
            print(at["pattern"])
        for value in at.values():
            walk(value)
    elif isinstance(at, list):
        for value in at:
            walk(value)
walk(json.load(open("openapi.json")))
`,
    );
    const { code, output } = await run(join(python, 'python'), ['patterns.py'], { cwd: folder });
    expect(code, output).to.equal(0);
    expect(output.split('\n').length).to.be.greaterThan(5);
  });
});
