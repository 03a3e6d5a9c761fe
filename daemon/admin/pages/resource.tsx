/** The pages of a kind of thing that the management API lists, creates and changes: from its declaration. */
import type { ComponentType, ReactNode } from 'react';
import type { Column } from '../../../console/columns/column.js';
import type { ChangeOptions, ManagementClient, Page } from '../../api/client.js';
import type { WireProject } from '../../api/contract.js';
import { counted } from '../../api/formats.js';
import {
  allProjects,
  doneMessage,
  get,
  listPage,
  type PageRequest,
  parametersOf,
  type Route,
  statusOf,
} from '../page-request.js';
import { tableColumns } from '../parts/cells.js';
import {
  CommandLine,
  EmptyState,
  ErrorNotice,
  type Fact,
  Facts,
  Paging,
  SuccessNotice,
  Table,
} from '../parts/common.js';
import { Heading } from '../parts/document.js';
import { capitalized, escapeBidi, Name, StateMark, Time } from '../parts/formats.js';
import { ConfirmLink, Link } from '../parts/frame.js';
import { type Confirmation, confirmedChange } from './confirm.js';
import { formRoutes, isSent, sendChanges } from './form.js';
import { NoProject } from './new-token.js';

/** What the API has of each. */
interface Item {
  id: string;
  is_active: boolean;
  created_at: string;
  updated_at: string;
}

export interface FieldsProps<Given> {
  given: Given;
  projects: readonly WireProject[];
  /** Whether it is the form of a new one, which has fields that do not change later. */
  isNew: boolean;
}

interface Confirmed<T> extends Pick<Confirmation, 'message' | 'more' | 'isDangerous'> {
  /** The last part of its path, and in a title its verb. */
  what: string;
  /** Whether it is offered now. */
  isFor: (of: T) => boolean;
  /** Whether the page of the thing is gone then. */
  isGone?: boolean;
  /** @returns the query of the next page. */
  run: (request: PageRequest) => Promise<string>;
}

/** @template Given values of the form, by field. @template Values what the API takes for those fields that can change. */
export interface Resource<T extends Item, Given extends object, Values extends object> {
  section: 'operators' | 'trusts';
  /** What one is called, in pages and in commands. */
  noun: string;
  /** What they are for: shown while there are none. */
  purpose: string;
  columns: readonly Column<T>[];
  nameOf: (of: T) => string;
  list: (client: ManagementClient, query: Record<string, string>) => Promise<Page<T>>;
  read: (client: ManagementClient, id: string) => Promise<T>;
  form: {
    empty: Given;
    given: (form: URLSearchParams) => Given;
    of: (of: T) => Given;
    /** @throws {ApiError} 400 if a field is wrong. */
    values: (given: Given) => Values;
    Fields: ComponentType<FieldsProps<Given>>;
    /** Whether a new one belongs to a project that is active. */
    isOfProject?: boolean;
  };
  /** @returns the next page. */
  create: (request: PageRequest, given: Given) => Promise<string>;
  /** What a change does not change. */
  changeHint: string;
  update: (client: ManagementClient, id: string, changes: Partial<Values>, options: ChangeOptions) => Promise<unknown>;
  confirmed: readonly Confirmed<T>[];
  /** What its page shows between its state and its dates. */
  facts: (of: T, projects: readonly WireProject[]) => readonly (Fact | null)[];
  /** What its page shows below. */
  more?: (of: T, request: PageRequest) => Promise<ReactNode>;
  /** Messages of success on the page after a change, by the value of `done`. */
  done: Readonly<Record<string, string>>;
  /** Another message. */
  doneOf?: (request: PageRequest) => string | null;
}

const PERMISSION = 'manage access';

