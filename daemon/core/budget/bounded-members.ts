/**
 * The members that a request with a bound can have, for each API. None of them raises the cost beyond the bound. A request with any other
 * member has no bound: a list of the members that do raise the cost would be incomplete with the provider's next release.
 */
import { Reading } from './reading.js';

/** Checks a value, and notes what the bound depends on. */
export type Check = (value: unknown, reading: Reading) => void;
type Checks = Readonly<Record<string, Check>>;

// ---- what values may be

/** Any value: it has no more tokens than bytes. */
const plain: Check = (value, reading) => {
  reading.pass(value);
};
/** Data that a provider may write in another way before the model reads it: with indents, tags or escapes. */
const data: Check = (value, reading) => {
  reading.passData(value);
};
/** A string that a provider may write in another way. */
const result: Check = (value, reading) => {
  if (typeof value === 'string') reading.passText(value);
  else reading.passData(value);
};
/** A string with JSON in it, which a provider may parse. */
const json: Check = (value, reading) => {
  if (typeof value === 'string') reading.passJson(value);
  else reading.passData(value);
};
const text: Check = (value, reading) => {
  if (typeof value !== 'string') reading.refuse('a text is not a string');
};

/** It must be absent, null or false. */
const never =
  (why: string): Check =>
  (value, reading) => {
    if (value !== false) reading.refuse(why);
    reading.pass(value);
  };

const oneOf =
  (name: string, ...values: string[]): Check =>
  (value, reading) => {
    if (!values.includes(value as string)) reading.refuse(`${name} may cost more than the price`);
    reading.pass(value);
  };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object with no other members than these. Null is the same as no member. */
const object = (checks: Checks): Check => {
  const known = new Map(Object.entries(checks));
  return (value, reading) => {
    if (!isObject(value)) {
      reading.refuse('an object is expected where there is none');
      reading.pass(value);
      return;
    }
    for (const name in value) {
      reading.members += 1;
      const check = known.get(name);
      const member = value[name];
      if (check === undefined) {
        reading.refuseMember(name);
        reading.pass(member);
      } else if (member !== null) check(member, reading);
    }
  };
};

const listOf =
  (check: Check): Check =>
  (value, reading) => {
    if (Array.isArray(value)) for (const entry of value) check(entry, reading);
    else {
      reading.refuse('a list is expected where there is none');
      reading.pass(value);
    }
  };

const textOr =
  (check: Check): Check =>
  (value, reading) => {
    if (typeof value !== 'string') check(value, reading);
  };

/** Objects of several kinds, by their `type`. @param untyped the kind of those without it. */
const typed = (what: string, kinds: Readonly<Record<string, Checks>>, untyped: Check | null = null): Check => {
  const known = new Map(Object.entries(kinds).map(([kind, checks]) => [kind, object({ type: plain, ...checks })]));
  return (value, reading) => {
    const type = isObject(value) ? (value.type ?? null) : undefined;
    const check = type === null ? untyped : typeof type === 'string' ? known.get(type) : undefined;
    if (check) check(value, reading);
    else {
      reading.refuse(`${what} ${typeof type === 'string' ? reading.shown(type) : 'without a type'} is not known`);
      reading.pass(value);
    }
  };
};

const allOf = (names: string): Record<string, Check> =>
  Object.fromEntries(names.split(' ').map((name) => [name, plain]));

/** An image, an audio or a file. */
const part =
  (check: Check): Check =>
  (value, reading) => {
    reading.parts += 1;
    check(value, reading);
  };

/** Some providers read it with another model. */
const filePart = (check: Check): Check => {
  const counted = part(check);
  return (value, reading) => {
    reading.hasFiles = true;
    counted(value, reading);
  };
};

/** Some read other data here too. A video has as many images as it wants. */
const imageUrl: Check = (value, reading) => {
  if (typeof value !== 'string' || /^\s*data:(?!image\/)/i.test(value))
    reading.refuse('the data of an image is of another kind');
  reading.pass(value);
};

const STORED = 'it names a file that the provider has stored';
const noFile = never(STORED);
/** Service tiers that cost no more than the standard one. */
const tier = oneOf('service_tier', 'auto', 'default', 'standard', 'standard_only', 'flex', 'on_demand');
const textOnly: Check = (value, reading) => {
  const isText = Array.isArray(value) && value.every((it) => typeof it === 'string' && it.toLowerCase() === 'text');
  if (!isText) reading.refuse('it asks for other output than text');
  reading.pass(value);
};

