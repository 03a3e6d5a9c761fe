/** The fields of forms for the most that a token may have. */
import { policyTexts, type PolicyTexts } from '../../../console/columns/policy-fields.js';
import { type Ceilings, MAX_CAP, MAX_DURATION_HOURS, policiesWithin } from '../../api/vocabulary.js';
import { formValues, invalidField } from '../page-request.js';
import { InputField } from '../parts/fields.js';
import { NONE_USED, policiesIn, PolicyFields, policyForm } from './policies.js';

const NUMBERS = {
  hours: { label: 'Lifetime, hours', max: MAX_DURATION_HOURS },
  requests: { label: 'Request cap', max: MAX_CAP },
  active_tokens: { label: 'Active tokens', max: MAX_CAP },
} as const satisfies Partial<Record<keyof Ceilings, { label: string; max: number }>>;

type NumberField = keyof typeof NUMBERS;
const NUMBER_FIELDS = Object.keys(NUMBERS) as NumberField[];

/** Values of the fields, by their names. */
export type CeilingTexts = Record<NumberField, string> & PolicyTexts;

export function ceilingTexts(ceilings: Ceilings | null): CeilingTexts {
  const numbers = NUMBER_FIELDS.map((field) => [field, ceilings?.[field]?.toString() ?? '']);
  return {
    ...(Object.fromEntries(numbers) as Record<NumberField, string>),
    ...policyTexts(policiesWithin(ceilings ?? {})),
  };
}

export const ceilingForm = (form: URLSearchParams): CeilingTexts => ({
  ...formValues(form, Object.fromEntries(NUMBER_FIELDS.map((field) => [field, ''])) as Record<NumberField, string>),
  ...policyForm(form),
});

/** @returns null if all fields are empty. @throws {ApiError} 400 if a field is wrong. */
export function ceilingsIn(texts: CeilingTexts): Ceilings | null {
  const ceilings: Ceilings = {};
  for (const field of NUMBER_FIELDS) if (texts[field] !== '') ceilings[field] = numberIn(field, texts[field]);
  const { allow, limits, budget } = policiesIn(texts);
  const all = { ...ceilings, ...allow, ...(limits && { limits }), ...(budget && { budget }) };
  return Object.keys(all).length === 0 ? null : all;
}

function numberIn(field: NumberField, text: string): number {
  const { label, max } = NUMBERS[field];
  const number = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number <= max) return number;
  throw invalidField(field, `${label.toLowerCase()} must be a whole number from 1 to ${max}`);
}

export function CeilingFields({ given }: { given: CeilingTexts }) {
  return (
    <details
      className="ceilings"
      open={Object.entries(ceilingTexts(null)).some(([field, empty]) => given[field as keyof CeilingTexts] !== empty)}
    >
      <summary>Ceilings</summary>
      <p className="hint">The most that a token issued by the operator may have. An empty field is no ceiling.</p>
      {NUMBER_FIELDS.map((field) => (
        <InputField
          key={field}
          name={field}
          label={NUMBERS[field].label}
          type="number"
          min="1"
          max={NUMBERS[field].max}
          defaultValue={given[field]}
        />
      ))}
      <PolicyFields given={given} used={NONE_USED} />
    </details>
  );
}
