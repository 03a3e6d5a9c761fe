import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import type { ReactElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import type { Assets } from './assets.js';
import type { PageView } from './page-request.js';
import { Document } from './parts/document.js';
import { FrameContext, REST_MARK } from './parts/frame.js';

export interface Rendered extends Omit<PageView, 'section'> {
  /** Null if the user is not logged in. */
  section: PageView['section'] | null;
  formToken: string | null;
}

/** Renders React elements to HTML. */
export interface Renderer {
  /** Sends a page. Resolves at once, or after the parts of its `rest`, when the response has ended. */
  page: (res: Response, page: Rendered) => Promise<void>;
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
  return {
    async page(res, page) {
      const { rest, status = 200, formToken } = page;
      res.status(status).type('html');
      if (!rest) {
        res.send(htmlOf(page));
        return;
      }
      res.set('X-Accel-Buffering', 'no'); // Otherwise nginx would send it as a whole.
      const [before = '', after = ''] = htmlOf(page).split(REST_MARK);
      const pieces = async function* () {
        yield before;
        for await (const part of rest) yield inFrame(formToken, part);
        yield after;
      };
      // An error aborts the connection, so that the browser reports an incomplete page.
      await pipeline(Readable.from(pieces()), res).catch(() => undefined);
    },
    fragment: (part) => inFrame(null, part),
  };
}
