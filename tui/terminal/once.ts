import type { ReactNode } from 'react';
import { fitLine } from './fit.js';
import { FrameStdout } from './frame.js';
import type { Clock, Size } from './io.js';
import { mount } from './mount.js';
import type { Output } from './output.js';

/** One frame as lines, for whoever reads no more than that. Imported after `prepareLibraries`. */
export function textOf(element: ReactNode, size: Size, isUtf8: boolean): string {
  const clock: Clock = { monotonic: () => 0, after: () => () => undefined };
  // Nothing is painted: the frame is taken as Ink hands it over.
  const output = { isClogged: true } as Output;
  const frames = new FrameStdout({ output, clock, size: () => size, isUtf8 });
  const errors: unknown[] = [];
  const mounted = mount(frames, (error) => errors.push(error));
  mounted.show(element, size);
  const frame = frames.last.split('\n');
  const lines = Array.from({ length: size.rows }, (_, row) => frame[row] ?? '');
  mounted.unmount();
  if (errors.length > 0) throw errors[0] as Error;
  return lines.map((line) => fitLine(line, size.columns, isUtf8).trimEnd()).join('\n');
}
