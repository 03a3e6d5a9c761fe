import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import type { ReactElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import type { Assets } from './assets.js';
import { Document, type Section } from './pages/document.js';
import { FrameContext, REST_MARK } from './pages/frame.js';

export interface Rendered {
  title: string;
  /** Null if the user is not logged in. */
  section: Section | 'none' | null;
  body: ReactElement;
  formToken: string | null;
  /** Default: 200. */
  status?: number;
  isLive?: boolean;
}

/** Renders React elements to HTML. */
export interface Renderer {
  /** Sends a complete page. */
  page: (res: Response, page: Rendered) => void;
  /**
   * Sends a page with parts that are sent when they are made, in place of `RestOfPage` in its body. Resolves when the response has
   * ended. If the browser goes, no more parts are made.
   */
  pageInParts: (res: Response, page: Rendered, rest: AsyncIterable<ReactElement>) => Promise<void>;
  /** @returns HTML for a part of a page. It has no forms, because it has no CSRF token. */
  fragment: (part: ReactElement) => string;
}

export interface RenderingOptions {
  /** Base path of all pages, with a trailing slash. */
  base: string;
  assets: Assets;
  clock: { now(): number };
}

export function rendering({ base, assets, clock }: RenderingOptions): Renderer {
  const inFrame = (formToken: string | null, part: ReactElement) =>
    renderToStaticMarkup(<FrameContext value={{ base, formToken, nowMs: clock.now() }}>{part}</FrameContext>);
  const htmlOf = ({ title, section, body, formToken, isLive = false }: Rendered) => {
    const page = (
      <Document title={title} base={base} assets={assets} section={section} isLive={isLive}>
        {body}
      </Document>
    );
    return `<!doctype html>${inFrame(formToken, page)}`;
  };
  const begin = (res: Response, { status = 200 }: Rendered) => res.status(status).type('html');
  return {
    page(res, page) {
      begin(res, page).send(htmlOf(page));
    },
    async pageInParts(res, page, rest) {
      begin(res, page).set('X-Accel-Buffering', 'no'); // Otherwise nginx would send it as a whole.
      const [before = '', after = ''] = htmlOf(page).split(REST_MARK);
      const pieces = async function* () {
        yield before;
        for await (const part of rest) yield inFrame(page.formToken, part);
        yield after;
      };
      // An error aborts the connection, so that the browser reports an incomplete page.
      await pipeline(Readable.from(pieces()), res).catch(() => undefined);
    },
    fragment: (part) => inFrame(null, part),
  };
}
