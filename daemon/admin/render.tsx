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

export type Render = (res: Response, page: Rendered) => void;

/** @param base base path of all pages, with a trailing slash. */
export function rendering({ base, assets, clock }: { base: string; assets: Assets; clock: { now(): number } }): Render {
  return (res, { title, section, body, formToken, status = 200, isLive = false }) => {
    const html = renderToStaticMarkup(
      <FrameContext value={{ base, formToken, nowMs: clock.now() }}>
        <Document title={title} base={base} assets={assets} section={section} isLive={isLive}>
          {body}
        </Document>
      </FrameContext>,
    );
    res.status(status).type('html').send(`<!doctype html>${html}`);
  };
}
