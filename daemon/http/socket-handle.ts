/** The handle beneath a socket, which Node reads. Undocumented, but unchanged since Node 12. */
import type { Socket } from 'node:net';

type Handled = Socket & { _handle?: { reading: boolean; readStart(): void; readStop(): void } | null };

/** Nothing more is read, not even the end of the connection. A paused stream would still be read ahead. */
export function stopHandle(socket: Socket): void {
  const { _handle: handle } = socket as Handled;
  if (handle?.reading !== true) return;
  handle.reading = false;
  handle.readStop();
}

/** Undoes `stopHandle`. The stream by itself would not read again: to it, a read is still under way. */
export function startHandle(socket: Socket): void {
  const { _handle: handle } = socket as Handled;
  if (!handle || handle.reading) return;
  handle.reading = true;
  handle.readStart();
}
