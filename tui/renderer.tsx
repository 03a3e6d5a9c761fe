/**
 * Renders a state: Ink lays out the components, `paint.ts` paints what it has laid out. Import this module only after NODE_ENV is set:
 * React reads it when it is loaded.
 */
import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import { Box, type DOMElement, type Instance, render } from 'ink';
import { Component, createRef, type ReactNode } from 'react';
import { App } from './app.js';
import { paint } from './paint.js';
import { stylesOf } from './parts/skins.js';
import type { State } from './state/state.js';

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

/** What Ink takes for the terminal. It has a size, and nothing is written to it. */
class Screen extends EventEmitter {
  readonly isTTY = true;
  columns = 0;
  rows = 0;
  write = () => true;
}

export class Renderer {
  readonly #screen = new Screen();
  readonly #root = createRef<DOMElement>();
  #ink: Instance | undefined;
  #failure: { error: unknown } | undefined;

  /** @returns the lines of the screen as written to the terminal. @throws what a component has thrown. */
  linesOf(state: State): string[] {
    const { size, look } = state;
    Object.assign(this.#screen, size);
    this.#layOut(
      <Boundary
        onError={(error) => {
          this.#failure = { error };
        }}
      >
        <Box ref={this.#root} width={size.columns} height={size.rows} flexDirection="column">
          <App state={state} />
        </Box>
      </Boundary>,
    );
    if (this.#failure) throw this.#failure.error;
    if (!this.#root.current) throw new Error('Ink has laid out nothing');
    return paint(this.#root.current, { size, styles: stylesOf(state), ascii: look.ascii });
  }

  #layOut(tree: ReactNode): void {
    if (this.#ink) {
      this.#ink.rerender(tree);
      return;
    }
    // Input is read by the terminal. Ink drops pastes and the mouse, and takes the letters of a sequence that it does not know for keys.
    const stdin = Object.assign(new Readable({ read: () => undefined }), { isTTY: false });
    this.#ink = render(tree, {
      stdout: this.#screen as unknown as NodeJS.WriteStream,
      stdin: stdin as unknown as NodeJS.ReadStream,
      debug: true, // Lays out at once.
      isScreenReaderEnabled: true, // Outputs texts, of which there are none, and paints no cells.
      exitOnCtrlC: false,
      patchConsole: false,
    });
  }

  close(): void {
    this.#ink?.unmount();
  }
}
