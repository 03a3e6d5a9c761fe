/** Parses the address of a daemon. */
import { usage } from '../../console/failure.js';

export interface Server {
  url: string;
  socketPath: string | undefined;
  shown: string;
  /** Whether it uses http to another machine. */
  isClearText: boolean;
}

/** @param what its name in messages. @throws {Failure} if `text` is not a valid address; the message does not repeat a password. */
export function serverOf(text: string, what = '--server'): Server {
  const socket = /^unix:(.+)$/.exec(text);
  if (socket) return { url: 'http://localhost', socketPath: socket[1], shown: text, isClearText: false };

  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The messages do not quote the value: it may contain a password, which must not reach a log as well.
  if (url?.username || url?.password) {
    throw usage(`${what} must not contain credentials`, { advice: 'Give only the address: http://HOST:PORT' });
  }
  const isPlain = url && /^https?:$/.test(url.protocol) && url.pathname === '/' && !url.search && !url.hash;
  if (!isPlain) {
    const hasPath = url && /^https?:$/.test(url.protocol) && url.pathname !== '/';
    throw usage(`${what} must be http://HOST:PORT, https://HOST:PORT or unix:PATH`, {
      ...(hasPath && { advice: `Omit the path: ${url.origin}` }),
    });
  }
  const isClearText = url.protocol === 'http:' && !isLoopback(url.hostname);
  return { url: url.origin, socketPath: undefined, shown: url.origin, isClearText };
}

function isLoopback(host: string): boolean {
  return /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host);
}
