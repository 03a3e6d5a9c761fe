/** Clients that speak something else to a port of plain HTTP/1.1, by their first bytes. */

export interface Foreign {
  protocol: string;
  /** What is wrong and what to do, for the client and for the log. */
  message: string;
}

const TLS: Foreign = {
  protocol: 'TLS',
  message:
    'this port speaks plain HTTP/1.1, and the client began a TLS handshake: use http:// in its base URL, or put a proxy that speaks TLS in front',
};
const HTTP_2: Foreign = {
  protocol: 'HTTP/2',
  message:
    'this port speaks HTTP/1.1, and the client began with HTTP/2: let it use HTTP/1.1, or put a proxy that speaks HTTP/2 in front',
};

// A record of a handshake (22), in SSL 3.0 or TLS 1.x (3).
const HANDSHAKE = 22;
const MAJOR_VERSION = 3;

/**
 * @param code of the error that the parser gave up with.
 * @param last what was read last.
 * @param isFirst whether that is all there was on the connection so far.
 */
export function foreignProtocolOf(code: string | undefined, last: Buffer, isFirst: boolean): Foreign | null {
  // The parser knows the preface to its end, also when it comes in pieces.
  if (code === 'HPE_PAUSED_H2_UPGRADE') return HTTP_2;
  if (!isFirst) return null;
  if (last[0] === HANDSHAKE && (last.length === 1 || last[1] === MAJOR_VERSION)) return TLS;
  return last.subarray(0, 14).toString('latin1') === 'PRI * HTTP/2.0' ? HTTP_2 : null;
}
