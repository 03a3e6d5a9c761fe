/** What tokens and projects may use, and how fast: the fields of forms, and the pages that change it. */
import {
  budgetFields,
  MAX_LIST_LENGTH,
  policiesOf,
  policyChanges,
  policyField,
  policyFields,
  type PolicyTexts,
  policyTexts,
  USED_SINCE,
  usedModels,
} from '../../../console/columns/policy-fields.js';
import type { ReactNode } from 'react';
import { shortId } from '../../../console/columns/cell-text.js';
import type { ChangeOptions, ManagementClient } from '../../api/client.js';
import type { WireProject, WireToken } from '../../api/contract.js';
import type { Permission } from '../../api/permissions.js';
import { MAX_LIMIT, NO_POLICIES, type Policies } from '../../api/vocabulary.js';
import { invalidField } from '../page-request.js';
import { InputField, SelectField } from '../parts/fields.js';
import { capitalized, escapeBidi } from '../parts/formats.js';
import { formRoutes, isSent, sendChanges } from './form.js';

export const EMPTY_POLICY_FORM = policyTexts(NO_POLICIES);

/** Models to offer. */
export interface UsedModels {
  models: readonly string[];
  /** The project that has used them; null: all projects. */
  by: string | null;
}

/** For a form that offers no models, such as that of a new project. */
export const NONE_USED: UsedModels = { models: [], by: null };

/** @param project null: all projects. */
export async function usedModelsOf(
  client: ManagementClient,
  project: Pick<WireProject, 'id' | 'name'> | null,
): Promise<UsedModels> {
  const query = { by: 'model', since: USED_SINCE, ...(project && { project_id: project.id }) };
  return { models: usedModels(await client.usage(query)), by: project?.name ?? null };
}

/** A checkbox for each model that was used lately. Other names and patterns are in the field for models. */
export function PolicyFields({ given, used }: { given: PolicyTexts; used: UsedModels }) {
  const names = listOf(given.models);
  const others = names.filter((name) => !used.models.includes(name));
  return (
    <>
      {used.models.length === 0 ? null : (
        <fieldset className="choices">
          <legend>Models that {used.by === null ? 'were' : escapeBidi(used.by)} used in the last 30 days</legend>
          {used.models.map((model) => (
            <label className="checkbox" key={model}>
              <input type="checkbox" name={USED_MODEL} value={model} defaultChecked={names.includes(model)} />
              {escapeBidi(model)}
            </label>
          ))}
        </fieldset>
      )}
      {LIMIT_FIELDS.map((field) => {
        const { label, hint, kind } = policyField(field);
        const isOther = field === 'models' && used.models.length > 0;
        const common = { name: field, label: isOther ? 'Other models' : label, hint: `${capitalized(hint)}.` };
        return kind.isList ? (
          <InputField
            key={field}
            {...common}
            maxLength={MAX_LIST_LENGTH}
            spellCheck={false}
            defaultValue={field === 'models' ? others.join(', ') : given[field]}
          />
        ) : (
          <InputField key={field} {...common} type="number" min="1" max={MAX_LIMIT} defaultValue={given[field]} />
        );
      })}
      <BudgetFields given={given} />
    </>
  );
}

const LIMIT_FIELDS = policyFields.filter((field) => !budgetFields.includes(field));

/** @param props.isAlone whether the form has no other fields: then the first one has the focus. */
function BudgetFields({ given, isAlone = false }: { given: PolicyTexts; isAlone?: boolean }) {
  return (
    <>
      {budgetFields.map((field) => {
        const { label, hint, choices } = policyField(field);
        const common = { name: field, label, hint: `${capitalized(hint)}.` };
        return choices ? (
          <SelectField
            key={field}
            {...common}
            choices={choices.map(({ value, label: words }) => [value, words] as const)}
            chosen={given[field]}
          />
        ) : (
          <InputField
            key={field}
            {...common}
            autoFocus={isAlone && field === 'budget_usd'}
            inputMode={field === 'budget_usd' ? 'decimal' : 'numeric'}
            maxLength={MAX_AMOUNT_LENGTH}
            autoComplete="off"
            defaultValue={given[field]}
          />
        );
      })}
    </>
  );
}

/** A dollar sign, the digits and the point. */
const MAX_AMOUNT_LENGTH = 15;

/** The fields in the form of a new token or project: closed while they are empty, so that the form stays short. */
export function NewPolicyFields({ hint, ...fields }: { given: PolicyTexts; used: UsedModels; hint?: string }) {
  return (
    <details open={policyFields.some((field) => fields.given[field] !== EMPTY_POLICY_FORM[field])}>
      <summary>Models, routes, limits and budget</summary>
      {hint === undefined ? null : <p className="hint">{hint}</p>}
      <PolicyFields {...fields} />
    </details>
  );
}

