import type { Request, Response } from 'express';

/** What a browser makes of a form without files. */
const FORM = /^application\/x-www-form-urlencoded\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

export const isForm = ({ headers }: Request): boolean => FORM.test(headers['content-type'] ?? '');

/** Reads a small body whole, in good time. */
export type ReadBody = (req: Request, res: Response) => Promise<Buffer>;

export type ReadForm = (req: Request, res: Response) => Promise<URLSearchParams>;

/** Reads the fields of a form. Where one comes twice the first counts, as for the query. */
export const formReader =
  (readBody: ReadBody): ReadForm =>
  async (req, res) =>
    new URLSearchParams((await readBody(req, res)).toString());

export const queryOf = ({ originalUrl }: Request): URLSearchParams =>
  new URL(originalUrl, 'http://anywhere').searchParams;