const FUNCTION = object({ name: plain, description: data, parameters: data, strict: plain });
const CUSTOM = object({ name: plain, description: data, format: data });
const toolsOf =
  (tools: Check): Check =>
  (value, reading) => {
    reading.hasTools = true;
    listOf(tools)(value, reading);
  };

const SAMPLING =
  'temperature top_p top_k top_a min_p seed stop frequency_penalty presence_penalty repetition_penalty logit_bias';
const IDENTITY = 'user metadata safety_identifier prompt_cache_key prompt_cache_retention';

// ---- chat completions

const IMAGE: Check = object({ url: imageUrl, detail: plain });
const IMAGE_URL: Check = (value, reading) => {
  (typeof value === 'string' ? imageUrl : IMAGE)(value, reading);
};
const CACHED = { cache_control: plain };
const CHAT_PARTS = typed('a content part of type', {
  text: { text, ...CACHED },
  refusal: { refusal: plain },
  image_url: { image_url: part(IMAGE_URL), ...CACHED },
  input_audio: { input_audio: part(object({ data: plain, format: plain })), ...CACHED },
  file: { file: filePart(object({ file_data: plain, filename: plain, file_id: noFile })), ...CACHED },
});
const CHAT_CALL = typed(
  'a tool call of type',
  {
    function: {
      id: plain,
      index: plain,
      function: object({ name: plain, arguments: json }),
      ...allOf('extra_content'),
    },
    custom: { id: plain, index: plain, custom: object({ name: plain, input: result }) },
  },
  object({ id: plain, index: plain, function: object({ name: plain, arguments: json }) }),
);
const CHAT_MEMBERS: Checks = {
  ...allOf('role name tool_call_id refusal prefix reasoning_content reasoning annotations'),
  ...CACHED,
  content: textOr(listOf(CHAT_PARTS)),
  tool_calls: listOf(CHAT_CALL),
  function_call: object({ name: plain, arguments: json }),
  audio: never('it refers to audio that the provider has stored'),
};
const CHAT_MESSAGE = object(CHAT_MEMBERS);
const CHAT_RESULT = object({ ...CHAT_MEMBERS, content: textResult(listOf(CHAT_PARTS)) });
const SPOKEN: ReadonlySet<unknown> = new Set(['system', 'developer', 'user', 'assistant']);

function textResult(check: Check): Check {
  return (value, reading) => {
    if (typeof value === 'string') reading.passText(value);
    else {
      check(value, reading);
      reading.addEscapes(value);
    }
  };
}

const chatMessage: Check = (value, reading) => {
  const isSpoken = isObject(value) && SPOKEN.has(value.role);
  (isSpoken ? CHAT_MESSAGE : CHAT_RESULT)(value, reading);
};

export const CHAT = object({
  ...allOf(
    `model stream stream_options store verbosity reasoning_effort parallel_tool_calls tool_choice function_call`,
  ),
  ...allOf(`${SAMPLING} ${IDENTITY} logprobs top_logprobs n max_tokens max_completion_tokens`),
  ...allOf('include_reasoning reasoning_format safe_prompt random_seed'),
  messages: listOf(chatMessage),
  tools: toolsOf(
    typed('a tool of type', { function: { function: FUNCTION, ...CACHED }, custom: { custom: CUSTOM, ...CACHED } }),
  ),
  functions: toolsOf(FUNCTION),
  response_format: data,
  service_tier: tier,
  modalities: textOnly,
  reasoning: object(allOf('effort exclude enabled')),
  thinking: object(allOf('type')),
  usage: object(allOf('include')),
  audio: never('it asks for other output than text'),
  prediction: never('predicted output is billed beyond the maximum of output'),
  web_search_options: never('it searches the web at the provider'),
});

// ---- responses

