/** The form for a new token, and the page that shows its secret once. */
import { type TermField, termsThat, TOKEN_TERMS } from '../../../console/columns/tokens.js';
import { ceilingsShown } from '../../../console/columns/access.js';
import { allowShown, budgetShown, limitsShown } from '../../../console/columns/policies.js';
import { type PolicyTexts, policyTexts } from '../../../console/columns/policy-fields.js';
import { ApiError } from '../../api/client.js';
import type { TokenCreate, WireProject, WireToken } from '../../api/contract.js';
import { MAX_DURATION_HOURS, policiesWithin } from '../../api/vocabulary.js';
import { exact } from '../../api/formats.js';
import {
  allProjects,
  changed,
  formValues,
  get,
  invalidRequest,
  type PageRequest,
  type PageResponse,
  post,
  statusOf,
} from '../page-request.js';
import { choicesOf, FormButtons, InputField, Select, SelectField } from '../parts/fields.js';
import { ChangeForm, isIssuer, Link, useFrame, useMay, type User } from '../parts/frame.js';
import { EmptyState, ErrorNotice, Facts } from '../parts/common.js';
import { capitalized, Name, Time, TokenLink } from '../parts/formats.js';
import { Heading } from '../parts/document.js';
import { Secret, SecretGone } from '../parts/secret.js';
import { Snippets } from '../parts/snippets.js';
import {
  EMPTY_POLICY_FORM,
  NewPolicyFields,
  policiesIn,
  policyForm,
  type UsedModels,
  usedModelsOf,
} from './policies.js';

/** Values of the form, by field name. */
type TokenFormValues = Record<TermField | 'project_id' | 'duration' | 'unit' | 'like', string> & PolicyTexts;
const DEFAULT_LIFETIME = { duration: '24', unit: 'hours' };
const TERM_FIELDS = Object.keys(TOKEN_TERMS) as TermField[];
const termValues = (valueOf: (field: TermField) => string) =>
  Object.fromEntries(TERM_FIELDS.map((field) => [field, valueOf(field)])) as Record<TermField, string>;

const EMPTY_FORM: TokenFormValues = {
  project_id: '',
  ...termValues(() => ''),
  ...DEFAULT_LIFETIME,
  like: '',
  ...EMPTY_POLICY_FORM,
};

/** The form as it begins: with ceilings, it asks for the most that they allow, because a token without a cap is beyond one. */
function formWithin({ ceilings }: User): TokenFormValues {
  if (ceilings === null) return EMPTY_FORM;
  const { hours = Infinity, requests } = ceilings;
  return {
    ...EMPTY_FORM,
    duration: String(Math.min(Number(DEFAULT_LIFETIME.duration), hours)),
    max_requests: requests === undefined ? '' : String(requests),
    ...policyTexts(policiesWithin(ceilings)),
  };
}

/** The units of a lifetime, and their minutes. */
const UNITS = Object.entries({ minutes: 1, hours: 60, days: 24 * 60 });

/** The form for a token like this one. */
function formLike(token: WireToken): TokenFormValues {
  const minutes = Math.round((Date.parse(token.expires_at) - Date.parse(token.created_at)) / 60_000);
  const [unit, size] = UNITS.findLast(([, each]) => minutes % each === 0) ?? ['minutes', 1];
  return {
    project_id: token.project_id,
    // Without a name, or without a cap, a field is empty.
    ...termValues((field) => String(token[field] || '')),
    ...(Number.isNaN(minutes) ? DEFAULT_LIFETIME : { duration: String(minutes / size), unit }),
    like: token.id,
    ...policyTexts(token),
  };
}

/** @param props.projects the projects to choose from. */
function TokenFields({ projects, given, used }: Pick<NewTokenProps, 'projects' | 'given' | 'used'>) {
  // No other project instead of one that is not active any more.
  const isKnown = given.project_id === '' || projects.some(({ id }) => id === given.project_id);
  const choices = isKnown ? choicesOf(projects) : [['', 'Choose a project'] as const, ...choicesOf(projects)];
  return (
    <>
      {given.like === '' ? null : <input type="hidden" name="like" value={given.like} />}
      <SelectField
        name="project_id"
        label="Project"
        choices={choices}
        chosen={isKnown ? given.project_id : ''}
        required
      />
      {termsThat(false).map(({ field, label, hint, max }) => (
        <InputField
          key={field}
          name={field}
          label={label}
          hint={given.like === '' ? `${capitalized(hint)}. Optional.` : 'Leave empty for that of the other token.'}
          maxLength={max}
          defaultValue={given[field]}
        />
      ))}
      <fieldset className="pair">
        <legend>Valid for</legend>
        <input type="number" name="duration" min="1" required defaultValue={given.duration} aria-label="Lifetime" />
        <Select
          choices={UNITS.map(([name]) => [name, name] as const)}
          chosen={given.unit}
          name="unit"
          aria-label="Unit of time"
        />
      </fieldset>
      {termsThat(true).map(({ field, label, hint, max }) => (
        <InputField
          key={field}
          name={field}
          label={label}
          hint={`${capitalized(hint)}.`}
          type="number"
          min="0"
          max={max}
          defaultValue={given[field]}
        />
      ))}
      <NewPolicyFields given={given} used={used} />
    </>
  );
}

