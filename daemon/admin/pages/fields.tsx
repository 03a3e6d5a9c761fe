/** Form fields. */
import type { InputHTMLAttributes, ReactNode } from 'react';
import type { WireProject } from '../../api/contract.js';
import { MAX_NAME_LENGTH, MAX_REASON_LENGTH } from '../../api/vocabulary.js';
import { escapeBidi } from './formats.js';
import { Link, QueryForm } from './frame.js';

export interface FieldProps {
  name: string;
  label: string;
  hint?: ReactNode;
  children: (attributes: { id: string; name: string; 'aria-describedby': string | undefined }) => ReactNode;
}

export function Field({ name, label, hint, children }: FieldProps) {
  const id = `field-${name}`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, name, 'aria-describedby': hint ? `${id}-hint` : undefined })}
      {hint ? (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      ) : null}
    </div>
  );
}

/** Value and label of each choice. */
export type Choices = readonly (readonly [value: string, words: string])[];

export interface SelectProps {
  choices: Choices;
  chosen: string;
  [attribute: string]: unknown;
}

export function Select({ choices, chosen, ...more }: SelectProps) {
  return (
    <select defaultValue={chosen} {...more}>
      {choices.map(([value, words]) => (
        <option key={value} value={value}>
          {words}
        </option>
      ))}
    </select>
  );
}

export const choicesOf = (projects: readonly WireProject[]): Choices =>
  projects.map(({ id, name }) => [id, escapeBidi(name)] as const);

/** The fields of a filter. Each has the parameter of its name in the query of the page, to begin with. */
export function filterFields(query: URLSearchParams) {
  const given = (name: string) => query.get(name) ?? '';
  /** @param usual what is chosen without the parameter. */
  const select = (name: string, label: string, choices: Choices, usual = '') => (
    <Field name={name} label={label}>
      {(attributes) => <Select choices={choices} chosen={given(name) || usual} {...attributes} />}
    </Field>
  );
  const input = (name: string, label: string, more: InputHTMLAttributes<HTMLInputElement>) => (
    <Field name={name} label={label}>
      {(attributes) => <input defaultValue={given(name)} {...more} {...attributes} />}
    </Field>
  );
  return {
    given,
    select,
    input,
    project: (projects: readonly WireProject[]) =>
      select('project_id', 'Project', [['', 'all'], ...choicesOf(projects)]),
    /** Finds a token: see token-search.ts. */
    token: () =>
      input('token_id', 'Token', {
        type: 'text',
        maxLength: MAX_NAME_LENGTH,
        spellCheck: false,
        placeholder: 'name or ID',
      }),
  };
}

interface FilterFormProps {
  /** The page, relative to the base. */
  to: string;
  label: string;
  verb?: string;
  query: URLSearchParams;
  children: ReactNode;
  /** Fields after the button. */
  more?: ReactNode;
}

export function FilterForm({ to, label, verb = 'Filter', query, children, more }: FilterFormProps) {
  return (
    <QueryForm to={to} className="filter" role="search" aria-label={label}>
      {children}
      <div className="buttons">
        <button type="submit">{verb}</button>
        {query.size > 0 ? <Link to={to}>Clear</Link> : null}
      </div>
      {more}
    </QueryForm>
  );
}

/** The reason for a change, for the audit record. */
export function ReasonField({ reason }: { reason: string }) {
  return (
    <Field name="reason" label="Reason" hint="Recorded in the audit log. Optional.">
      {(attributes) => <input type="text" maxLength={MAX_REASON_LENGTH} defaultValue={reason} {...attributes} />}
    </Field>
  );
}

interface KeyFieldProps {
  hint?: string;
  isOptional?: boolean;
}

/** @param props.isChecked whether the checkbox is selected. */
export function KeyFields({ isChecked, ...key }: KeyFieldProps & { isChecked: boolean }) {
  return (
    <>
      <KeyField {...key} />
      <label className="checkbox">
        <input type="checkbox" name="check_key" value="yes" defaultChecked={isChecked} />
        Check the key with the provider
      </label>
    </>
  );
}

const KEY_HINT = 'The provider’s API key. It is stored encrypted. Only its last four characters are shown again.';

function KeyField({ hint = KEY_HINT, isOptional = false }: KeyFieldProps) {
  return (
    <Field name="api_key" label="Upstream key" hint={hint}>
      {(attributes) => (
        <input
          type="password"
          required={!isOptional}
          maxLength={512}
          autoComplete="off"
          spellCheck={false}
          {...attributes}
        />
      )}
    </Field>
  );
}
