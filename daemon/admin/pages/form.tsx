/** Pages with the form of a change, and the change. */
import type { ReactNode } from 'react';
import { ApiError, type ChangeOptions, etagOf } from '../../api/client.js';
import type { Permission } from '../../api/permissions.js';
import {
  changed,
  get,
  invalidRequest,
  type PageRequest,
  type PageResponse,
  post,
  type Route,
  statusOf,
} from '../page-request.js';
import { ErrorNotice } from '../parts/common.js';
import { Heading, type Section } from '../parts/document.js';
import { FormButtons, ReasonField } from '../parts/fields.js';
import { Name } from '../parts/formats.js';
import { ChangeForm, Link } from '../parts/frame.js';

/** What the page shows. Fields have the values that were sent, if the form was sent. */
export interface FormShown {
  /** The page above it, which Cancel leads to. */
  above: { to: string; name: string };
  hint?: ReactNode;
  /** What is changed: the form is refused if somebody else changes it meanwhile. */
  of?: object;
  /** Null: in place of the form there is only the hint. */
  fields: ReactNode;
  hasReason?: boolean;
}

interface FormPage {
  section: Section;
  /** Such as `/projects/:id/budget`. */
  path: string;
  permission: Permission;
  title: string;
  verb: string;
  show: (request: PageRequest) => FormShown | Promise<FormShown>;
  /** Makes the change. @returns where to go then. */
  run: (request: PageRequest) => Promise<string>;
}

export function formRoutes({ section, path, permission, title, verb, show, run }: FormPage): readonly Route[] {
  async function ask(request: PageRequest, refused: string | null): Promise<PageResponse> {
    const { above, hint, of, fields, hasReason = true } = await show(request);
    const body = (
      <div className="narrow">
        <Heading title={title} path={<Link to={above.to}>{<Name>{above.name}</Name>}</Link>} />
        <ErrorNotice why={refused} />
        {typeof hint === 'string' ? <p className="hint">{hint}</p> : hint}
        {fields === null ? null : (
          <ChangeForm to={path.slice(1).replace(':id', request.id)}>
            {of === undefined ? null : <input type="hidden" name="version" value={etagOf(of) ?? ''} />}
            {fields}
            {hasReason ? <ReasonField reason={request.form.get('reason') ?? ''} /> : null}
            <FormButtons cancel={above.to} verb={verb} />
          </ChangeForm>
        )}
      </div>
    );
    return { title, section, body, ...statusOf(refused) };
  }
  return [
    get(path, permission, (request) => ask(request, null)),
    post(path, permission, (request) =>
      changed(
        () => run(request),
        (refused) => ask(request, refused),
      ),
    ),
  ];
}

/** Whether the form was sent that changes something. */
export const isSent = (form: URLSearchParams): boolean => form.has('version');

/** Sends what a form changes. @param changesIn is asked for after the version is checked. @throws {ApiError} 400 if nothing is changed, and if somebody else has changed it since the form was loaded: that must not be replaced. */
export async function sendChanges<Changes extends object>(
  form: URLSearchParams,
  changesIn: () => Promise<Changes>,
  send: (changes: Changes, options: ChangeOptions) => Promise<unknown>,
): Promise<void> {
  const version = form.get('version') ?? '';
  if (!ETAG.test(version)) throw changedSince();
  const changes = await changesIn();
  if (Object.keys(changes).length === 0) throw invalidRequest('nothing is changed');
  await send(changes, { ifMatch: version }).catch((error: unknown) => {
    throw error instanceof ApiError && error.code === 'precondition_failed' ? changedSince() : error;
  });
}

const ETAG = /^"[\x21\x23-\x7e]{1,200}"$/;

const changedSince = () =>
  invalidRequest(
    'somebody has changed it since this form was loaded: compare it with the page of it, and send it again',
  );
