/** Ink, as we use it. Imported only after the environment is prepared for it. */
import { Readable } from 'node:stream';
import { Box, type Instance, render } from 'ink';
import { Component, type ReactNode } from 'react';
import type { FrameStdout } from './frame.js';
import type { Size } from '../../console/terminal-io.js';

const NOTHING = 'nothing could be laid out; React must not be imported before the environment is prepared for it';

interface BoundaryProps {
  onError: (error: unknown) => void;
  children: ReactNode;
}

/** In front of Ink's own, which would draw the error and a piece of the source on the screen. */
class Boundary extends Component<BoundaryProps, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override componentDidCatch(error: unknown) {
    this.props.onError(error);
  }

  override render() {
    return this.state.hasFailed ? null : this.props.children;
  }
}

export interface Mounted {
  /** Lays the element out for this size and hands the frame over before it returns. */
  show(element: ReactNode, size: Size): void;
  unmount(): void;
}

export function mount(stdout: FrameStdout, onError: (error: unknown) => void): Mounted {
  let instance: Instance | undefined;
  // The keyboard is read elsewhere.
  const stdin = Object.assign(new Readable({ read: () => undefined }), { isTTY: false });
  const options = {
    stdout: stdout as unknown as NodeJS.WriteStream,
    stdin: stdin as unknown as NodeJS.ReadStream,
    debug: true,
    exitOnCtrlC: false,
    patchConsole: false,
    // Texts are lines below each other, which is all that a screen is made of, and Ink hands them over as they are.
    // Painting them cell by cell into boxes took 32 ms for 200x60, this half of one. A text that is empty is left out,
    // and what is below it moves up.
    isScreenReaderEnabled: true,
  };
  return {
    show(element, { columns, rows }) {
      // The size is part of the tree, so that another one is laid out anew like any other change.
      const tree = (
        <Boundary onError={onError}>
          <Box width={columns} height={rows} flexDirection="column" overflow="hidden">
            {element}
          </Box>
        </Boundary>
      );
      if (instance) instance.rerender(tree);
      else {
        instance = render(tree, options);
        instance.waitUntilExit().catch(onError);
      }
      // Ink keeps to itself what no boundary catches, and lays out nothing. No screen is empty.
      if (stdout.last === '' && rows > 1) onError(new Error(NOTHING));
    },
    unmount() {
      instance?.unmount();
    },
  };
}
