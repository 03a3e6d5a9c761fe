/** What is filled in: a new token, a new project, a project's name or key, a purge; and what is sent when it is. */
import { integer } from '../../config/kinds.js';
import type { CachePurge, TokenCreateTerms, WireProject } from '../../daemon/api/contract.js';
import { hoursOf, lifetime, LONGEST_RECOMMENDED_HOURS } from '../../console/lifetime.js';
import { sent } from './changing.js';
import { choiceField, confirmationOf, dialogOf, type Problem, refused, textField, valueOf } from './dialog.js';
import type { Change } from './exchange.js';
import { Hidden } from './hidden.js';
import { above } from './navigation.js';
import { ofContext } from './projects.js';
import { type Dialog, layer, saying, type State, type Step, type Undo, whyNoChange, withLayer } from './state.js';
import { filterQuery } from './tokens.js';
import { MAX_CAP, MAX_NAME_LENGTH, MAX_REASON_LENGTH } from '../../daemon/api/vocabulary.js';

/** It becomes part of a header line. */
const KEY = /^[\x21-\x7e]{1,512}$/;

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
  const likely = [projectId, filterQuery(state)?.project_id, ofContext(state)?.id];
  const chosen = likely.find((id) => active.some((project) => project.id === id)) ?? only.id;
  const meant = state.projects.all?.find(({ id }) => id === projectId);
  const isOther = meant !== undefined && meant.id !== chosen;
  const notes = isOther
    ? [{ words: `Project ${meant.name} is inactive: this is for another one.`, isWarning: true }]
    : [];
  return form(
    state,
    dialogOf(
      {
        purpose: { for: 'new-token' },
        title: 'New token',
        action: 'Create',
        notes,
        fields: [
          choiceField(
            'Project',
            active.map(({ id, name }) => ({ value: id, label: name })),
            chosen,
          ),
          textField('Name', { hint: 'who will use it', width: 40 }),
          textField('Expires in', { line: { text: '24h', caret: 3 }, hint: '48h, 90m', width: 10 }),
          textField('Requests', { hint: 'at most; empty: unlimited', width: 12 }),
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
        fields: [textField('Name', { width: 40 }), keyField()],
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
          textField('Name', { line: { text: project.name, caret: project.name.length }, width: 40 }),
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

const TYPED_TO_PURGE = 'purge';

export const purge = (state: State): Step =>
  form(
    state,
    dialogOf(
      {
        purpose: { for: 'purge', typed: state.place.isProtected ? TYPED_TO_PURGE : null },
        title: 'Purge kept answers',
        action: 'Purge',
        fields: [
          choiceField('What', [
            { value: 'url', label: 'one request line' },
            { value: 'project', label: 'all of a project' },
            { value: 'all', label: 'everything' },
          ]),
          {
            ...choiceField('Method', [
              { value: 'GET', label: 'GET' },
              { value: 'POST', label: 'POST' },
            ]),
            onlyIf: { field: 'What', value: 'url' },
          },
          textField('Path', {
            line: { text: '/v1/', caret: 4 },
            hint: 'with its query',
            width: 40,
            onlyIf: { field: 'What', value: 'url' },
          }),
          {
            ...choiceField(
              'Project',
              (state.projects.all ?? []).map(({ id, name }) => ({ value: id, label: name })),
            ),
            onlyIf: { field: 'What', value: 'project' },
          },
          reasonField(),
          ...(state.place.isProtected ? [textField(confirmationOf(TYPED_TO_PURGE), { width: 30 })] : []),
        ],
      },
      'field',
    ),
  );

const keyField = () => textField("Provider's key", { isSecret: true, hint: 'never shown again', width: 40 });
const reasonField = () => textField('Reason', { hint: 'goes into the audit record', width: 40 });

function form(state: State, dialog: Dialog): Step {
  const why = whyNoChange(state);
  return why === null ? previewed(above(state, dialog)) : [saying(state, why, 'bad')];
}

/** What a purge is of, as far as it can be told from what is filled in. */
export function purgeBody(dialog: Dialog): CachePurge | Problem {
  switch (valueOf(dialog, 'What')) {
    case 'all':
      return { all: true };
    case 'project': {
      const id = valueOf(dialog, 'Project');
      return id === '' ? { field: 'What', words: 'There is no project' } : { project_id: id };
    }
    default: {
      const url = valueOf(dialog, 'Path').trim();
      const method = valueOf(dialog, 'Method') === 'POST' ? 'POST' : 'GET';
      return /^\/v1(?:[/?]|$)/.test(url) ? { method, url } : { field: 'Path', words: 'The path begins with /v1' };
    }
  }
}

const isProblem = (it: object): it is Problem => 'words' in it;

const AFTER_MS = 250;

/** Something was typed: how many answers a purge would remove is asked in a moment. */
export function changed(state: State, dialog: Dialog): Step {
  const next = withLayer(state, dialog);
  if (dialog.purpose.for !== 'purge' || isPreviewed(next, purgeBody(dialog))) return [next];
  const untold = { ...next, cache: { ...next.cache, preview: null } };
  return [untold, { do: 'wake', name: 'filter', afterMs: AFTER_MS }];
}

const isPreviewed = ({ cache: { preview } }: State, body: CachePurge | Problem) =>
  preview !== null && !isProblem(body) && JSON.stringify(preview.body) === JSON.stringify(body);

/** Asks how many answers the purge that is filled in would remove. */
export function previewed(state: State): Step {
  const dialog = layer(state);
  if (dialog?.kind !== 'dialog' || dialog.purpose.for !== 'purge') return [state];
  const body = purgeBody(dialog);
  const preview = isProblem(body) ? null : { body, count: null, failure: null };
  const next = { ...state, cache: { ...state.cache, preview } };
  return isProblem(body) ? [next] : [next, { do: 'ask', question: { of: 'purgeable', body } }];
}

/** Sends what the dialog is for, or says what is wrong with it. */
export function submitted(state: State, dialog: Dialog): Step {
  const change = changeOf(dialog);
  if (isProblem(change)) return [withLayer(state, refused(dialog, change))];
  const reason = valueOf(dialog, 'Reason').trim();
  if (Array.from(reason).length > MAX_REASON_LENGTH) {
    const words = `A reason has at most ${MAX_REASON_LENGTH} characters`;
    return [withLayer(state, refused(dialog, { field: 'Reason', words }))];
  }
  // What cannot be sent now stays filled in.
  const why = whyNoChange(state);
  if (why !== null) return [withLayer(state, refused(dialog, { field: null, words: why }))];
  const closed = { ...state, layers: state.layers.slice(0, -1) };
  const { purpose } = dialog;
  // Its time may have run out while the question was read: it is an undo all the same.
  const undo = purpose.for === 'change' && purpose.isUndo ? (state.undo ?? overdue(purpose.change)) : null;
  return sent(undo === null ? closed : { ...closed, undo: null }, change, reason === '' ? null : reason, {
    form: purpose.for === 'change' ? null : dialog,
    undo,
  });
}

const overdue = (change: Change): Undo => ({ change, untilMs: 0, question: null });

function changeOf(dialog: Dialog): Change | Problem {
  const { purpose } = dialog;
  switch (purpose.for) {
    case 'change':
      return isTyped(dialog, purpose.typed) ?? purpose.change;
    case 'new-token':
      return tokenCreate(dialog);
    case 'new-project': {
      const name = nameIn(dialog);
      if (isProblem(name)) return name;
      const key = keyIn(dialog);
      return isProblem(key) ? key : { what: 'create-project', ...name, ...key };
    }
    case 'rename': {
      const name = nameIn(dialog);
      return isProblem(name) ? name : { what: 'update-project', project: purpose.project, body: name };
    }
    case 'set-key': {
      const key = keyIn(dialog);
      return isProblem(key) ? key : { what: 'update-project', project: purpose.project, body: {}, ...key };
    }
    case 'purge': {
      const body = purgeBody(dialog);
      if (isProblem(body)) return body;
      return isTyped(dialog, purpose.typed) ?? { what: 'purge', body };
    }
  }
}

/** @returns null when it is, or need not be. */
function isTyped(dialog: Dialog, word: string | null): Problem | null {
  if (word === null) return null;
  const field = confirmationOf(word);
  return valueOf(dialog, field).trim() === word.trim() ? null : { field, words: field };
}

function nameIn(dialog: Dialog): { name: string } | Problem {
  const name = valueOf(dialog, 'Name').trim();
  if (name === '') return { field: 'Name', words: 'It needs a name' };
  return isTooLong(name) ? TOO_LONG : { name };
}

const isTooLong = (name: string) => Array.from(name).length > MAX_NAME_LENGTH;
const TOO_LONG: Problem = { field: 'Name', words: `A name has at most ${MAX_NAME_LENGTH} characters` };

function keyIn(dialog: Dialog): { key: Hidden } | Problem {
  const key = valueOf(dialog, "Provider's key").trim();
  if (key === '') return { field: "Provider's key", words: "It needs the provider's key" };
  return KEY.test(key)
    ? { key: new Hidden(key) }
    : { field: "Provider's key", words: 'A key has 1 to 512 visible ASCII characters and no spaces' };
}

const requests = integer(0, MAX_CAP);

function tokenCreate(dialog: Dialog): Change | Problem {
  const duration = lifetime.parse(valueOf(dialog, 'Expires in').trim());
  if (!duration) return { field: 'Expires in', words: `Expires in: ${lifetime.accepts}` };
  const given = valueOf(dialog, 'Requests').trim();
  const max = given === '' ? undefined : requests.parse(given);
  if (given !== '' && max === undefined) return { field: 'Requests', words: `Requests: ${requests.accepts}` };
  const name = valueOf(dialog, 'Name').trim();
  if (isTooLong(name)) return TOO_LONG;
  const terms: TokenCreateTerms = {
    project_id: valueOf(dialog, 'Project'),
    max_requests: max,
    name: name === '' ? undefined : name,
  };
  return { what: 'create-token', body: { ...terms, ...duration } };
}

/** A token that lives longer than is wise; null: it does not. */
export function warningOf(dialog: Dialog): string | null {
  if (dialog.purpose.for !== 'new-token') return null;
  const hours = hoursOf(lifetime.parse(valueOf(dialog, 'Expires in').trim()));
  return hours > LONGEST_RECOMMENDED_HOURS ? `more than the recommended ${LONGEST_RECOMMENDED_HOURS} hours` : null;
}
