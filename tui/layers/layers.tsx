/** The top layer, over the screen. */
import { layer, type State } from '../state/state.js';
import { Columns } from './columns.js';
import { Candidates } from './command-line.js';
import { Completions } from './completions.js';
import { Contexts } from './contexts.js';
import { DialogPanel } from './dialog.js';
import { HelpPanel } from './keys.js';
import { NoticePanel } from './notice.js';
import { RevealPanel } from './reveal.js';

export function TopLayer({ state }: { state: State }) {
  const top = layer(state);
  switch (top?.kind) {
    case undefined:
      return null;
    case 'prompt':
      return <Completions state={state} prompt={top} />;
    case 'dialog':
      return <DialogPanel state={state} dialog={top} />;
    case 'reveal':
      return <RevealPanel state={state} reveal={top} />;
    case 'command':
      return <Candidates state={state} command={top} />;
    case 'help':
      return <HelpPanel state={state} help={top} />;
    case 'columns':
      return <Columns state={state} choice={top} />;
    case 'notice':
      return <NoticePanel state={state} notice={top} />;
    case 'contexts':
      return <Contexts state={state} choice={top} />;
  }
}

/** The screen is dimmed below a layer that receives its keys; lines for input are not over it. */
export const isDimmed = (state: State): boolean => !['prompt', 'command', undefined].includes(layer(state)?.kind);