export function resourceRoutes<T extends Item, Given extends object, Values extends object>(
  kind: Resource<T, Given, Values>,
): readonly Route[] {
  const { section, noun, form, nameOf, read } = kind;
  const title = capitalized(section);
  const create = <Link to={`${section}/new`} className="button primary">{`New ${noun}`}</Link>;
  const [first, ...others] = tableColumns(kind.columns);
  const columns =
    first === undefined
      ? []
      : [{ ...first, show: (of: T) => <Link to={`${section}/${of.id}`}>{<Name>{nameOf(of)}</Name>}</Link> }, ...others];
  const doneIn = (request: PageRequest) => kind.doneOf?.(request) ?? doneMessage(request, kind.done);

  const list = get(`/${section}`, PERMISSION, async (request) => {
    const { client, query } = request;
    const { items, total, next, refused } = await listPage(() => kind.list(client, parametersOf(query, ['cursor'])));
    const body = (
      <>
        <Heading title={title} actions={create} />
        <SuccessNotice what={doneIn(request)} />
        <ErrorNotice why={refused} />
        {items.length === 0 && refused === null ? (
          <EmptyState title={`No ${section} yet`}>
            <p>{kind.purpose}</p>
            <p>{create}</p>
          </EmptyState>
        ) : (
          <>
            <p className="faint">{total === null ? '' : counted(total, noun)}</p>
            <Table id={section} label={title} noun={noun} rows={items} keyOf={({ id }) => id} columns={columns} />
          </>
        )}
        <Paging to={section} query={query} next={next} />
        <CommandLine line={`llmp ${noun} list`} />
      </>
    );
    return { title, section, isLive: true, body, ...statusOf(refused) };
  });

  const one = get(`/${section}/:id`, PERMISSION, async (request) => {
    const { client, id } = request;
    const of = await read(client, id);
    const [projects, more] = await Promise.all([allProjects(client), kind.more?.(of, request)]);
    const to = `${section}/${id}`;
    const body = (
      <>
        <Heading
          title={<Name>{nameOf(of)}</Name>}
          path={<Link to={section}>{title}</Link>}
          actions={
            <>
              <Link to={`${to}/change`} className="button">
                Change
              </Link>
              {kind.confirmed
                .filter(({ isFor }) => isFor(of))
                .map(({ what, isDangerous }) => (
                  <span key={what}>
                    {' '}
                    <ConfirmLink to={`${to}/${what}`} isDangerous={isDangerous}>{`${capitalized(what)}…`}</ConfirmLink>
                  </span>
                ))}
            </>
          }
        />
        <SuccessNotice what={doneIn(request)} />
        <Facts
          id="facts"
          facts={[
            { name: 'State', value: <StateMark state={of.is_active ? 'active' : 'inactive'} /> },
            ...kind.facts(of, projects),
            { name: 'Created', value: <Time at={of.created_at} isFull /> },
            { name: 'Changed', value: <Time at={of.updated_at} isFull /> },
            { name: 'ID', value: <code className="id">{id}</code> },
          ]}
        />
        {more}
        <CommandLine line={`llmp ${noun} show ${id}`} />
      </>
    );
    return { title: escapeBidi(nameOf(of)), section, isLive: true, body };
  });

  return [
    list,
    ...formRoutes({
      section,
      path: `/${section}/new`,
      permission: PERMISSION,
      title: `New ${noun}`,
      verb: `Create ${noun}`,
      show: async ({ client, form: sent }) => {
        const projects = await allProjects(client, form.isOfProject ? { is_active: 'true' } : {});
        const given = sent.size === 0 ? form.empty : form.given(sent);
        const above = { to: section, name: title };
        if (form.isOfProject && projects.length === 0) return { above, hint: <NoProject />, fields: null };
        return { above, fields: <form.Fields given={given} projects={projects} isNew /> };
      },
      run: (request) => kind.create(request, form.given(request.form)),
    }),
    one,
    ...formRoutes({
      section,
      path: `/${section}/:id/change`,
      permission: PERMISSION,
      title: `Change ${noun}`,
      verb: 'Change',
      show: async ({ client, id, form: sent }) => {
        const [of, projects] = await Promise.all([read(client, id), allProjects(client)]);
        const given = isSent(sent) ? form.given(sent) : form.of(of);
        const above = { to: `${section}/${id}`, name: nameOf(of) };
        const fields = <form.Fields given={given} projects={projects} isNew={false} />;
        return { above, hint: kind.changeHint, of, fields };
      },
      run: async ({ client, changeClient, id, form: sent }) => {
        const changesIn = async () =>
          changedOf(form.values(form.of(await read(client, id))), form.values(form.given(sent)));
        await sendChanges(sent, changesIn, (changes, options) => kind.update(changeClient, id, changes, options));
        return `${section}/${id}?done=changed`;
      },
    }),
    ...kind.confirmed.flatMap(({ what, isFor: _, ...more }) =>
      confirmedChange({
        section,
        what,
        permission: PERMISSION,
        asking: async ({ client, id }) => {
          const verb = capitalized(what);
          return { title: `${verb} ${escapeBidi(nameOf(await read(client, id)))}?`, verb, ...more };
        },
        ...more,
      }),
    ),
  ];
}

/** The fields that are not as they were. */
const changedOf = <Values extends object>(before: Values, wanted: Values): Partial<Values> =>
  Object.fromEntries(
    Object.entries(wanted).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof Values]),
    ),
  ) as Partial<Values>;
