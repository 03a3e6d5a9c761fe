/** Mounts Ink. Import this module only after `prepareLibraries`. */
import { Readable } from 'node:stream';
import { Box, type Instance, render } from 'ink';
import { Component, type ReactNode } from 'react';
import type { FrameStdout } from './frame.js';
import type { Size } from '../../console/terminal-io.js';

const NOTHING = 'Ink rendered nothing: React must not be imported before prepareLibraries() has set the environment';

interface BoundaryProps {
  onError: (error: unknown) => void;
  children: ReactNode;
}

/** Error boundary inside Ink's own, which would draw the error with source code on the screen. */
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
  /** Lays out the element for this size, and writes the frame to `stdout` before it returns. */
  show(element: ReactNode, size: Size): void;
  unmount(): void;
}

export function mount(stdout: FrameStdout, onError: (error: unknown) => void): Mounted {
  let instance: Instance | undefined;
  // Input is read by `openTerminal`, not by Ink.
  const stdin = Object.assign(new Readable({ read: () => undefined }), { isTTY: false });
  const options = {
    stdout: stdout as unknown as NodeJS.WriteStream,
    stdin: stdin as unknown as NodeJS.ReadStream,
    debug: true,
    exitOnCtrlC: false,
    patchConsole: false,
    // In this mode Ink outputs texts as lines, which is all that a screen consists of. Painting cells took 32 ms for 200x60, this takes
    // half a millisecond. An empty text is omitted, and the lines below it move up.
    isScreenReaderEnabled: true,
  };
  return {
    show(element, { columns, rows }) {
      // The size is part of the tree, so that a resize is laid out like any other change.
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
      // Ink hides errors that no boundary catches, and then renders nothing. A real screen is never empty.
      if (stdout.last === '' && rows > 1) onError(new Error(NOTHING));
    },
    unmount() {
      instance?.unmount();
    },
  };
}
