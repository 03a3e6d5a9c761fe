export interface FrameOptions {
  opcode?: number;
  isFinal?: boolean;
  /** Reserved bits, as they are in the first byte. */
  rsv?: number;
  /** As a client must. */
  isMasked?: boolean;
}

/** A WebSocket frame (RFC 6455, 5.2). */
export function frameOf(
  payload: string | Buffer,
  { opcode = 1, isFinal = true, rsv = 0, isMasked = false }: FrameOptions = {},
): Buffer<ArrayBuffer> {
  const body = Buffer.from(payload);
  const { length } = body;
  const short = length < 126 ? length : length < 65_536 ? 126 : 127;
  const long = Buffer.alloc(short === 127 ? 8 : short === 126 ? 2 : 0);
  if (short === 126) long.writeUInt16BE(length);
  if (short === 127) long.writeBigUInt64BE(BigInt(length));
  const mask = Buffer.from(isMasked ? [0x12, 0x88, 0xff, 0x01] : []);
  const masked = isMasked ? Buffer.from(body.map((byte, i) => byte ^ (mask[i % 4] ?? 0))) : body;
  const head = [(isFinal ? 0x80 : 0) | rsv | opcode, short | (isMasked ? 0x80 : 0)];
  return Buffer.concat([Buffer.from(head), long, mask, masked]);
}
