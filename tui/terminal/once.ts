import type { ReactNode } from 'react';
import { fitLine } from './fit.js';
import { FrameStdout } from './frame.js';
import type { Clock, Size } from './io.js';
import { mount } from './mount.js';
import type { Output } from './output.js';

/** One frame as lines, for whoever reads no more than that. Imported after `prepareLibraries`. */
export function textOf(element: ReactNode, size: Size): string {
  const clock: Clock = { monotonic: () => 0, after: () => () => undefined };
  // Nothing is painted: the frame is taken as Ink hands it over.
  const output = { isClogged: true } as Output;
  const frames = new FrameStdout({ output, clock, size: () => size, isUtf8: true });
  const mounted = mount(frames, (error) => {
    throw error;
  });
  mounted.show(element, size);
  const lines = frames.last.split('\n').slice(0, size.rows);
  mounted.unmount();
  return lines.map((line) => fitLine(line, size.columns, true).trimEnd()).join('\n');
}
