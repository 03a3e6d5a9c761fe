/** `-o yaml`: the value that `-o json` prints, as YAML 1.2. A stream has a document for each item. */
import { Document, visit } from 'yaml';
import { escapedQuotes, visibleJson } from '../../console/escape.js';
import type { Renderer } from './renderer.js';

export function yamlRenderer(): Renderer {
  return { all: yamlOf, next: (item) => `---\n${yamlOf(item)}` };
}

function yamlOf(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_, node) {
      const { value: text } = node;
      // Only a quoted text can contain escape sequences, which are the same as in JSON.
      if (typeof text === 'string' && visibleJson(text) !== JSON.stringify(text)) node.type = 'QUOTE_DOUBLE';
    },
  });
  // No text is folded, so that a value is on one line.
  const yaml = document.toString({ lineWidth: 0, blockQuote: false });
  // The library leaves some characters as they are that change the writing direction.
  return escapedQuotes(yaml);
}
