/** Keys of the lists of operators and trusts, and of the details of one of them. */
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
import { type Binding, firstOf, named } from './binding.js';

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

const noOperator = (state: State) => (access.operator(state) ? null : 'No operator here');

const onOperator =
  (act: (state: State, operator: NonNullable<ReturnType<typeof access.operator>>) => Transition) =>
  (state: State): Transition => {
    const operator = access.operator(state);
    return operator ? act(state, operator) : [state];
  };

interface Kind {
  list: AccessList;
  /** Shows the list from every screen. */
  key: string;
  meaning: string;
  target: (state: State) => { id: string } | undefined;
}

/** The keys that all lists have. */
function bindingsOf({ list, key, meaning, target }: Kind): readonly Binding[] {
  const detail = access.DETAILS[list];
  const whyDisabled = (state: State) => (target(state) ? null : `No ${detail} here`);
  const onTarget =
    (act: (state: State, id: string) => Transition) =>
    (state: State): Transition => {
      const it = target(state);
      return it ? act(state, it.id) : [state];
    };
  return [
    { keys: [key], on: SCREENS, label: list, meaning, needs: deedOf(list), run: (state) => showAccess(state, list) },
    {
      name: detail,
      keys: ['enter', 'l', 'right'],
      on: [list],
      label: 'detail',
      meaning: `show the ${detail}`,
      footer: 1,
      whyDisabled,
      run: onTarget((state, id) =>
        refreshed({
          ...navigation.opened(state, { screen: detail, id }),
          access: { ...state.access, top: 0 },
        }),
      ),
    },
    {
      name: `copy-${detail}-id`,
      keys: ['y'],
      on: [list, detail],
      label: 'copy id',
      meaning: "copy the ID to the terminal's clipboard",
      footer: 5,
      whyDisabled,
      run: onTarget((state, id) => [state, { do: 'copy', text: id, what: 'The ID' }]),
    },
  ];
}

export const ACCESS_BINDINGS = named('access', [
  ...bindingsOf({
    list: 'operators',
    key: 'O',
    meaning: 'show the operators: who has access, and with which role',
    target: access.operator,
  }),
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
  ...bindingsOf({
    list: 'trusts',
    key: 'T',
    meaning: 'show the trusts: whose JWTs are exchanged for tokens',
    target: access.trust,
  }),
]);
