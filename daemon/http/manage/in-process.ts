import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type RequestListener } from 'node:http';
import { duplexPair, Readable } from 'node:stream';

/**
 * A `fetch` that sends its requests to an app in this process, as HTTP over a pair of in-memory streams. Such requests are parsed,
 * refused and recorded like any others, but need no port, no connection slot, and no address of this server that is valid on every
 * machine. Response bodies are streamed.
 */
export function fetchFrom(app: RequestListener): typeof fetch {
  const server = createServer(app); // Never listens; connections are passed to it.
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const [ours, theirs] = duplexPair();
    server.emit('connection', theirs);
    const outgoing = request({
      createConnection: () => ours,
      method: init.method ?? 'GET',
      path: url.pathname + url.search,
      headers: { host: url.host, ...Object.fromEntries(new Headers(init.headers)) },
      ...(init.signal && { signal: init.signal }),
    });
    outgoing.end(init.body as string | undefined);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const { statusCode: status = 0, headers } = response;
    const fields = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, String(value)]],
    );
    if (WITHOUT_BODY.has(status)) response.resume();
    const body = WITHOUT_BODY.has(status) ? null : (Readable.toWeb(response) as ReadableStream<Uint8Array>);
    return new Response(body, { status, headers: fields });
  };
}

/** `Response` accepts no body with these. */
const WITHOUT_BODY = new Set([204, 205, 304]);