const INPUT_PARTS = typed('a content part of type', {
  input_text: { text },
  output_text: { text, ...allOf('annotations logprobs') },
  text: { text },
  summary_text: { text },
  reasoning_text: { text },
  refusal: { refusal: plain },
  input_image: { image_url: part(imageUrl), detail: plain, file_id: noFile },
  input_file: {
    file_data: filePart(plain),
    file_url: filePart(plain),
    filename: plain,
    detail: plain,
    file_id: noFile,
  },
});
const CONTENT = textOr(listOf(INPUT_PARTS));
const MESSAGE: Checks = { ...allOf('id role status phase'), content: CONTENT };
const ITEM = allOf('id call_id name status');
const INPUT_ITEMS = typed(
  'an item of type',
  {
    message: MESSAGE,
    function_call: { ...ITEM, arguments: json },
    function_call_output: { ...ITEM, output: textResult(listOf(INPUT_PARTS)) },
    custom_tool_call: { ...ITEM, input: result },
    custom_tool_call_output: { ...ITEM, output: textResult(listOf(INPUT_PARTS)) },
    reasoning: { ...allOf('id status encrypted_content'), summary: listOf(INPUT_PARTS), content: listOf(INPUT_PARTS) },
  },
  object({ type: plain, ...MESSAGE }),
);
const inputItem: Check = (value, reading) => {
  if (isObject(value)) {
    const { type, role, id, encrypted_content: content } = value;
    if ((type ?? null) === null && typeof role !== 'string') reading.refuse('it refers to an item that is stored');
    // With the ID the provider finds the stored reasoning, which can be longer than its summary.
    if (type === 'reasoning' && (id ?? null) !== null && (typeof content !== 'string' || content === ''))
      reading.refuse('it refers to reasoning that is stored');
  }
  INPUT_ITEMS(value, reading);
};

export const RESPONSES = object({
  ...allOf(`model max_output_tokens stream stream_options store include truncation parallel_tool_calls tool_choice`),
  ...allOf(`temperature top_p top_logprobs max_tool_calls ${IDENTITY}`),
  instructions: text,
  input: textOr(listOf(inputItem)),
  tools: toolsOf(
    typed('a tool of type', {
      function: { name: plain, description: data, parameters: data, strict: plain },
      custom: { name: plain, description: data, format: data },
    }),
  ),
  text: object({ format: data, verbosity: plain }),
  reasoning: object(allOf('effort summary generate_summary')),
  service_tier: tier,
  background: never('it runs in the background'),
  previous_response_id: never('previous_response_id refers to what is stored'),
  conversation: never('conversation refers to what is stored'),
  prompt: never('prompt refers to what is stored'),
  context_management: never('context_management may run the model more than once'),
});

// ---- messages of Anthropic

const SOURCE = typed('a source of type', {
  base64: allOf('media_type data'),
  url: allOf('url'),
  text: { ...allOf('media_type'), data: text },
});
const TEXT_BLOCK: Checks = { text, citations: noCitations, ...CACHED };
function noCitations(value: unknown, reading: Reading): void {
  const isOff = isObject(value) ? value.enabled === false : Array.isArray(value) && value.length === 0;
  if (!isOff) reading.refuse('citations add tokens to what is cited');
  reading.pass(value);
}
const RESULT_BLOCKS: Record<string, Checks> = {
  text: TEXT_BLOCK,
  image: { source: part(SOURCE), ...CACHED },
  document: { source: part(SOURCE), title: plain, context: plain, citations: noCitations, ...CACHED },
};
const BLOCKS = typed('a content block of type', {
  ...RESULT_BLOCKS,
  tool_use: { id: plain, name: plain, input: data, ...CACHED },
  tool_result: {
    tool_use_id: plain,
    is_error: plain,
    content: textResult(listOf(typed('a content block of type', RESULT_BLOCKS))),
    ...CACHED,
  },
  thinking: { thinking: plain, signature: plain },
  redacted_thinking: { data: plain },
});
const TOOL: Checks = {
  ...allOf('type name strict cache_control'),
  description: data,
  input_schema: data,
  input_examples: data,
};

export const MESSAGES = object({
  ...allOf('model max_tokens stream stop_sequences temperature top_p top_k metadata tool_choice cache_control'),
  messages: listOf(object({ role: plain, content: textOr(listOf(BLOCKS)) })),
  system: textOr(listOf(typed('a content block of type', { text: TEXT_BLOCK }))),
  tools: toolsOf(typed('a tool of type', { custom: TOOL }, object(TOOL))),
  thinking: object({
    ...allOf('type display'),
    budget_tokens: (value, reading) => {
      if (typeof value !== 'number') reading.refuse('budget_tokens is not a number');
      reading.pass(value);
    },
  }),
  output_config: object({ effort: plain, format: data }),
  output_format: data,
  service_tier: tier,
  mcp_servers: never('it uses tools at the provider'),
  container: never('it uses tools at the provider'),
  context_management: never('context_management may run the model more than once'),
});

