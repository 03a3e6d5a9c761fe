/** Form fields. */
import type { ReactNode } from 'react';
import { MAX_NAME_LENGTH, MAX_REASON_LENGTH } from '../../api/vocabulary.js';

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

/** Finds a token in a filter: see token-search.ts. */
export function TokenField({ given }: { given: string }) {
  return (
    <Field name="token_id" label="Token">
      {(attributes) => (
        <input
          type="text"
          maxLength={MAX_NAME_LENGTH}
          spellCheck={false}
          placeholder="name or ID"
          defaultValue={given}
          {...attributes}
        />
      )}
    </Field>
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
