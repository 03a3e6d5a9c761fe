import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { FINDINGS } from './findings.js';

const FOLDER = resolve(import.meta.dirname, '../../../test');

describe('the findings of the field test', () => {
  it('are each named by a test', () => {
    const named = new Set<string>();
    for (const file of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })) {
      if (!/\.(?:test|system|measured|suite|long)\.tsx?$/.test(file)) continue;
      for (const [, id = ''] of readFileSync(join(FOLDER, file), 'utf8').matchAll(/finding ([A-H]\d+)\b/g))
        named.add(id);
    }
    expect(Object.keys(FINDINGS).filter((id) => !named.has(id))).to.deep.equal([]);
    expect([...named].filter((id) => !(id in FINDINGS))).to.deep.equal([]);
  });
});
