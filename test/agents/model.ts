/**
 * The model behind the stand-in: it has the command in `JOB` run by the first tool that runs commands, and then says that it is done.
 * To a request without such a tool, for example one for a title, it only says so.
 */
import type { Reply } from '../sdks/dialects/dialect.js';

/** The file that the job makes in the agent's folder, and its content. */
export const PROOF = { file: 'proof.txt', content: 'made by the agent' };
const COMMAND = `printf '${PROOF.content}' > ${PROOF.file}`;

/** What the agent is asked to do. */
export const JOB = `Run the command: ${COMMAND}`;

/** A request, in any dialect, as far as the reply depends on it. */
export interface ModelRequest {
  model?: string;
  tools?: readonly Tool[];
  messages?: readonly Message[];
  input?: string | readonly Message[];
  contents?: readonly Message[];
}

interface Tool {
  name?: string;
  function?: { name: string };
  functionDeclarations?: readonly { name: string }[];
}

interface Message {
  role?: string;
  type?: string;
  content?: unknown;
  parts?: unknown;
}

/** Arguments of the tools that run a command, by their names. */
const TOOLS: Readonly<Record<string, object>> = {
  Bash: { command: COMMAND, description: 'makes a file' },
  bash: { command: COMMAND, description: 'makes a file' },
  exec_command: { cmd: COMMAND },
  run_commands: { commands: [COMMAND] },
  run_shell_command: { command: COMMAND, description: 'makes a file', is_background: false },
  shell: { command: COMMAND },
};

const DONE = { text: 'The file is made.' };

/** aider has no tools: it reads a change of a file from the text. */
const EDIT = {
  text: `${DONE.text}\n\n${PROOF.file}\n\`\`\`\n<<<<<<< SEARCH\n=======\n${PROOF.content}\n>>>>>>> REPLACE\n\`\`\`\n`,
};

export function replyOfModel(asked: ModelRequest): Reply {
  const text = JSON.stringify([asked.messages, asked.input, asked.contents]);
  if (text.includes('*SEARCH/REPLACE* block')) return EDIT;
  const names = (asked.tools ?? []).flatMap(({ name, function: its, functionDeclarations = [] }) => [
    name ?? its?.name ?? '',
    ...functionDeclarations.map((each) => each.name),
  ]);
  const tool = names.find((name) => name in TOOLS);
  const isAfterCall = /"type":"(?:function_call_output|tool_result)"|"role":"tool"|"functionResponse":/.test(text);
  return tool === undefined || isAfterCall ? DONE : { tool, input: TOOLS[tool] ?? {} };
}
