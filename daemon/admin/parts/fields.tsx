/** The fields and buttons of forms. */
import type { InputHTMLAttributes, ReactNode, TextareaHTMLAttributes } from 'react';
import type { WireProject } from '../../api/contract.js';
import { MAX_NAME_LENGTH, MAX_REASON_LENGTH } from '../../api/vocabulary.js';
import { escapeBidi } from './formats.js';
import { ChangeForm, Link, QueryForm, useFrame } from './frame.js';

interface Labels {
  name: string;
  label: string;
  hint?: ReactNode;
}

interface FieldProps extends Labels {
  children: (attributes: InputAttributes) => ReactNode;
}

interface InputAttributes {
  id: string;
  name: string;
  'aria-describedby': string | undefined;
  'aria-invalid'?: boolean;
  autoFocus?: boolean;
}

function Field({ name, label, hint, children }: FieldProps) {
  const { wrong } = useFrame();
  const id = `field-${name}`;
  const isWrong = wrong?.field === name;
  const about = [isWrong && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ');
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        name,
        'aria-describedby': about || undefined,
        ...(isWrong && { 'aria-invalid': true }),
        ...(wrong && { autoFocus: isWrong }),
      })}
      {isWrong ? (
        <p className="error" id={`${id}-error`}>
          {wrong.why}
        </p>
      ) : null}
      {hint ? (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      ) : null}
    </div>
  );
}

/** @param props the other attributes of the input. */
export function InputField({ name, label, hint, ...more }: Labels & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <Field name={name} label={label} hint={hint}>
      {(attributes) => <input type="text" {...more} {...attributes} />}
    </Field>
  );
}

/** A field of several lines. @param props the other attributes of the textarea. */
export function TextField({ name, label, hint, ...more }: Labels & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <Field name={name} label={label} hint={hint}>
      {(attributes) => <textarea rows={3} {...more} {...attributes} />}
    </Field>
  );
}

/** @param props the choices, and the other attributes of the select. */
export function SelectField({ name, label, hint, ...select }: Labels & SelectProps) {
  return (
    <Field name={name} label={label} hint={hint}>
      {(attributes) => <Select {...select} {...attributes} />}
    </Field>
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

/** With a value that is not one of the choices: it is in the address that somebody wrote. */
export const choicesWith = (choices: Choices, given: string): Choices =>
  choices.some(([value]) => value === given) ? choices : [...choices, [given, given]];

export const choicesOf = (projects: readonly WireProject[]): Choices =>
  projects.map(({ id, name }) => [id, escapeBidi(name)] as const);

/** The fields of a filter. Each has the parameter of its name in the query of the page, to begin with. */
export function filterFields(query: URLSearchParams) {
  const given = (name: string) => query.get(name) ?? '';
  /** @param usual what is chosen without the parameter. */
  const select = (name: string, label: string, choices: Choices, usual = '') => (
    <SelectField name={name} label={label} choices={choices} chosen={given(name) || usual} />
  );
  const input = (name: string, label: string, more: InputHTMLAttributes<HTMLInputElement>) => (
    <InputField defaultValue={given(name)} {...more} name={name} label={label} />
  );
  return {
    given,
    select,
    input,
    project: (projects: readonly WireProject[]) =>
      select('project_id', 'Project', [['', 'all'], ...choicesOf(projects)]),
    /** Finds a token: see `withTokenId`. */
    token: () =>
      input('token_id', 'Token', {
        maxLength: MAX_NAME_LENGTH,
        spellCheck: false,
        placeholder: 'name or ID',
      }),
    /** Any period, in the grammar of the options of commands: see `periodOf`. */
    since: (label = 'Since') => input('since', label, { ...TIME, list: 'times' }),
    until: () => input('until', 'Until', { ...TIME, placeholder: 'now' }),
    times: () => (
      <datalist id="times">
        {['1h', '24h', '7d', '30d', '90d'].map((span) => (
          <option key={span} value={span} />
        ))}
      </datalist>
    ),
  };
}

const TIME = { maxLength: 30, spellCheck: false, placeholder: '24h, 7d' } as const;

interface FilterFormProps {
  /** The page, relative to the base. */
  to: string;
  label: string;
  verb?: string;
  query: URLSearchParams;
  children: ReactNode;
  /** Fields after the button. */
  more?: ReactNode;
  /** Whether it has a query box (`boxRoute`): then its fields go into no address before they were looked at. */
  hasBox?: boolean;
}

export function FilterForm({ to, label, verb = 'Filter', query, children, more, hasBox = false }: FilterFormProps) {
  const Form = hasBox ? ChangeForm : QueryForm;
  return (
    <Form to={to} className="filter" role="search" aria-label={label} data-box={hasBox ? '' : undefined}>
      {children}
      <div className="buttons">
        <button type="submit">{verb}</button>
        {query.size > 0 ? <Link to={to}>Clear</Link> : null}
      </div>
      {more}
    </Form>
  );
}

/** The reason for a change, for the audit record. */
export function ReasonField({ reason }: { reason: string }) {
  return (
    <InputField
      name="reason"
      label="Reason"
      hint="Recorded in the audit log. Optional."
      maxLength={MAX_REASON_LENGTH}
      defaultValue={reason}
    />
  );
}

const KEY_HINT = 'The provider’s API key. It is stored encrypted. Only its last four characters are shown again.';

interface KeyFieldsProps {
  hint?: string;
  isOptional?: boolean;
  /** Whether the checkbox is selected. */
  isChecked: boolean;
}

export function KeyFields({ hint = KEY_HINT, isOptional = false, isChecked }: KeyFieldsProps) {
  return (
    <>
      <InputField
        name="api_key"
        label="Upstream key"
        hint={hint}
        type="password"
        required={!isOptional}
        maxLength={512}
        autoComplete="off"
        spellCheck={false}
      />
      <label className="checkbox">
        <input type="checkbox" name="check_key" value="yes" defaultChecked={isChecked} />
        Check the key with the provider
      </label>
    </>
  );
}

interface FormButtonsProps {
  /** The page that Cancel leads to. */
  cancel: string;
  verb: string;
}

export function FormButtons({ cancel, verb }: FormButtonsProps) {
  return (
    <div className="buttons">
      <Link to={cancel} className="button">
        Cancel
      </Link>
      <button type="submit" className="primary">
        {verb}
      </button>
    </div>
  );
}
