/**
 * Assembles the message of an event stream in the format of a response without streaming. If the events cannot be merged, there is no
 * result, and the stream is shown unchanged.
 */
type Json = Record<string, unknown>;

// Limit for choices and tool calls: the provider chooses their indexes.
const MAX_PARTS = 128;

// Limit for events that are not JSON: each is as expensive as many valid ones, and such a stream has no message.
const MAX_INVALID_EVENTS = 64;

const MAX_LOOSE_PIECES = 64;

/**
 * Text that arrives in pieces. Appending each piece to a string would keep all of them alive (V8 ropes), with up to thirty times the
 * memory of the text.
 *
 * Pieces are joined into blocks, and a block is merged with the previous one if that is not longer. So each character is copied
 * only O(log n) times, however small the provider makes the pieces.
 */
class Text {
  #blocks: string[] = [];
  #pieces: string[] = [];

  add(piece: string): void {
    if (piece === '') return;
    this.#pieces.push(piece);
    if (this.#pieces.length > MAX_LOOSE_PIECES) this.#join();
  }

  get whole(): string {
    return this.#blocks.join('') + this.#pieces.join('');
  }

  #join(): void {
    let block = this.#pieces.join('');
    this.#pieces = [];
    for (
      let last = this.#blocks.at(-1);
      last !== undefined && last.length <= block.length;
      last = this.#blocks.at(-1)
    ) {
      this.#blocks.pop();
      block = [last, block].join('');
    }
    this.#blocks.push(block);
  }
}

interface Choice {
  index: number;
  /** Only in legacy completions, which have no messages. */
  text: Text | null;
  role: string | null;
  content: Text | null;
  refusal: Text | null;
  toolCalls: Map<number, ToolCall>;
  finishReason: unknown;
}

interface ToolCall {
  id: unknown;
  type: unknown;
  name: Text;
  arguments: Text;
}

export class StreamedMessage {
  readonly #maxBytes: number;
  /** The fields that all chunks have in common. */
  #head: Json | null = null;
  #usage: unknown = null;
  readonly #choices = new Map<number, Choice>();
  /** The complete response or transcript, which its last event contains. */
  #whole: Json | null = null;
  /** Its text so far. */
  readonly #text = new Text();
  #heldBytes = 0;
  #unreadable = 0;

  /** @param maxBytes limit for the merged text; the rest is omitted. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  event(data: Buffer): void {
    if (this.#unreadable === MAX_INVALID_EVENTS) return;
    const event = parseObject(data);
    if (!event) {
      this.#unreadable += 1;
      return;
    }
    const { type } = event;
    if (typeof type !== 'string') this.#chunk(event);
    else if (/^response\.(?:completed|incomplete|failed)$/.test(type))
      this.#whole = objectOr(event.response, this.#whole);
    else if (type === 'transcript.text.done') this.#whole = event;
    else if (type === 'response.output_text.delta' || type === 'transcript.text.delta')
      this.#text.add(this.#held(event.delta));
  }

  /** @returns JSON; null if there is no message. */
  assembled(): string | null {
    try {
      return this.#assembled();
    } catch {
      return null; // Nested too deeply to be serialised, although it could be parsed.
    }
  }

  #assembled(): string | null {
    if (this.#whole) return JSON.stringify(this.#whole);
    const text = this.#text.whole;
    if (text !== '') return JSON.stringify({ text });
    if (!this.#head) return null;
    const { id, object, created, model } = this.#head;
    const choices = [...this.#choices.values()].sort((a, b) => a.index - b.index).map(assembledChoice);
    const kind = typeof object === 'string' ? object.replace(/\.chunk$/, '') : object;
    return JSON.stringify({ id, object: kind, created, model, choices, usage: this.#usage });
  }

  #chunk(chunk: Json): void {
    if (!Array.isArray(chunk.choices)) return;
    this.#head ??= chunk;
    this.#usage = chunk.usage ?? this.#usage;
    for (const said of chunk.choices as unknown[]) {
      const choice = objectOr(said, null);
      if (choice) this.#choice(choice);
    }
  }

  #choice(said: Json): void {
    const choice = partAt(this.#choices, said.index, newChoice);
    if (!choice) return;
    choice.finishReason = said.finish_reason ?? choice.finishReason;
    if (typeof said.text === 'string') (choice.text ??= new Text()).add(this.#held(said.text));
    const delta = objectOr(said.delta, null);
    if (!delta) return;
    if (typeof delta.role === 'string') choice.role = delta.role;
    if (typeof delta.content === 'string') (choice.content ??= new Text()).add(this.#held(delta.content));
    if (typeof delta.refusal === 'string') (choice.refusal ??= new Text()).add(this.#held(delta.refusal));
    for (const call of Array.isArray(delta.tool_calls) ? (delta.tool_calls as unknown[]) : []) {
      this.#toolCall(choice, objectOr<Json>(call, {}));
    }
  }

  #toolCall(choice: Choice, said: Json): void {
    const call = partAt(choice.toolCalls, said.index, () => ({
      id: null,
      type: null,
      name: new Text(),
      arguments: new Text(),
    }));
    if (!call) return;
    call.id = said.id ?? call.id;
    call.type = said.type ?? call.type;
    const made = objectOr<Json>(said.function, {});
    call.name.add(this.#held(made.name));
    call.arguments.add(this.#held(made.arguments));
  }

  #held(text: unknown): string {
    if (typeof text !== 'string') return '';
    const taken = text.slice(0, Math.max(0, this.#maxBytes - this.#heldBytes));
    this.#heldBytes += taken.length;
    return taken;
  }
}

const newChoice = (index: number): Choice => ({
  index,
  text: null,
  role: null,
  content: null,
  refusal: null,
  toolCalls: new Map(),
  finishReason: null,
});

function assembledChoice(choice: Choice): Json {
  const { index, text, role, content, refusal, toolCalls, finishReason } = choice;
  const end = { finish_reason: finishReason };
  if (text !== null) return { index, text: text.whole, ...end };
  const calls = [...toolCalls.values()].map((call) => ({
    id: call.id,
    type: call.type,
    function: { name: call.name.whole, arguments: call.arguments.whole },
  }));
  const message = {
    role: role ?? 'assistant',
    content: content && content.whole,
    ...(refusal !== null && { refusal: refusal.whole }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return { index, message, ...end };
}

function partAt<T>(parts: Map<number, T>, index: unknown, make: (index: number) => T): T | null {
  const at = typeof index === 'number' && Number.isSafeInteger(index) ? index : 0;
  const known = parts.get(at);
  if (known || parts.size >= MAX_PARTS) return known ?? null;
  const part = make(at);
  parts.set(at, part);
  return part;
}

function parseObject(json: Buffer): Json | null {
  try {
    return objectOr(JSON.parse(json.toString()), null);
  } catch {
    return null;
  }
}

const objectOr = <T>(value: unknown, otherwise: T): Json | T =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : otherwise;
