/** The forms with a provider's key: a new project, and another key of a project. */
import type { WireProject } from '../../daemon/api/contract.js';
import { dialogOf, reasonField, textField } from './dialog.js';
import type { ChangeRequest } from './exchange.js';
import { checkField, keyField, missingUsageField, providerFields } from './provider-forms.js';
import type { Dialog } from './layers.js';
import { layer, type State, type Transition, withLayer } from './state.js';

export const newProjectForm = (): Dialog =>
  dialogOf(
    {
      purpose: { for: 'new-project' },
      title: 'New project',
      action: 'Create',
      fields: [textField('Name', { width: 40 }), ...providerFields(), missingUsageField(), keyField(), checkField()],
    },
    'field',
  );

export const setKeyForm = (project: WireProject): Dialog =>
  dialogOf(
    {
      purpose: { for: 'set-key', project },
      title: `Change the key of project ${project.name}`,
      action: 'Set key',
      notes: [
        {
          words: `${endOf(project)}Requests in flight keep the old one. The project's cached responses are removed. This cannot be undone.`,
          isWarning: false,
        },
      ],
      fields: [keyField(), reasonField(), checkField()],
    },
    'field',
  );

/** The hint of a short key is empty. */
const endOf = ({ api_key_hint: hint }: WireProject) => (hint === '' ? '' : `The current key ends in …${hint}. `);

/** Whether the form of the change stays open until the provider has responded to the check of the key. */
export const awaitsCheck = (change: ChangeRequest): boolean => 'key' in change && change.key.isToCheck;

/** Stops the check. The form stays open, with what was entered. */
export function checkCancelled(state: State): Transition {
  const dialog = layer(state);
  if (dialog?.kind !== 'dialog' || !dialog.awaited) return [state];
  const { awaited } = dialog;
  const pendingChanges = state.pendingChanges.filter(({ change }) => change !== awaited);
  // The daemon may have received the provider's response just before.
  const problem = 'Cancelled. Nothing was stored, unless the provider had just accepted the key';
  return [withLayer({ ...state, pendingChanges }, { ...dialog, awaited: null, problem }), { do: 'stop' }];
}
