import { expect } from 'chai';
import { JsonModels } from '../../../daemon/core/policy/json-models.js';

function read(body: string | Buffer, cut?: number): JsonModels {
  const bytes = Buffer.from(body as string);
  const models = new JsonModels();
  if (cut === undefined) models.add(bytes);
  else {
    models.add(bytes.subarray(0, cut));
    models.add(bytes.subarray(cut));
  }
  models.end();
  return models;
}

const isObject = (value: unknown): value is Partial<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown) => typeof value === 'string';

const found = ({ names, problem, isInBackground }: JsonModels) => ({ names, problem, isInBackground });

describe('the models that a JSON body names', () => {
  it('are those of model, session.model and models', () => {
    for (const [body, names] of [
      ['{"model":"a"}', ['a']],
      [' {\n"x" : [1, {"model":"no"}] , "model"\t:\r"a" } \n', ['a']],
      ['{"session":{"model":"a","x":{"model":"no"}},"model":"b"}', ['a', 'b']],
      ['{"models":["a","b"],"x":["no"]}', ['a', 'b']],
      ['{"models":[]}', []],
      ['{"models":null,"model":null,"session":null}', []],
      ['{"model_id":"a","x":{"model_id":"no"}}', ['a']],
      ['{"session":"model"}', []],
      ['{"session":["model"]}', []],
      ['{"metadata":{"model":"no"},"messages":[{"model":"no"}]}', []],
      ['{"model":"\\u0067pt-\\"5\\"\\/ä"}', ['gpt-"5"/ä']],
      ['{}', []],
    ] as const) {
      for (let cut = 0; cut <= Buffer.byteLength(body); cut++) {
        expect(found(read(body, cut)), `${body} ${cut}`).to.deep.include({ names, problem: null });
      }
    }
  });

  it('are apart from those that tools name', () => {
    for (const [body, names, namesOfTools] of [
      ['{"model":"a","tools":[{"type":"x","model":"t"},{"function":{"model":"no"}},{"model":"u"}]}', ['a'], ['t', 'u']],
      ['{"tools":[[{"model":"no"}],"model",{"model":null}],"model":"a"}', ['a'], []],
      ['{"tools":{"model":"no"},"session":{"tools":[{"model":"t"}],"model":"a"},"models":["b"]}', ['a', 'b'], ['t']],
    ] as const) {
      for (let cut = 0; cut <= Buffer.byteLength(body); cut++) {
        expect(read(body, cut), `${body} ${cut}`).to.deep.include({ names, namesOfTools, problem: null });
      }
    }
    expect(read('{"tools":[{"model":"a","model":"b"}]}').problem).to.contain('repeated');
    expect(read('{"tools":[{"Model":"a"}]}').problem).to.contain('its own letters');
  });

  it('are not known if it names an agent', () => {
    for (const [body, isUncheckable] of [
      ['{"model":"a","agent_id":"ag:1"}', true],
      ['{"agent_id":{}}', true],
      ['{"model":"a","agent_id":null}', false],
      ['{"model":"a","x":{"agent_id":"no"}}', false],
    ] as const) {
      for (let cut = 0; cut <= body.length; cut++) {
        expect(read(body, cut), `${body} ${cut}`).to.deep.include({ isUncheckable, problem: null });
      }
    }
    expect(read('{"agent_id":null,"agent_id":"a"}').problem).to.contain('repeated');
  });

  it('are not looked for in a body that can be read in several ways', () => {
    for (const body of [
      '{"model":"a","model":"a"}',
      '{"model":"a","x":1,"model":"b"}',
      '{"mod\\u0065l":"a"}',
      '{"\\u006dodel":"a","model":"a"}',
      '{"Model":"a"}',
      '{"MODELS":["a"]}',
      '{"ſession":{"model":"a"}}',
      '{"bac\u212aground":true}',
      '{"session":{"model":"a","model":"b"}}',
      '{"session":{"mode\\u006c":"a"}}',
      '{"session":{},"session":{"model":"a"}}',
      '{"background":false,"background":true}',
      '{"b\\u0061ckground":true}',
      '{"model":1}',
      '{"model":["a"]}',
      '{"model":{"x":1}}',
      '{"models":"a"}',
      '{"models":[1]}',
      '{"models":["a",["b"]]}',
      `{"model":"${'a'.repeat(1_201)}"}`,
      `{"models":[${Array(101).fill('"a"').join()}]}`,
      '[{"model":"a"}]',
      '"model"',
      '',
      '{"model":"a"',
      '{"model":"a"}x',
      '{"model":"a"}{"model":"b"}',
      "{'model':'a'}",
      '{model:"a"}',
      '{"model":"a",}',
      '{"x":NaN,"model":"a"}',
      '{"x":01}',
      '{"x":+1}',
      '{"x":.5}',
      '{"x":"\n"}',
      '{"x":"\\x"}',
      '/**/{"model":"a"}',
      '\ufeff{"model":"a"}',
      Buffer.from('{"x":"\xff","model":"a"}', 'latin1'),
      Buffer.from('{"mod\xffel":"a"}', 'latin1'),
      Buffer.from('{"model":"a"}', 'utf16le'),
      `{"x":${'['.repeat(1_001)}${']'.repeat(1_001)}}`,
    ]) {
      const bytes = Buffer.from(body as string);
      for (let cut = 0; cut <= Math.min(bytes.length, 80); cut++) {
        expect(read(bytes, cut).problem, `${bytes.toString()} ${cut}`).to.be.a('string');
      }
    }
  });

  it('include whether the response is made in the background', () => {
    for (const [value, isInBackground] of [
      ['true', true],
      ['1', true],
      ['"true"', true],
      ['{}', true],
      ['false', false],
      ['null', false],
    ] as const) {
      expect(read(`{"background":${value}}`)).to.include({ isInBackground, problem: null });
    }
    expect(read('{"x":{"background":true}}').isInBackground).to.equal(false);
  });

  it('are known when their last byte has passed', () => {
    const models = new JsonModels();
    models.add(Buffer.from('{"model":"a'));
    expect(models.names).to.deep.equal([]);
    models.add(Buffer.from('"'));
    expect(models).to.deep.include({ names: ['a'], isComplete: false });
    models.add(Buffer.from('}'));
    expect(models.isComplete).to.equal(true);
  });

  // ---- against JSON.parse

  let seed = 1;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const one = <T>(...of: T[]): T => of[random(of.length)] as T;
  const space = () => one('', '', '', ' ', '\n', '\t ', '\r');
  const text = () =>
    one(
      'a',
      'model',
      'gpt-5',
      '',
      'ä€😀',
      '\\"',
      '\\u0041',
      '\\ud83d\\ude00',
      '\\n\\/',
      '{"model":"x"}'.replaceAll('"', '\\"'),
    );
  const key = () =>
    one('model', 'models', 'session', 'background', 'tools', 'x', 'stream', 'Model', 'mod\\u0065l', 'messages', '');
  const number = () => one('0', '-0', '12', '1.5', '-1e9', '2E+3', '0.0e-1');
  function value(depth: number): string {
    const kind = depth > 4 ? random(4) : random(7);
    const inner = () => space() + value(depth + 1) + space();
    if (kind === 0) return number();
    if (kind === 1) return one('true', 'false', 'null');
    if (kind < 4) return `"${text()}"`;
    if (kind === 4) return `[${Array.from({ length: random(4) }, inner).join(',')}${space()}]`;
    return object(depth);
  }
  const object = (depth: number): string =>
    `{${Array.from({ length: random(5) }, () => `${space()}"${key()}"${space()}:${space()}${value(depth + 1)}${space()}`).join(',')}${space()}}`;
  /** Sometimes damaged in one place. */
  function body(): string {
    const whole = space() + (random(10) === 0 ? value(0) : object(0)) + space();
    if (random(3) > 0) return whole;
    const at = random(whole.length + 1);
    return one(
      whole.slice(0, at),
      whole.slice(0, at) + one(',', '"', '}', ']', '{', ':', '\\', '0', 'e', '-', 'n', '\u0001') + whole.slice(at),
      whole.slice(0, at) + whole.slice(at + 1),
    );
  }
  const parsed = (json: string): unknown => {
    try {
      return JSON.parse(json) as unknown;
    } catch {
      return undefined;
    }
  };

  it('are those that JSON.parse finds, and what it refuses is refused, in 100,000 bodies cut anywhere', function () {
    this.timeout(120_000);
    let read_ = 0;
    for (let n = 0; n < 100_000; n++) {
      const json = body();
      const bytes = Buffer.from(json);
      const cut = n % 100 === 0 ? undefined : random(bytes.length + 1);
      const models = read(bytes, cut);
      const meant = parsed(json);
      if (meant === undefined) {
        expect(models.problem, json).to.be.a('string');
        continue;
      }
      if (models.problem !== null) {
        expect(models.problem, json).not.to.match(/^the body is not JSON$|not complete|UTF-8/);
        continue;
      }
      read_ += 1;
      const of = meant as Partial<Record<string, unknown>>;
      const session = isObject(of.session) ? of.session : {};
      const names = [of.model, session.model, ...(Array.isArray(of.models) ? (of.models as unknown[]) : [])];
      const tools = [of.tools, session.tools].flatMap((each) => (Array.isArray(each) ? (each as unknown[]) : []));
      const namesOfTools = tools.filter(isObject).map(({ model }) => model);
      expect([...models.names].sort(), json).to.deep.equal(names.filter(isText).sort());
      expect([...models.namesOfTools].sort(), json).to.deep.equal(namesOfTools.filter(isText).sort());
      const asked = [of.background, session.background].some((it) => ![false, null, undefined].includes(it as null));
      expect(models.isInBackground, json).to.equal(asked);
      if (n % 100 === 0) {
        const whole = found(models);
        for (let each = 0; each <= bytes.length; each++)
          expect(found(read(bytes, each)), `${json} ${each}`).to.deep.equal(whole);
      }
    }
    expect(read_, 'bodies that were read').to.be.greaterThan(20_000);
  });
});
