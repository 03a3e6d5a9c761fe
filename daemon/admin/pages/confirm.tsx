import type { ReactNode } from 'react';
import type { Permission } from '../../api/permissions.js';
import { changed, get, type PageRequest, type PageResponse, type PageView, post, statusOf } from '../page-request.js';
import { Heading, type Section } from '../parts/document.js';
import { ReasonField } from '../parts/fields.js';
import { ChangeForm, Link } from '../parts/frame.js';
import { ErrorNotice } from '../parts/common.js';

/** A change and what is said about it before it is made. */
export interface Confirmation {
  title: string;
  /** What is changed, if the message does not say it. */
  notice?: ReactNode;
  /** Explains the effect of the change. */
  message: string;
  /** Fields of the form that the user fills in. */
  more?: ReactNode;
  verb: string;
  isDangerous: boolean;
}

interface ConfirmProps extends Confirmation {
  section: Section;
  /** Target of the form, and of the Cancel link. */
  to: string;
  back: string;
  /** Hidden fields of the form. */
  fields?: readonly (readonly [name: string, value: string])[];
  refused: string | null;
}

/** Confirmation page of a change. Cancel comes first and has the focus, so that an accidental key press changes nothing. */
export function confirmPage({ form }: PageRequest, confirm: ConfirmProps): PageView {
  const { title, section, notice, message, more, to, back, verb, isDangerous, fields = [], refused } = confirm;
  const body = (
    <div className="narrow" data-dialog-content="">
      <Heading title={title} />
      <ErrorNotice why={refused} />
      {notice}
      <p>{message}</p>
      <ChangeForm to={to}>
        {fields.map(([name, value]) => (
          <input key={`${name} ${value}`} type="hidden" name={name} value={value} />
        ))}
        {more}
        <ReasonField reason={form.get('reason') ?? ''} />
        <div className="buttons">
          <Link to={back} className="button" data-dialog-cancel="" autoFocus>
            Cancel
          </Link>
          <button type="submit" className={isDangerous ? 'danger' : 'primary'}>
            {verb}
          </button>
        </div>
      </ChangeForm>
    </div>
  );
  return { title, section, body, ...statusOf(refused) };
}

interface ConfirmedChange {
  /** Base path of what is changed, without its ID. */
  section: 'projects' | 'tokens' | 'operators' | 'trusts';
  /** The last part of the path. */
  what: string;
  permission: Permission;
  asking: (request: PageRequest) => Promise<Confirmation>;
  /** Whether what is changed is gone then, so that its list follows. */
  isGone?: boolean;
  /** @returns the query of the page after the change. */
  run: (request: PageRequest) => Promise<string>;
}

/** Routes of a change with a confirmation page: the page, and the change. */
export function confirmedChange({ section, what, permission, asking, isGone = false, run }: ConfirmedChange) {
  const ask = async (request: PageRequest, refused: string | null): Promise<PageView> => {
    const back = `${section}/${request.id}`;
    return confirmPage(request, { ...(await asking(request)), section, to: `${back}/${what}`, back, refused });
  };
  const path = `/${section}/:id/${what}`;
  return [
    get(path, permission, (request) => ask(request, null)),
    post(path, permission, (request): Promise<PageResponse> =>
      changed(
        async () => `${isGone ? section : `${section}/${request.id}`}?${await run(request)}`,
        (refused) => ask(request, refused),
      ),
    ),
  ];
}
