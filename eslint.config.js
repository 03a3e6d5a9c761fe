import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

const PRIVATE_BY_TYPE_ALONE = {
  // A constructor has no name that could be private.
  selector: ':matches(PropertyDefinition, MethodDefinition[kind!="constructor"])[accessibility="private"]',
  message: 'Write `#name` in place of `private name`.',
};

/** Words that readers stumble over, and what to write in their place: for strings and comments of the program, and for the documentation. */
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

const words = { rules: { unwanted: rule }, languages: { text } };

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', 'data/', 'release/'] },
  { files: ['**/*.{js,cjs,mjs,ts,tsx}'], extends: [eslint.configs.recommended] },
  {
    files: ['*.md', 'docs/**/*.md', 'man/*.[1-8]', 'config/**/*.{json,yaml,service,conf,cfg,example}'],
    plugins: { words },
    language: 'words/text',
    rules: { 'words/unwanted': 'error' },
  },
  {
    files: ['{config,console,cli,tui,daemon,migrations}/**/*.{ts,tsx}'],
    plugins: { words },
    rules: { 'words/unwanted': 'error' },
  },
  {
    // They are compiled elsewhere, with clients that are generated there: here their types are not known.
    files: ['test/clients/programs/*.ts'],
    extends: [tseslint.configs.recommended],
    languageOptions: { globals: { process: 'readonly', URL: 'readonly', console: 'readonly' } },
  },
  {
    files: ['**/*.ts', '**/*.tsx'],
    ignores: ['test/clients/programs/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // A number in a template literal is not a mistake.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // Express's Request is an IncomingMessage by prototype, which this rule cannot see.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      // One style of classes: each field stands with the fields, and what is private is so when the program runs too.
      '@typescript-eslint/parameter-properties': 'error',
      'no-restricted-syntax': ['error', PRIVATE_BY_TYPE_ALONE],
    },
  },
  {
    // Builders run once: settings that SIGHUP changes must be read later, each time they are used.
    files: ['daemon/compose.ts', 'daemon/compose/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        PRIVATE_BY_TYPE_ALONE,
        {
          selector: `:not(AssignmentExpression) > MemberExpression[property.name='current']:matches([object.name='live'], [object.property.name='live'])`,
          message: 'A reloadable setting that is read here stays as it is until the daemon ends: hand `live` on.',
        },
      ],
    },
  },
  {
    files: ['**/*.cjs'],
    languageOptions: { globals: { __dirname: 'readonly' } },
  },
  {
    files: ['daemon/admin/assets/*.js'],
    languageOptions: {
      globals: Object.fromEntries(
        [
          'addEventListener',
          'document',
          'DOMParser',
          'fetch',
          'AbortController',
          'clearTimeout',
          'CSS',
          'Event',
          'EventSource',
          'URL',
          'HTMLInputElement',
          'stop',
          'getSelection',
          'Intl',
          'location',
          'navigator',
          'setInterval',
          'setTimeout',
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      // chai's assertions are property reads.
      '@typescript-eslint/no-unused-expressions': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
    },
  },
);
