/** Keys of the list of projects. */
import * as changing from '../state/changes.js';
import { filterOfProject } from '../state/filtering.js';
import * as forms from '../state/forms.js';
import * as navigation from '../state/navigation.js';
import * as detail from '../state/project.js';
import * as projects from '../state/projects.js';
import { refreshed } from '../state/refreshing.js';
import { type State, type Transition, whyNoChange } from '../state/state.js';
import * as tokens from '../state/tokens.js';
import { firstOf, named, step } from './binding.js';
import { showEvents } from './feeds.js';

type Project = NonNullable<ReturnType<typeof detail.target>>;

function showTokens(state: State, project: Project): Transition {
  const filter = filterOfProject(state, project);
  return refreshed(tokens.withNewList(navigation.opened(state, { screen: 'tokens' }), { filter }));
}

const noProject = (state: State) => (detail.target(state) ? null : 'No project here');

/** Runs with the project under the cursor. */
const onProject =
  (act: (state: State, project: Project) => Transition) =>
  (state: State): Transition => {
    const project = detail.target(state);
    return project ? act(state, project) : [state];
  };

export const PROJECT_BINDINGS = named('projects', [
  {
    keys: ['enter', 'l', 'right'],
    on: ['projects'],
    label: 'detail',
    meaning: 'show the project',
    footer: 1,
    whyDisabled: noProject,
    run: onProject((state, { id }) => detail.open(state, id)),
  },
  {
    keys: ['t'],
    on: ['projects'],
    label: 'its tokens',
    meaning: 'show its tokens',
    footer: 1.5,
    whyDisabled: noProject,
    run: onProject(showTokens),
  },
  {
    name: 'tokens-of-it',
    keys: ['enter', 't', 'l', 'right'],
    on: ['project'],
    label: 'its tokens',
    meaning: 'show its tokens',
    footer: 1,
    whyDisabled: noProject,
    run: onProject(showTokens),
  },
  {
    keys: ['n'],
    on: ['projects'],
    label: 'new',
    meaning: 'create a project',
    needs: 'createProject',
    footer: 2,
    whyDisabled: whyNoChange,
    run: forms.newProject,
  },
  {
    keys: ['N'],
    on: ['projects', 'project'],
    label: 'new token',
    meaning: 'issue a new token for this project',
    needs: 'createToken',
    whyDisabled: firstOf(whyNoChange, noProject),
    run: onProject((state, { id }) => forms.newToken(state, id)),
  },
  {
    keys: ['a'],
    on: ['projects', 'project'],
    label: 'activate',
    meaning: 'activate it: its tokens work again',
    needs: 'updateProject',
    footer: 3,
    whyDisabled: firstOf(whyNoChange, noProject),
    run: onProject((state, project) => changing.projectActive(state, project, true)),
  },
  {
    keys: ['d'],
    on: ['projects', 'project'],
    label: 'deactivate',
    meaning: 'deactivate it: its tokens are refused; asks first',
    needs: 'updateProject',
    footer: 4,
    whyDisabled: firstOf(whyNoChange, noProject),
    run: onProject((state, project) => changing.projectActive(state, project, false)),
  },
  {
    keys: ['X'],
    on: ['projects', 'project'],
    label: 'revoke all',
    meaning: 'revoke all of its tokens; asks first',
    needs: 'revokeTokensOfProject',
    footer: 12,
    whyDisabled: firstOf(whyNoChange, noProject),
    run: onProject(changing.revokeAll),
  },
  {
    keys: ['e'],
    on: ['projects', 'project'],
    label: 'rename',
    meaning: 'rename it',
    needs: 'updateProject',
    whyDisabled: firstOf(whyNoChange, noProject),
    run: onProject(forms.rename),
  },
  {
    keys: ['K'],
    on: ['projects', 'project'],
    label: 'set key',
    meaning: 'change its upstream key, which is checked with the provider first',
    needs: 'updateProject',
    footer: 2.5,
    whyDisabled: firstOf(whyNoChange, noProject),
    run: onProject(forms.setKey),
  },
  {
    keys: ['P'],
    on: ['projects', 'project'],
    label: 'provider',
    meaning: 'change its provider; one on another host needs its key',
    needs: 'updateProject',
    footer: 5.5,
    whyDisabled: firstOf(whyNoChange, noProject),
    run: onProject(forms.setProvider),
  },
  {
    keys: ['L'],
    on: ['projects', 'project'],
    label: 'limits',
    meaning: 'change what its tokens may use, and how fast',
    needs: 'updateProject',
    whyDisabled: firstOf(whyNoChange, noProject),
    run: onProject(forms.restrictProject),
  },
  {
    keys: ['$'],
    on: ['projects', 'project'],
    label: 'budget',
    meaning: 'change what all its tokens together may spend',
    needs: 'updateProject',
    footer: 8.7,
    whyDisabled: firstOf(whyNoChange, noProject),
    run: onProject(forms.budgetProject),
  },
  {
    keys: ['v'],
    on: ['projects', 'project'],
    label: 'check',
    meaning: 'check whether its provider responds and accepts the key',
    needs: 'checkProject',
    footer: 5,
    whyDisabled: noProject,
    run: onProject(detail.checked),
  },
  {
    keys: ['f'],
    on: ['projects', 'project'],
    label: 'live events',
    meaning: 'show its requests and changes as they occur',
    needs: 'listEvents',
    whyDisabled: noProject,
    run: onProject((state, project) => showEvents(state, filterOfProject(state, project))),
  },
  {
    keys: ['y'],
    on: ['projects', 'project'],
    label: 'copy id',
    meaning: "copy the ID to the terminal's clipboard",
    whyDisabled: noProject,
    run: onProject((state, { id }) => [state, { do: 'copy', text: id, what: 'The ID' }]),
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
    meaning: 'reverse the sort order',
    run: step((state) => projects.arranged(state, { isDescending: !state.projects.isDescending })),
  },
]);