interface NewTokenProps {
  /** The active projects: inactive projects cannot have new tokens. */
  projects: readonly WireProject[];
  given: TokenFormValues;
  /** The token whose settings the form has. */
  like: WireToken | null;
  used: UsedModels;
  refused: string | null;
}

function NewTokenPage(props: NewTokenProps) {
  return (
    <div className="narrow">
      <Heading title={props.like ? 'Issue again' : 'New token'} path={<Link to="tokens">Tokens</Link>} />
      {props.like ? <LikeNotice token={props.like} /> : null}
      {props.projects.length === 0 ? <NoProject /> : <NewTokenForm {...props} />}
    </div>
  );
}

export function NoProject() {
  return (
    <EmptyState title="No active project">
      <p>
        A token belongs to a project.{' '}
        {useMay()('create projects') ? (
          <>
            <Link to="projects/new">Create one</Link>, or <Link to="projects">activate one</Link>.
          </>
        ) : (
          'Ask those who run llmp for one.'
        )}
      </p>
    </EmptyState>
  );
}

function CeilingsHint() {
  const { user } = useFrame().offers;
  return user?.ceilings ? (
    <p className="hint">{`Your tokens may have at most: ${ceilingsShown(user.ceilings)}.`}</p>
  ) : null;
}

function LikeNotice({ token }: { token: WireToken }) {
  return (
    <p className="notice">
      A new token with the settings of <TokenLink token={token} />, which stays as it is.{' '}
      {token.state === 'active' ? 'Revoke it when its clients use the new one.' : ''}
    </p>
  );
}

function NewTokenForm({ projects, given, used, refused }: NewTokenProps) {
  return (
    <>
      <ErrorNotice why={refused} />
      <CeilingsHint />
      <ChangeForm to="tokens/new">
        <TokenFields projects={projects} given={given} used={used} />
        <FormButtons cancel="tokens" verb="Issue token" />
      </ChangeForm>
    </>
  );
}

interface SecretProps {
  token: WireToken;
  /** Null if the secret was already shown; it is not stored anywhere. */
  secret: string | null;
  baseUrl: string;
}

/** Shows the secret once; going back or reloading does not show it again. */
function SecretPage({ token, secret, baseUrl }: SecretProps) {
  const { user } = useFrame().offers;
  return (
    <div className={secret === null ? 'narrow' : 'issued'}>
      <Heading
        title={secret === null ? 'Secret already shown' : 'Token issued'}
        path={<Link to="tokens">Tokens</Link>}
      />
      {secret === null ? (
        <SecretGone advice="If you did not save it, revoke this token and issue a new one." />
      ) : (
        <Revealed token={token} secret={secret} baseUrl={baseUrl} />
      )}
      <p className="buttons start">
        <Link to={isIssuer(user) ? '' : `tokens/${token.id}`} className={secret === null ? 'button primary' : 'button'}>
          {secret !== null ? 'I have stored it' : isIssuer(user) ? 'Go to my tokens' : 'Go to the token'}
        </Link>
      </p>
    </div>
  );
}

function Revealed({ token, secret, baseUrl }: { token: WireToken; secret: string; baseUrl: string }) {
  return (
    <>
      <Secret of="token" secret={secret} warning="Anyone who has it can use the token." />
      <IssuedFacts token={token} />
      <Snippets baseUrl={baseUrl} model={exactModelOf(token)} />
    </>
  );
}

/** A model that the token may use, for the examples. */
const exactModelOf = ({ allow }: WireToken): string | undefined =>
  allow?.models?.find((name) => /^[\w.:/@-]+$/.test(name));

