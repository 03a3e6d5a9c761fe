import type { Request, Response } from 'express';

/** The content type of forms without files. */
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

export const isForm = ({ headers }: Request): boolean => FORM_TYPE.test(headers['content-type'] ?? '');

/** Reads a small body completely, with a size limit and a timeout. */
export type ReadBody = (req: Request, res: Response) => Promise<Buffer>;

export type ReadForm = (req: Request, res: Response) => Promise<URLSearchParams>;

/** Reads the fields of a form. If a field appears twice the first value counts, as in a query. */
export const formReader =
  (readBody: ReadBody): ReadForm =>
  async (req, res) =>
    new URLSearchParams((await readBody(req, res)).toString());

export const queryOf = ({ originalUrl }: Request): URLSearchParams =>
  new URL(originalUrl, 'http://anywhere').searchParams;
