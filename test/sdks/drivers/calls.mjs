/** What the calls of all SDKs contain. */

export const messages = (call) => [{ role: 'user', content: textOf(call) }];
export const textOf = ({ size = 5 }) => 'x'.repeat(size);
/** Of the tool `weather`. */
export const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
