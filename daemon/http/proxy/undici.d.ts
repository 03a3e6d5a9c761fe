/* Parts of undici by their own paths. The whole package loads mocks, proxies and fetch: 9 MB that this project does not use. */
declare module 'undici/lib/dispatcher/client.js' {
  import { Client } from 'undici';
  export default Client;
}
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici';
  export default buildConnector;
}
declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici';
  const all: typeof errors;
  export default all;
}
