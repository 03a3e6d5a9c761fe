/** The members that a scanner of JSON looks for. */

/** `literal`: a value of any type, of which only the first byte is remembered, such as `t` for `true`. */
type Kind = 'string' | 'object' | 'literal';

/**
 * Members by their paths: names separated by dots, `[0]` for the first element of a list, and a leading `[]` for every element of a
 * document that is a list. For example `choices[0].usage`.
 */
export type Paths = Readonly<Record<string, Kind>>;

/** What a scanner looks for, prepared once for all scanners. */
export interface Wanted {
  root: Node;
  /** The values of a scanner that has found nothing: null for each path, of which there are at most 31. */
  noValues: readonly null[];
}

export interface Node {
  /** Its wanted members, by the lengths of their names. */
  named: ({ name: Buffer; node: Node }[] | undefined)[];
  /** For lists: what is wanted in their elements, or in the first one. */
  elements: Node | null;
  isFirstOnly: boolean;
  /** Index of its value; -1 if only its members are wanted. */
  slot: number;
  kind: Kind | null;
}

const newNode = (): Node => ({ named: [], elements: null, isFirstOnly: false, slot: -1, kind: null });

export function wanted(paths: Paths): Wanted {
  const root = newNode();
  for (const [slot, [path, kind]] of Object.entries(paths).entries()) {
    let node = root;
    for (const step of path.split(/\.|(?=\[)/)) if (step !== '') node = nodeAt(node, step);
    node.slot = slot;
    node.kind = kind;
  }
  return { root, noValues: Object.keys(paths).map(() => null) };
}

function nodeAt(parent: Node, step: string): Node {
  if (step.startsWith('[')) {
    parent.isFirstOnly = step === '[0]';
    return (parent.elements ??= newNode());
  }
  const name = Buffer.from(step);
  // No holes, which would make the array slower to read.
  while (parent.named.length <= name.length) parent.named.push(undefined);
  const ofLength = (parent.named[name.length] ??= []);
  const known = ofLength.find((each) => each.name.equals(name));
  if (known) return known.node;
  const node = newNode();
  ofLength.push({ name, node });
  return node;
}
