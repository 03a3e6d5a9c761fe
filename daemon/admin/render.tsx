import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import type { ReactElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import type { Assets } from './assets.js';
import type { PageView } from './page-request.js';
import { Document } from './parts/document.js';
import { FrameContext, type Offers, REST_MARK, type User } from './parts/frame.js';

export interface Rendered extends Omit<PageView, 'section'> {
  /** Null if the user is not logged in. */
  section: PageView['section'] | null;
  formToken: string | null;
  /** Null if the user is not logged in. */
  user: User | null;
}

/** Renders React elements to HTML. */
export interface Renderer {
  /** Sends a page. Resolves at once, or after the parts of its `rest`, when the response has ended. */
  page: (res: Response, page: Rendered) => Promise<void>;
  /** @returns HTML for a part of a page. It has no forms, because it has no CSRF token. */
  fragment: (part: ReactElement, user: User) => string;
}

export interface RenderingOptions {
  /** Base path of all pages, with a trailing slash. */
  base: string;
  assets: Assets;
  clock: { now(): number };
  offersTo: (user: User | null) => Offers;
}

export function rendering({ base, assets, clock, offersTo }: RenderingOptions): Renderer {
  const inFrame = ({ formToken, user, wrong }: Pick<Rendered, 'formToken' | 'user' | 'wrong'>, part: ReactElement) => {
    const frame = { base, formToken, nowMs: clock.now(), offers: offersTo(user), wrong };
    return renderToStaticMarkup(<FrameContext value={frame}>{part}</FrameContext>);
  };
  const htmlOf = ({ title, section, body, isLive = false, ...frame }: Rendered) => {
    const page = (
      <Document title={title} base={base} assets={assets} section={section} isLive={isLive}>
        {body}
      </Document>
    );
    return `<!doctype html>${inFrame(frame, page)}`;
  };
  return {
    async page(res, page) {
      const { rest, status = 200 } = page;
      res.status(status).type('html');
      if (!rest) {
        res.send(htmlOf(page));
        return;
      }
      res.set('X-Accel-Buffering', 'no'); // Otherwise nginx would send it as a whole.
      const [before = '', after = ''] = htmlOf(page).split(REST_MARK);
      const pieces = async function* () {
        yield before;
        for await (const part of rest) yield inFrame(page, part);
        yield after;
      };
      // An error aborts the connection, so that the browser reports an incomplete page.
      await pipeline(Readable.from(pieces()), res).catch(() => undefined);
    },
    fragment: (part, user) => inFrame({ formToken: null, user }, part),
  };
}