// ---- Gemini

const snakeOf = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Google reads a member in both spellings. */
const message = (checks: Checks): Check => {
  const spelled = new Map(Object.keys(checks).map((name) => [snakeOf(name), name]));
  const inSnakeCase = Object.fromEntries(Object.entries(checks).map(([name, check]) => [snakeOf(name), check]));
  const inEither = object({ ...inSnakeCase, ...checks });
  return (value, reading) => {
    if (isObject(value)) {
      for (const name in value) {
        const other = spelled.get(name);
        if (other !== undefined && other !== name && Object.hasOwn(value, other))
          reading.refuse(`the member ${other} has two spellings`);
      }
    }
    inEither(value, reading);
  };
};

/** Google reads one entry as a list. */
const oneOrMore =
  (check: Check): Check =>
  (value, reading) => {
    if (Array.isArray(value)) for (const entry of value) check(entry, reading);
    else check(value, reading);
  };

const mediaType: Check = (value, reading) => {
  // A video can have any number of images.
  if (typeof value !== 'string' || !/^(?:image|audio)\/|^application\/pdf$|^text\//.test(value))
    reading.refuse('a part is not an image, an audio, a PDF or a text');
};
const PART = message({
  text,
  thought: plain,
  thoughtSignature: plain,
  inlineData: part(message({ mimeType: mediaType, data: plain, displayName: plain })),
  functionCall: message({ id: plain, name: plain, args: data }),
  functionResponse: message({ id: plain, name: plain, response: data }),
  fileData: never(STORED),
});
const GOOGLE_CONTENT = message({ role: plain, parts: oneOrMore(PART) });

export const GENERATE_CONTENT = message({
  model: plain,
  contents: oneOrMore(GOOGLE_CONTENT),
  systemInstruction: GOOGLE_CONTENT,
  safetySettings: plain,
  labels: plain,
  generationConfig: message({
    ...allOf('maxOutputTokens candidateCount temperature topP topK seed stopSequences responseMimeType'),
    ...allOf('presencePenalty frequencyPenalty responseLogprobs logprobs'),
    responseSchema: data,
    responseJsonSchema: data,
    responseModalities: textOnly,
    thinkingConfig: message(allOf('includeThoughts thinkingBudget thinkingLevel')),
  }),
  toolConfig: message({ functionCallingConfig: message(allOf('mode allowedFunctionNames')) }),
  tools: (value, reading) => {
    reading.hasTools = true;
    oneOrMore(message({ functionDeclarations: data }))(value, reading);
  },
  cachedContent: never('cachedContent refers to what is stored'),
});

const EMBED = { model: plain, content: GOOGLE_CONTENT, taskType: plain, title: plain, outputDimensionality: plain };
export const EMBED_CONTENT = message(EMBED);
export const BATCH_EMBED_CONTENTS = message({ requests: oneOrMore(message(EMBED)) });

// ---- older and smaller APIs of OpenAI

/** Texts, or tokens as numbers: of one input, or of several. */
const inputs: Check = (value, reading) => {
  if (!Array.isArray(value)) {
    text(value, reading);
    return;
  }
  for (const entry of value) {
    const isTokens = Array.isArray(entry) && entry.every((token) => typeof token === 'number');
    if (typeof entry === 'string' || typeof entry === 'number' || isTokens) continue;
    reading.refuse('an input is neither a text nor tokens');
    reading.pass(entry);
  }
};

export const COMPLETIONS = object({
  ...allOf(`model stream stream_options suffix logprobs n best_of max_tokens ${SAMPLING} ${IDENTITY}`),
  prompt: inputs,
});

export const EMBEDDINGS = object({ ...allOf('model encoding_format dimensions user'), input: inputs });

const MODERATED = typed('a content part of type', {
  text: { text },
  image_url: { image_url: part(IMAGE_URL) },
});
export const MODERATIONS = object({
  model: plain,
  input: textOr(listOf(textOr(MODERATED))),
});
