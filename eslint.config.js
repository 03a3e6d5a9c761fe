import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';
import words from './eslint.words.js';

const PRIVATE_BY_TYPE_ALONE = {
  // A constructor has no name that could be private.
  selector: ':matches(PropertyDefinition, MethodDefinition[kind!="constructor"])[accessibility="private"]',
  message: 'Write `#name` in place of `private name`.',
};

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
