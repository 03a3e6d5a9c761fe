import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type RequestListener } from 'node:http';
import { duplexPair } from 'node:stream';
import { buffer } from 'node:stream/consumers';

/**
 * A `fetch` whose requests go to an app in this process, as HTTP over a pair of streams in memory. Whoever asks so is read, refused and
 * recorded like anybody else, and yet needs no port, no free place among the connections, and no address of ours that would be right
 * on every machine. Answers are held until they are whole: it is not for streams.
 */
export function fetchFrom(app: RequestListener): typeof fetch {
  const server = createServer(app); // Which never listens: it is handed its connections.
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const [ours, theirs] = duplexPair();
    server.emit('connection', theirs);
    const asking = request({
      createConnection: () => ours,
      method: init.method ?? 'GET',
      path: url.pathname + url.search,
      headers: { host: url.host, ...Object.fromEntries(new Headers(init.headers)) },
      ...(init.signal && { signal: init.signal }),
    });
    asking.end(init.body as string | undefined);
    const [answer] = (await once(asking, 'response')) as [IncomingMessage];
    const body = await buffer(answer);
    const { statusCode: status = 0, headers } = answer;
    const fields = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, String(value)]],
    );
    return new Response(WITHOUT_BODY.has(status) ? null : body, { status, headers: fields });
  };
}

/** `Response` takes none with these. */
const WITHOUT_BODY = new Set([204, 205, 304]);
