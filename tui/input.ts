/** All input of the operator: keys, pastes and the mouse. */
export { key, paste } from './keys/press.js';
export { mouse } from './pointing.js';
