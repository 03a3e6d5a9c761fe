/** What is filled in: a new token, a new project, a project's name or key, a purge; and what is sent when it is. */
import { integer } from '../../config/kinds.js';
import type { CachePurge, TokenCreate, WireProject } from '../../daemon/api/contract.js';
import { lifetime, LONGEST_RECOMMENDED_HOURS } from '../../cli/issuing.js';
import { sent } from './changing.js';
import { choiceField, dialogOf, textField, valueOf } from './dialog.js';
import type { Change, Effect } from './exchange.js';
import { Hidden } from './hidden.js';
import { above } from './navigation.js';
import { ofContext } from './projects.js';
import { type Dialog, saying, type State, type Step, whyNoChange, withLayer } from './state.js';

const LONGEST_REASON = 200;

/** @param projectId chosen already, where the operator comes from a project. */
export function newToken(state: State, projectId?: string): Step {
  const active = (state.projects.all ?? []).filter(({ is_active }) => is_active);
  const [only] = active;
  if (!only) {
    const words = state.projects.all
      ? 'There is no active project; make one under 3 Projects'
      : 'The projects are not known yet';
    return [saying(state, words, 'bad')];
  }
  const chosen = projectId ?? ofContext(state)?.id ?? only.id;
  return form(
    state,
    dialogOf(
      {
        purpose: { for: 'new-token' },
        title: 'New token',
        action: 'Create',
        fields: [
          choiceField(
            'project',
            'Project',
            active.map(({ id, name }) => ({ value: id, label: name })),
            chosen,
          ),
          textField('name', 'Name', { hint: 'who will use it', width: 40 }),
          textField('duration', 'Expires in', { line: { text: '24h', caret: 3 }, hint: '48h, 90m', width: 10 }),
          textField('max', 'Requests', { hint: 'at most; empty: unlimited', width: 12 }),
        ],
      },
      'field',
    ),
  );
}

export const newProject = (state: State): Step =>
  form(
    state,
    dialogOf(
      {
        purpose: { for: 'new-project' },
        title: 'New project',
        action: 'Create',
        fields: [textField('name', 'Name', { width: 40 }), keyField()],
      },
      'field',
    ),
  );

export const rename = (state: State, project: WireProject): Step =>
  form(
    state,
    dialogOf(
      {
        purpose: { for: 'rename', project },
        title: `Rename project ${project.name}`,
        action: 'Rename',
        fields: [
          textField('name', 'Name', { line: { text: project.name, caret: project.name.length }, width: 40 }),
          reasonField(),
        ],
      },
      'field',
    ),
  );

export const setKey = (state: State, project: WireProject): Step =>
  form(
    state,
    dialogOf(
      {
        purpose: { for: 'set-key', project },
        title: `Another key for project ${project.name}`,
        action: 'Set key',
        notes: [{ words: `It now ends in ${project.api_key_hint}. Its kept answers are dropped.`, isWarning: false }],
        fields: [keyField(), reasonField()],
      },
      'field',
    ),
  );

export const purge = (state: State): Step =>
  form(
    state,
    dialogOf(
      {
        purpose: { for: 'purge' },
        title: 'Purge kept answers',
        action: 'Purge',
        fields: [
          choiceField('what', 'What', [
            { value: 'url', label: 'one request line' },
            { value: 'project', label: 'all of a project' },
            { value: 'all', label: 'everything' },
          ]),
          {
            ...choiceField('method', 'Method', [
              { value: 'GET', label: 'GET' },
              { value: 'POST', label: 'POST' },
            ]),
            onlyIf: { field: 'what', value: 'url' },
          },
          textField('url', 'Path', {
            line: { text: '/v1/', caret: 4 },
            hint: 'with its query',
            width: 40,
            onlyIf: { field: 'what', value: 'url' },
          }),
          {
            ...choiceField(
              'project',
              'Project',
              (state.projects.all ?? []).map(({ id, name }) => ({ value: id, label: name })),
            ),
            onlyIf: { field: 'what', value: 'project' },
          },
          reasonField(),
        ],
      },
      'field',
    ),
  );

const keyField = () => textField('key', "Provider's key", { isSecret: true, hint: 'never shown again', width: 40 });
const reasonField = () => textField('reason', 'Reason', { hint: 'goes into the audit record', width: 40 });

