/** The keys of the list of projects. */
import * as changing from '../state/changing.js';
import { filterOfProject } from '../state/filtering.js';
import * as forms from '../state/forms.js';
import * as navigation from '../state/navigation.js';
import * as projects from '../state/projects.js';
import { refreshed } from '../state/refreshing.js';
import { type State, type Step, whyNoChange } from '../state/state.js';
import * as tokens from '../state/tokens.js';
import { type Binding, firstOf, step } from './binding.js';

const noProject = (state: State) => (projects.underCursor(state) ? null : 'There is no project here');

/** Runs with the project under the cursor. */
const onProject =
  (act: (state: State, project: NonNullable<ReturnType<typeof projects.underCursor>>) => Step) =>
  (state: State): Step => {
    const project = projects.underCursor(state);
    return project ? act(state, project) : [state];
  };

export const PROJECT_BINDINGS: readonly Binding[] = [
  {
    keys: ['enter', 'l', 'right'],
    on: ['projects'],
    label: 'its tokens',
    meaning: 'its tokens',
    footer: 1,
    unless: noProject,
    run: onProject((state, project) => {
      const filter = filterOfProject(state, project);
      return refreshed(tokens.listed(navigation.opened(state, { screen: 'tokens' }), { filter }));
    }),
  },
  {
    keys: ['n'],
    on: ['projects'],
    label: 'new',
    meaning: 'make a new project',
    footer: 2,
    unless: whyNoChange,
    run: forms.newProject,
  },
  {
    keys: ['N'],
    on: ['projects'],
    label: 'new token',
    meaning: 'issue a new token of this project',
    unless: firstOf(whyNoChange, noProject),
    run: onProject((state, { id }) => forms.newToken(state, id)),
  },
  {
    keys: ['a'],
    on: ['projects'],
    label: 'activate',
    meaning: 'let its tokens through again',
    footer: 3,
    unless: firstOf(whyNoChange, noProject),
    run: onProject((state, project) => changing.projectActive(state, project, true)),
  },
  {
    keys: ['d'],
    on: ['projects'],
    label: 'deactivate',
    meaning: 'let none of its tokens through, after a question',
    footer: 4,
    unless: firstOf(whyNoChange, noProject),
    run: onProject((state, project) => changing.projectActive(state, project, false)),
  },
  {
    keys: ['X'],
    on: ['projects'],
    label: 'revoke all',
    meaning: 'revoke all of its tokens, after a question',
    footer: 5,
    unless: firstOf(whyNoChange, noProject),
    run: onProject(changing.revokeAll),
  },
  {
    keys: ['e'],
    on: ['projects'],
    label: 'rename',
    meaning: 'give it another name',
    unless: firstOf(whyNoChange, noProject),
    run: onProject(forms.rename),
  },
  {
    keys: ['K'],
    on: ['projects'],
    label: 'set key',
    meaning: 'give it another key of the provider',
    unless: firstOf(whyNoChange, noProject),
    run: onProject(forms.setKey),
  },
  {
    keys: ['y'],
    on: ['projects'],
    label: 'copy id',
    meaning: "send the id to the terminal's clipboard",
    unless: noProject,
    run: onProject((state, { id }) => [state, { do: 'copy', text: id, what: 'The id' }]),
  },
  {
    keys: ['s'],
    on: ['projects'],
    label: 'sort',
    meaning: 'sort by the next column',
    footer: 8,
    run: step(projects.ordered),
  },
  {
    keys: ['S'],
    on: ['projects'],
    label: 'reverse',
    meaning: 'sort the other way round',
    run: step((state) => projects.arranged(state, { isDescending: !state.projects.isDescending })),
  },
];
