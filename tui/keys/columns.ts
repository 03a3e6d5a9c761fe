/** Keys of the choice of columns. */
import * as columns from '../state/columns.js';
import { closed } from '../state/navigation.js';
import { changeLayer, named, onLayer } from './binding.js';

export const COLUMN_BINDINGS = named('columns', [
  {
    keys: ['space'],
    on: ['columns'],
    label: 'show or hide',
    meaning: 'show or hide the column',
    footer: 1,
    run: changeLayer('columns', columns.toggled),
  },
  {
    keys: ['J', 'shift+down'],
    on: ['columns'],
    label: 'move down',
    meaning: 'move the column towards the end',
    footer: 2,
    run: changeLayer('columns', columns.movedBy(1)),
  },
  {
    keys: ['K', 'shift+up'],
    on: ['columns'],
    label: 'move up',
    meaning: 'move the column towards the beginning',
    footer: 3,
    run: changeLayer('columns', columns.movedBy(-1)),
  },
  {
    keys: ['enter'],
    on: ['columns'],
    label: 'save',
    meaning: 'save the columns, for this list or for the saved view that is shown',
    footer: 4,
    run: onLayer('columns', columns.applied),
  },
  {
    keys: ['r'],
    on: ['columns'],
    label: 'reset',
    meaning: 'choose the default columns',
    footer: 5,
    run: changeLayer('columns', columns.reset),
  },
  {
    keys: ['escape', 'q', 'ctrl+c'],
    on: ['columns'],
    label: 'cancel',
    meaning: 'close without changing anything',
    footer: 6,
    isAlwaysShown: true,
    run: (state) => [closed(state)],
  },
  {
    keys: ['down', 'j', 'ctrl+n', 'tab'],
    on: ['columns'],
    label: 'down',
    meaning: 'move down',
    run: changeLayer('columns', columns.selectedBy(1)),
  },
  {
    keys: ['up', 'k', 'ctrl+p', 'shift+tab'],
    on: ['columns'],
    label: 'up',
    meaning: 'move up',
    run: changeLayer('columns', columns.selectedBy(-1)),
  },
]);
