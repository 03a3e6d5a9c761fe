/**
 * Reader for one field of a multipart form (RFC 7578), with bounded work.
 *
 * The input is untrusted, so each byte is examined a fixed number of times: delimiters are found in one pass, and only the first
 * bytes of a part are parsed as its header.
 */

// A form of a model API has a dozen fields, perhaps with as many images.
const MAX_PARTS = 64;
// RFC 2046 allows a boundary of 70 characters.
const MAX_BOUNDARY_LENGTH = 200;
// A part's header is one or two lines.
const MAX_PART_HEADER_BYTES = 2 * 1024;
const MAX_VALUE_BYTES = 400;

const DASHES = Buffer.from('--');
const CRLF = Buffer.from('\r\n');
const DELIMITER = Buffer.from('\r\n--');
const END_OF_HEADER = Buffer.from('\r\n\r\n');

/** Whether a body may be a multipart form. */
export const isForm = (body: Buffer): boolean => body[0] === DASHES[0] && body[1] === DASHES[1];

/**
 * Text of the first part with this name.
 *
 * @param body the beginning of a form. A part that continues after its end is not read.
 * @returns null if there is no such part, or its text has several lines or more than 400 bytes.
 */
export function formField(body: Buffer, wanted: string): string | null {
  const endOfFirst = body.subarray(0, MAX_BOUNDARY_LENGTH).indexOf(CRLF);
  if (!isForm(body) || endOfFirst === -1) return null;
  const boundary = body.subarray(DASHES.length, endOfFirst);
  let at = endOfFirst;
  for (let parts = 0; parts < MAX_PARTS; parts++) {
    // `at` is the end of the delimiter line. An empty header ends there as well.
    const headerEnd = body.subarray(at, at + MAX_PART_HEADER_BYTES).indexOf(END_OF_HEADER);
    if (headerEnd === -1) return null;
    const content = at + headerEnd + END_OF_HEADER.length;
    const isWanted = nameOf(body.toString('latin1', at + CRLF.length, at + headerEnd)) === wanted;
    // The line break of the delimiter may be the one that ends the header.
    const end = delimiterAt(body, content - CRLF.length, boundary);
    if (end === -1) return null;
    if (isWanted) return textOf(body.subarray(content, Math.max(content, end)));
    at = end + DELIMITER.length + boundary.length;
    if (body[at] !== CRLF[0]) return null; // The closing delimiter, or not a form.
  }
  return null;
}

/** Index of the next delimiter, including its leading line break; -1 if there is none. */
function delimiterAt(body: Buffer, from: number, boundary: Buffer): number {
  for (let at = body.indexOf(DELIMITER, from); at !== -1; at = body.indexOf(DELIMITER, at + DELIMITER.length)) {
    const begin = at + DELIMITER.length;
    if (body.subarray(begin, begin + boundary.length).equals(boundary)) return at;
  }
  return -1;
}

function textOf(content: Buffer): string | null {
  const isLine =
    content.length > 0 && content.length <= MAX_VALUE_BYTES && !content.includes('\r') && !content.includes('\n');
  return isLine ? content.toString('utf8') : null;
}

const DISPOSITION = 'content-disposition:';

/** The name of a part, from its `Content-Disposition`. */
function nameOf(header: string): string | null {
  const line = header.split('\r\n').find((each) => each.slice(0, DISPOSITION.length).toLowerCase() === DISPOSITION);
  return line === undefined ? null : parameterOf(line, 'name');
}

/** The value of a quoted parameter. Skips text within the quotes of other parameters. */
function parameterOf(line: string, name: string): string | null {
  let at = line.indexOf(';');
  while (at !== -1) {
    const equals = line.indexOf('=', at);
    if (equals === -1) return null;
    const isWanted =
      line
        .slice(at + 1, equals)
        .trim()
        .toLowerCase() === name;
    if (line[equals + 1] !== '"') {
      at = line.indexOf(';', equals);
      continue;
    }
    const end = closingQuote(line, equals + 2);
    if (end === -1) return null;
    if (isWanted) return line.slice(equals + 2, end);
    at = line.indexOf(';', end);
  }
  return null;
}

function closingQuote(line: string, from: number): number {
  for (let at = from; at < line.length; at++) {
    if (line[at] === '\\') at += 1;
    else if (line[at] === '"') return at;
  }
  return -1;
}
