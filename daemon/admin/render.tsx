import type { Response } from 'express';
import type { ReactElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import type { Assets } from './assets.js';
import { Document, type Section } from './pages/document.js';
import { FrameContext } from './pages/frame.js';

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
  /** @returns HTML for a part of a page. It has no forms, because it has no CSRF token. */
  fragment: (part: ReactElement) => string;
}

/** @param base base path of all pages, with a trailing slash. */
export function rendering({
  base,
  assets,
  clock,
}: {
  base: string;
  assets: Assets;
  clock: { now(): number };
}): Renderer {
  const inFrame = (formToken: string | null, part: ReactElement) =>
    renderToStaticMarkup(<FrameContext value={{ base, formToken, nowMs: clock.now() }}>{part}</FrameContext>);
  return {
    page(res, { title, section, body, formToken, status = 200, isLive = false }) {
      const html = inFrame(
        formToken,
        <Document title={title} base={base} assets={assets} section={section} isLive={isLive}>
          {body}
        </Document>,
      );
      res.status(status).type('html').send(`<!doctype html>${html}`);
    },
    fragment: (part) => inFrame(null, part),
  };
}
