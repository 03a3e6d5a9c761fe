/** Detects other protocols on a port of plain HTTP/1.1 by their first bytes. */

export interface ForeignProtocol {
  protocol: string;
  /** What is wrong and what to do; for the client and for the log. */
  message: string;
}

const TLS: ForeignProtocol = {
  protocol: 'TLS',
  message:
    'the client started a TLS handshake, but this port serves plain HTTP/1.1: use http:// in the base URL, or put a TLS proxy in front',
};
const HTTP_2: ForeignProtocol = {
  protocol: 'HTTP/2',
  message:
    'the client started with HTTP/2, but this port serves HTTP/1.1: configure the client for HTTP/1.1, or put an HTTP/2 proxy in front',
};

// A TLS handshake record (22) of SSL 3.0 or TLS 1.x (3).
const HANDSHAKE = 22;
const MAJOR_VERSION = 3;

/**
 * @param code of the parser's error.
 * @param last the last bytes read.
 * @param isFirst whether these are the first bytes on the connection.
 */
export function foreignProtocolOf(code: string | undefined, last: Buffer, isFirst: boolean): ForeignProtocol | null {
  // The parser recognises the complete preface, also when it arrives in parts.
  if (code === 'HPE_PAUSED_H2_UPGRADE') return HTTP_2;
  if (!isFirst) return null;
  if (last[0] === HANDSHAKE && (last.length === 1 || last[1] === MAJOR_VERSION)) return TLS;
  return last.subarray(0, 14).toString('latin1') === 'PRI * HTTP/2.0' ? HTTP_2 : null;
}