const USED_MODEL = 'used_model';

const listOf = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');

/** The fields as they were sent. Fields that were not sent are as in `before`. */
export function policyForm(form: URLSearchParams, before = EMPTY_POLICY_FORM): PolicyTexts {
  const texts = Object.fromEntries(
    policyFields.map((field) => [field, form.get(field)?.trim() ?? before[field]]),
  ) as PolicyTexts;
  const models = new Set([...form.getAll(USED_MODEL), ...listOf(texts.models)]);
  return { ...texts, models: [...models].join(', ') };
}

/** @throws {ApiError} 400 if a field is wrong. */
export function policiesIn(texts: PolicyTexts): Policies {
  const policies = policiesOf(texts);
  if ('words' in policies) throw invalidField(policies.field, policies.words);
  return policies;
}

/** What the fields of a project mean. */
export const OF_PROJECT =
  'What each of its tokens may use, how fast all of them together may be used, and what they may spend together.';

// ---- pages

/** A page that changes policies, or a part of them. */
interface Page {
  /** The end of its path. */
  path: 'restrict' | 'budget';
  title: string;
  done: 'restricted' | 'budgeted';
  Fields: (props: { given: PolicyTexts; used: UsedModels }) => ReactNode;
}

const PAGES: readonly Page[] = [
  { path: 'restrict', title: 'Change limits', done: 'restricted', Fields: PolicyFields },
  {
    path: 'budget',
    title: 'Change budget',
    done: 'budgeted',
    Fields: ({ given }) => <BudgetFields given={given} isAlone />,
  },
];

/** A kind of what has policies. */
interface Restricted<T extends WireToken | WireProject> {
  section: 'tokens' | 'projects';
  permission: Permission;
  messages: Readonly<Record<Page['path'], string>>;
  read: (client: ManagementClient, id: string) => Promise<T>;
  nameOf: (of: T) => string;
  projectOf: (of: T) => Pick<WireProject, 'id' | 'name'>;
  update: (client: ManagementClient, id: string, body: Partial<Policies>, options: ChangeOptions) => Promise<unknown>;
}

const changeRoutes = <T extends WireToken | WireProject>(kind: Restricted<T>, { path, title, done, Fields }: Page) =>
  formRoutes({
    section: kind.section,
    path: `/${kind.section}/:id/${path}`,
    permission: kind.permission,
    title,
    verb: 'Change',
    show: async ({ client, form, id }) => {
      const of = await kind.read(client, id);
      const given = isSent(form) ? policyForm(form) : policyTexts(of);
      const used = path === 'budget' ? NONE_USED : await usedModelsOf(client, kind.projectOf(of));
      return {
        above: { to: `${kind.section}/${of.id}`, name: kind.nameOf(of) },
        hint: `${kind.messages[path]} It holds from the next request on. Requests in flight go on.`,
        of,
        fields: <Fields given={given} used={used} />,
      };
    },
    run: async ({ client, changeClient, form, id }) => {
      const changesIn = async () => {
        const before = await kind.read(client, id);
        const body = policyChanges(before, policyForm(form, policyTexts(before)));
        if ('words' in body) throw invalidField(body.field, body.words);
        return body;
      };
      await sendChanges(form, changesIn, (body, options) => kind.update(changeClient, id, body, options));
      return `${kind.section}/${id}?done=${done}`;
    },
  });

/** The message on the page of the token or project after a change. */
export const POLICY_DONE = {
  restricted: 'Limits changed. They hold from the next request on.',
  budgeted: 'Budget changed. It holds from the next request on.',
};

export const policyRoutes = PAGES.flatMap((page) => [
  ...changeRoutes<WireToken>(
    {
      section: 'tokens',
      permission: 'change tokens',
      messages: {
        restrict: 'What the token may use, how fast, and what it may spend.',
        budget: 'What the token may spend.',
      },
      read: (client, id) => client.token(id),
      nameOf: ({ id, name }) => name ?? `Token ${shortId(id)}`,
      projectOf: ({ project_id: id, project_name: name }) => ({ id, name }),
      update: (client, id, body, options) => client.updateToken(id, body, options),
    },
    page,
  ),
  ...changeRoutes<WireProject>(
    {
      section: 'projects',
      permission: 'change projects',
      messages: { restrict: OF_PROJECT, budget: 'What all of its tokens together may spend.' },
      read: (client, id) => client.project(id),
      nameOf: ({ name }) => name,
      projectOf: (project) => project,
      update: (client, id, body, options) => client.updateProject(id, body, options),
    },
    page,
  ),
]);