function form(state: State, dialog: Dialog): Step {
  const why = whyNoChange(state);
  return why === null ? previewed(above(state, dialog), dialog) : [saying(state, why, 'bad')];
}

/** What a purge is of, as far as it can be told from what is filled in. */
export function purgeBody(dialog: Dialog): CachePurge | string {
  switch (valueOf(dialog, 'what')) {
    case 'all':
      return { all: true };
    case 'project': {
      const id = valueOf(dialog, 'project');
      return id === '' ? 'There is no project' : { project_id: id };
    }
    default: {
      const url = valueOf(dialog, 'url').trim();
      const method = valueOf(dialog, 'method') === 'POST' ? 'POST' : 'GET';
      return /^\/v1(?:[/?]|$)/.test(url) ? { method, url } : 'The path begins with /v1';
    }
  }
}

/** Asks how many answers the purge that is filled in would remove. */
export function previewed(state: State, dialog: Dialog): Step {
  if (dialog.purpose.for !== 'purge') return [state];
  const body = purgeBody(dialog);
  const preview = typeof body === 'string' ? null : { body, count: null, failure: null };
  const next = { ...state, cache: { ...state.cache, preview } };
  return typeof body === 'string' ? [next] : [next, { do: 'ask', question: { of: 'purgeable', body } }];
}

/** Sends what the dialog is for, or says what is wrong with it. */
export function submitted(state: State, dialog: Dialog): Step {
  const change = changeOf(dialog);
  if (typeof change === 'string') return [withLayer(state, { ...dialog, problem: change })];
  const reason = valueOf(dialog, 'reason').trim();
  if (Array.from(reason).length > LONGEST_REASON) {
    return [withLayer(state, { ...dialog, problem: `A reason has at most ${LONGEST_REASON} characters` })];
  }
  const [next, ...effects] = sent(state, change, reason === '' ? null : reason);
  // What cannot be sent now stays filled in.
  const isSent = effects.some((effect: Effect) => effect.do === 'change');
  return [isSent ? { ...next, layers: next.layers.slice(0, -1) } : next, ...effects];
}

function changeOf(dialog: Dialog): Change | string {
  const { purpose } = dialog;
  const name = valueOf(dialog, 'name').trim();
  const key = valueOf(dialog, 'key').trim();
  switch (purpose.for) {
    case 'change':
      return purpose.typed === null || valueOf(dialog, 'typed').trim() === purpose.typed
        ? purpose.change
        : `Type ${purpose.typed} to confirm`;
    case 'new-token':
      return tokenCreate(dialog);
    case 'new-project':
      if (name === '') return 'It needs a name';
      return key === '' ? "It needs the provider's key" : { what: 'create-project', name, key: new Hidden(key) };
    case 'rename':
      return name === '' ? 'It needs a name' : { what: 'update-project', project: purpose.project, body: { name } };
    case 'set-key':
      return key === ''
        ? "It needs the provider's key"
        : { what: 'update-project', project: purpose.project, body: {}, key: new Hidden(key) };
    case 'purge': {
      const body = purgeBody(dialog);
      return typeof body === 'string' ? body : { what: 'purge', body };
    }
  }
}

const requests = integer(0, 2_147_483_647);

function tokenCreate(dialog: Dialog): Change | string {
  const duration = lifetime.parse(valueOf(dialog, 'duration').trim());
  if (!duration) return `Expires in: ${lifetime.accepts}`;
  const given = valueOf(dialog, 'max').trim();
  const max = given === '' ? undefined : requests.parse(given);
  if (given !== '' && max === undefined) return `Requests: ${requests.accepts}`;
  const name = valueOf(dialog, 'name').trim();
  const body: TokenCreate = {
    project_id: valueOf(dialog, 'project'),
    ...duration,
    ...(max !== undefined && { max_requests: max }),
    ...(name !== '' && { name }),
  };
  return { what: 'create-token', body };
}

/** A token that lives longer than is wise; null: it does not. */
export function warningOf(dialog: Dialog): string | null {
  if (dialog.purpose.for !== 'new-token') return null;
  const duration = lifetime.parse(valueOf(dialog, 'duration').trim());
  const hours = duration?.duration_hours ?? (duration?.duration_minutes ?? 0) / 60;
  return hours > LONGEST_RECOMMENDED_HOURS ? `more than the recommended ${LONGEST_RECOMMENDED_HOURS} hours` : null;
}
