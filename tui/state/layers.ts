/** Layers over a view, such as dialogs, as plain data. The last one of the state receives the keys. */
import type { FilteredScreen } from '../../console/query/types.js';
import type { TermLabel } from '../../console/columns/tokens.js';
import type { PolicyLabel } from '../../console/columns/policy-fields.js';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import type { ChangeRequest, ContextSummary, Created, Failure, Named, Reversal } from './exchange.js';
import type { ExportedList } from './exported-list.js';
import type { Line } from './line.js';
import type { Secret } from './secret.js';

export type Layer = Dialog | Reveal | Prompt | CommandLine | Help | ContextChoice | ColumnChoice | Notice;

/** A dialog: affected items, notes, input fields, and two buttons, of which the first cancels. */
export interface Dialog {
  kind: 'dialog';
  purpose: Purpose;
  title: string;
  /** The first few affected items, one per line; cells are aligned. */
  items: readonly DialogItem[];
  /** Number of affected items that are not listed. */
  more: number;
  notes: readonly { words: string; isWarning: boolean }[];
  fields: readonly Field[];
  /** Label of the second button. */
  action: string;
  /** Index of the focused element: the visible fields, then Cancel, then the action. */
  focus: number;
  /** First visible line of the text, when it does not fit and a button has the focus. */
  scrolled: number;
  problem: string | null;
  /** The change that was sent from the form, which stays open until the response to it. */
  awaited?: ChangeRequest | null;
  /** The ID of the project whose models are offered, or will be when they are loaded. */
  modelsOf?: string;
  /** Named with the problem: the next field, which the rejected text may be meant for. */
  meantField?: Label | null;
}

export interface DialogItem {
  cells: readonly string[];
  isWarning: boolean;
}

/** Label of a field, which also identifies it: unique within a dialog. */
export type Label =
  | TermLabel
  | PolicyLabel
  | 'Restrict'
  | 'Role'
  | 'Projects'
  | 'Ceilings'
  | 'Most hours'
  | 'Most requests'
  | 'Active tokens'
  | 'Keep tokens'
  | 'Project'
  | 'Expires in'
  | 'Reason'
  | 'File'
  | 'Provider'
  | 'Base URL'
  | 'Key sent as'
  | 'Missing usage'
  | "Provider's key"
  | 'Check'
  | 'What'
  | 'Method'
  | 'Path'
  | `Type ${string} to confirm`;

export interface Field {
  label: Label;
  line: Line;
  /** Choices, selected with left and right, or in a list that typing opens and narrows. Without choices the field takes text. */
  choices?: readonly { value: string; label: string }[];
  /** Set while the list of the choices is open: the text that narrows it, and the choice to restore if it is closed with Escape. */
  search?: { typed: string; before: string };
  /** The choices are yes and no: space selects the other one. */
  isToggle?: boolean;
  /** What right takes at the end of the line, for the last part of a list with commas. */
  offers?: readonly string[];
  /** Rendered as bullets. */
  isSecret?: boolean;
  hint?: string;
  /** In terminal columns. */
  width?: number;
  /** The field is visible only while another field has one of these values. */
  onlyIf?: { field: Label; among: readonly string[] };
}

export type Purpose =
  | {
      for: 'change';
      change: ChangeRequest;
      /** The word that must be typed to confirm; null: none. */
      typed: string | null;
      /** Set if the change is an undo or a redo. */
      reversal: Reversal | null;
    }
  | { for: 'new-token' }
  | { for: 'new-operator' }
  | { for: 'new-project' }
  | { for: 'rename'; project: Named }
  | { for: 'set-key'; project: Named }
  | { for: 'set-provider'; project: WireProject }
  | { for: 'restrict-token'; token: WireToken }
  | { for: 'restrict-project'; project: WireProject }
  | { for: 'purge'; typed: string | null }
  /** Replaces a file. */
  | { for: 'export'; list: ExportedList };

/** Dialog that shows the secret of a new token or operator, once. */
export interface Reveal {
  kind: 'reveal';
  of: Created;
  secret: Secret;
  isShown: boolean;
  /** Whether the secret was shown, copied or written, so that the operator can have stored it. */
  wasRevealed: boolean;
  /** Path being typed to write the secret to; null: none. */
  path: Line | null;
  isWriting: boolean;
  /** Result of the last copy or write. */
  notice: string | null;
  problem: string | null;
}

/** An input line at the bottom; used only for the filter of a list. */
export interface Prompt {
  kind: 'prompt';
  line: Line;
  /** The filter to restore with Escape. */
  before: string;
  problem: string | null;
}

/** The command line. Its completions are derived from the line. */
export interface CommandLine {
  kind: 'command';
  line: Line;
  /** Index of the completion that tab takes. */
  selected: number;
  /** The operator moved to the completion, so that Enter takes it. */
  isChosen: boolean;
  /** Which command of the history is in the line, 1 for the latest; null: none. */
  recalled: number | null;
  /** The line before one of the history was recalled. */
  draft: string;
  problem: string | null;
}

export interface Help {
  kind: 'help';
  selected: number;
  /** Text that narrows the lines, while it is typed; null: all lines. */
  search: Line | null;
}

export interface ContextChoice {
  kind: 'contexts';
  all: readonly ContextSummary[] | null;
  /** Keys pressed before the list was loaded. They are handled once it is. */
  queuedKeys: readonly string[];
  selected: number;
  failure: Failure | null;
}

/** The choice of the columns of a list. */
export interface ColumnChoice {
  kind: 'columns';
  screen: FilteredScreen;
  /** All columns of the list, in the order of the choice. */
  entries: readonly { id: string; isShown: boolean }[];
  selected: number;
  notice: string | null;
}

/** Sentences to read, such as problems of the operator's settings. Any of its keys closes it. */
export interface Notice {
  kind: 'notice';
  title: string;
  sentences: readonly string[];
  /** Whether they are no warnings. */
  isPlain?: boolean;
  /** First visible sentence, if not all fit. */
  scrolled: number;
}