function IssuedFacts({ token }: { token: WireToken }) {
  return (
    <Facts
      id="facts"
      facts={[
        token.name === null ? null : { name: 'Name', value: <Name>{token.name}</Name> },
        { name: 'Expires', value: <Time at={token.expires_at} isFull /> },
        {
          name: 'Requests',
          value: token.max_requests === 0 ? 'unlimited' : `up to ${exact(token.max_requests)}`,
        },
        token.allow === null ? null : { name: 'Allows', value: allowShown(token.allow) },
        token.limits === null ? null : { name: 'Limits', value: limitsShown(token.limits) },
        token.budget === null ? null : { name: 'Budget', value: budgetShown(token.budget) },
      ]}
    />
  );
}

// ---- routes

async function newToken(request: PageRequest, given: TokenFormValues, refused: string | null): Promise<PageResponse> {
  const { client } = request;
  const [projects, like] = await Promise.all([
    allProjects(client, { is_active: 'true' }),
    given.like === '' ? null : client.token(given.like),
  ]);
  const [only, ...others] = projects;
  const chosen = projects.find(({ id }) => id === given.project_id) ?? (others.length === 0 ? only : undefined);
  const used = await usedModelsOf(client, chosen ?? null);
  const body = <NewTokenPage projects={projects} given={given} like={like} used={used} refused={refused} />;
  return { title: like ? 'Issue again' : 'New token', section: 'tokens', body, ...statusOf(refused) };
}

/** @param what label of the field, for the error message. @throws {ApiError} if the text is not a whole number. */
function parseWholeNumber(text: string, what: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw invalidRequest(`${what} must be a whole number`);
}

/** @throws {ApiError} with the limit in the unit of the form. */
function parseMinutes(duration: string, unit: string): number {
  const what = 'the lifetime';
  const amount = parseWholeNumber(duration, what);
  const [, minutes] = UNITS.find(([name]) => name === unit) ?? [];
  if (minutes === undefined) throw invalidRequest('the unit must be minutes, hours or days');
  const most = Math.floor((MAX_DURATION_HOURS * 60) / minutes);
  if (amount < 1 || amount > most) throw invalidRequest(`${what} must be from 1 to ${most} ${unit}`);
  return amount * minutes;
}

function tokenCreateOf(given: TokenFormValues): TokenCreate {
  const terms: Record<string, string | number> = {};
  for (const { field } of termsThat(false)) if (given[field] !== '') terms[field] = given[field];
  for (const { field, label } of termsThat(true)) {
    if (given[field] !== '') terms[field] = parseWholeNumber(given[field], `the ${label.toLowerCase()}`);
    // Without a value the new token would have that of the other one.
    else if (given.like !== '') terms[field] = 0;
  }
  const like = given.like === '' ? {} : { like: given.like };
  const { allow, limits, budget } = policiesIn(given);
  return {
    project_id: given.project_id,
    ...like,
    ...terms,
    // Null removes that of the other token.
    ...(given.like !== '' || allow ? { allow } : {}),
    ...(given.like !== '' || limits ? { limits } : {}),
    ...(given.like !== '' || budget ? { budget } : {}),
    duration_minutes: parseMinutes(given.duration, given.unit),
  };
}

/**
 * Creates a token and passes its secret to the next page in a cookie: only this response has it, and reloading must not create another token.
 *
 * @returns the page with the secret.
 */
export async function issued(request: PageRequest, token: TokenCreate): Promise<string> {
  const { id, token: secret } = await request.changeClient.createToken(token).catch(asFormError);
  const to = `tokens/${id}/secret`;
  request.storeSecret(to, secret);
  return to;
}

function issue(request: PageRequest): Promise<PageResponse> {
  const given = { ...formValues(request.form, EMPTY_FORM), ...policyForm(request.form) };
  return changed(
    () => issued(request, tokenCreateOf(given)),
    (refused) => newToken(request, given, refused),
  );
}

/** Turns a missing project into an error of the form, which is shown again with the entered values. */
function asFormError(error: unknown): never {
  throw error instanceof ApiError && error.status === 404 ? invalidRequest(error.message, error.code) : error;
}

export const newTokenRoutes = [
  get('/tokens/new', 'issue tokens', async (request) => {
    const like = request.query.get('like') ?? '';
    const given =
      like === ''
        ? { ...formWithin(request.user), project_id: request.query.get('project_id') ?? '' }
        : formLike(await request.client.token(like));
    return newToken(request, given, null);
  }),
  post('/tokens/new', 'issue tokens', issue),
  get('/tokens/:id/secret', 'issue tokens', async (request) => {
    const token = await request.client.token(request.id);
    const body = <SecretPage token={token} secret={request.takeSecret()} baseUrl={request.baseUrl} />;
    return { title: 'Token issued', section: 'tokens', body };
  }),
];
