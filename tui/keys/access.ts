/** Keys of the lists of operators and trusts, and of the details of one. */
import * as access from '../state/access.js';
import { activateOperator, deactivateOperator } from '../state/operator-forms.js';
import * as forms from '../state/forms.js';
import * as navigation from '../state/navigation.js';
import { deedOf } from '../state/permitted.js';
import { refreshed } from '../state/refreshing.js';
import { selfSentences } from '../state/self.js';
import {
  ACCESS_LISTS,
  type AccessList,
  SCREENS,
  type State,
  type Transition,
  view,
  whyNoChange,
  withMessage,
} from '../state/state.js';
import { firstOf, named } from './binding.js';

/** One of the lists takes the place of the other. */
export function showAccess(state: State, screen: AccessList): Transition {
  const isOnList = ACCESS_LISTS.some((list) => list === view(state).screen);
  const below = isOnList ? { ...state, views: state.views.slice(0, -1) } : state;
  return refreshed(navigation.opened(below, { screen }));
}

/** Says who is logged in, and what that allows. */
export function showSelf(state: State): Transition {
  const sentences = selfSentences(state);
  if (sentences.length === 0) return [withMessage(state, 'Not known yet', 'bad')];
  return [
    navigation.above(state, { kind: 'notice', title: 'Who is logged in', sentences, isPlain: true, scrolled: 0 }),
  ];
}

type Operator = NonNullable<ReturnType<typeof access.operator>>;

const noOperator = (state: State) => (access.operator(state) ? null : 'No operator here');
const noTrust = (state: State) => (access.trust(state) ? null : 'No trust here');

const onOperator =
  (act: (state: State, operator: Operator) => Transition) =>
  (state: State): Transition => {
    const operator = access.operator(state);
    return operator ? act(state, operator) : [state];
  };

const opened = (state: State, screen: 'operator' | 'trust', id: string): Transition =>
  refreshed({ ...navigation.opened(state, { screen, id }), access: { ...state.access, top: 0 } });

const copied = (state: State, id: string | undefined): Transition =>
  id === undefined ? [state] : [state, { do: 'copy', text: id, what: 'The ID' }];

export const ACCESS_BINDINGS = named('access', [
  {
    keys: ['O'],
    on: SCREENS,
    label: 'operators',
    meaning: 'show the operators: who has access, and with which role',
    needs: deedOf('operators'),
    run: (state) => showAccess(state, 'operators'),
  },
  {
    keys: ['T'],
    on: SCREENS,
    label: 'trusts',
    meaning: 'show the trusts: whose JWTs are exchanged for tokens',
    needs: deedOf('trusts'),
    run: (state) => showAccess(state, 'trusts'),
  },
  {
    name: 'operator',
    keys: ['enter', 'l', 'right'],
    on: ['operators'],
    label: 'detail',
    meaning: 'show the operator',
    footer: 1,
    whyDisabled: noOperator,
    run: onOperator((state, { id }) => opened(state, 'operator', id)),
  },
  {
    name: 'new-operator',
    keys: ['n'],
    on: ['operators', 'operator'],
    label: 'new',
    meaning: 'create an operator; its secret is shown once',
    needs: 'createOperator',
    footer: 2,
    whyDisabled: whyNoChange,
    run: forms.newOperator,
  },
  {
    keys: ['d'],
    on: ['operators', 'operator'],
    label: 'deactivate',
    meaning: 'deactivate it, and revoke the tokens that it has issued; asks first',
    needs: 'deactivateOperator',
    footer: 3,
    whyDisabled: firstOf(whyNoChange, noOperator),
    run: onOperator(deactivateOperator),
  },
  {
    keys: ['a'],
    on: ['operators', 'operator'],
    label: 'activate',
    meaning: 'activate it again, with the same secret; asks first',
    needs: 'updateOperator',
    footer: 4,
    whyDisabled: firstOf(whyNoChange, noOperator),
    run: onOperator(activateOperator),
  },
  {
    name: 'copy-operator-id',
    keys: ['y'],
    on: ['operators', 'operator'],
    label: 'copy id',
    meaning: "copy the ID to the terminal's clipboard",
    footer: 5,
    whyDisabled: noOperator,
    run: (state) => copied(state, access.operator(state)?.id),
  },
  {
    name: 'trust',
    keys: ['enter', 'l', 'right'],
    on: ['trusts'],
    label: 'detail',
    meaning: 'show the trust',
    footer: 1,
    whyDisabled: noTrust,
    run(state) {
      const trust = access.trust(state);
      return trust ? opened(state, 'trust', trust.id) : [state];
    },
  },
  {
    name: 'copy-trust-id',
    keys: ['y'],
    on: ['trusts', 'trust'],
    label: 'copy id',
    meaning: "copy the ID to the terminal's clipboard",
    footer: 5,
    whyDisabled: noTrust,
    run: (state) => copied(state, access.trust(state)?.id),
  },
]);
