/** Words that readers stumble over: a rule for strings and comments of the program, and for the documentation. */

/** Each word, and what to write in its place. */
const UNWANTED = [
  [/\banew\b/i, 'again'],
  [/\bwhoever\b/i, 'anyone who, the caller'],
  [/\b(?:taken|takes?|took) (?:it |them )?back\b/i, 'revoked, undone, rolled back'],
  [/\bat most so many\b/i, 'up to'],
  [/\bunless given\b/i, 'by default'],
  [/\bkept\b/i, 'stored, cached'],
  [/\b(?:is|are|was|were|be|been|being|stays?|goes|went) away\b/i, 'is unreachable'],
  // Something may be behind a proxy, lag behind or be left behind. Otherwise it comes after.
  [
    /(?<!\b(?:left|leaves?)(?: [\w ]+)? |\b(?:lags|further) |look-)\bbehind\b(?! (?:(?:a|an|the|its|your|another|this|that) )?(?:\w+ )?(?:proxy|proxies|nginx|HAProxy|Caddy|load balancer|firewall|NAT|TLS))/i,
    'after',
  ],
];

const rule = {
  create({ sourceCode, report }) {
    const check = (loc, text) => {
      for (const [word, better] of UNWANTED) {
        const found = word.exec(text);
        if (found) report({ loc, message: `Write something else than "${found[0]}": ${better}.` });
      }
    };
    return {
      /** A line of prose. */
      Line: ({ loc, text }) => check(loc, text),
      Program() {
        for (const { loc, value } of sourceCode.getAllComments()) check(loc, value);
      },
      JSXText: ({ loc, value }) => check(loc, value),
      // A string of one word is for programs: a state, a name. A part of a template has its other words beside it.
      Literal: ({ loc, value }) => typeof value === 'string' && /\S\s+\S/.test(value) && check(loc, value),
      TemplateElement: ({ loc, value }) => /\s/.test(value.cooked) && check(loc, value.cooked),
    };
  },
};

/** Text as a language: lines. Those of Markdown are without code, and a block of code has none. */
const text = {
  fileType: 'text',
  lineStart: 1,
  columnStart: 1,
  nodeTypeKey: 'type',
  validateLanguageOptions: () => undefined,
  parse({ body, path }) {
    let isCode = false;
    const lines = body.split('\n').map((line, at) => {
      const isFence = path.endsWith('.md') && /^ *```/.test(line);
      if (isFence) isCode = !isCode;
      const prose = path.endsWith('.md') ? line.replace(/`[^`]*`/g, '') : line;
      const loc = { start: { line: at + 1, column: 1 }, end: { line: at + 1, column: line.length + 1 } };
      return { type: 'Line', loc, text: isCode || isFence ? '' : prose };
    });
    return { ok: true, ast: { type: 'Text', lines } };
  },
  createSourceCode: ({ body }, { ast }) => ({
    ast,
    text: body,
    getLoc: ({ loc }) => loc,
    getRange: () => [0, 0],
    *traverse() {
      for (const line of ast.lines) yield { kind: 1, target: line, phase: 1, args: [line] };
    },
  }),
};

export default { rules: { unwanted: rule }, languages: { text } };
