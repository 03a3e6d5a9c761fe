/** The members that a scanner of JSON looks for. */
type Kind = 'string' | 'object';

/**
 * Members by their paths: names separated by dots, `[0]` for the first element of a list, and a leading `[]` for every element of a
 * document that is a list. For example `choices[0].usage`.
 */
export type Paths = Readonly<Record<string, Kind>>;

/** What a scanner looks for, prepared once for all scanners. */
export interface Wanted {
  root: Node;
  /** Number of paths; at most 31. */
  slots: number;
}

export interface Node {
  children: { name: Buffer; node: Node }[];
  /** For lists: what is wanted in their elements, or in the first one. */
  elements: Node | null;
  isFirstOnly: boolean;
  /** Index of its value; -1 if only its members are wanted. */
  slot: number;
  kind: Kind | null;
}

const newNode = (): Node => ({ children: [], elements: null, isFirstOnly: false, slot: -1, kind: null });

export function wanted(paths: Paths): Wanted {
  const root = newNode();
  for (const [slot, [path, kind]] of Object.entries(paths).entries()) {
    let node = root;
    for (const step of path.split(/\.|(?=\[)/)) if (step !== '') node = nodeAt(node, step);
    node.slot = slot;
    node.kind = kind;
  }
  return { root, slots: Object.keys(paths).length };
}

function nodeAt(parent: Node, step: string): Node {
  if (step.startsWith('[')) {
    parent.isFirstOnly = step === '[0]';
    return (parent.elements ??= newNode());
  }
  const known = parent.children.find(({ name }) => name.equals(Buffer.from(step)));
  if (known) return known.node;
  const node = newNode();
  parent.children.push({ name: Buffer.from(step), node });
  return node;
}
