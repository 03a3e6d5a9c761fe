import type { ReactNode } from 'react';
import { Heading } from './document.js';
import { ReasonField } from './fields.js';
import { ChangeForm, Link } from './frame.js';
import { Refused } from './parts.js';

export interface ConfirmProps {
  title: string;
  /** What will be. */
  says: ReactNode;
  /** Where the form goes, and where who changed their mind does. */
  to: string;
  back: string;
  verb: string;
  isDangerous: boolean;
  /** What the form says besides the reason. */
  fields?: Readonly<Record<string, string>>;
  refused: string | null;
  reason: string;
}

/** Asks before something is changed. Cancel comes first and has the focus, so that a key pressed too soon does nothing. */
export function confirmPage({ title, says, to, back, verb, isDangerous, fields = {}, refused, reason }: ConfirmProps) {
  return (
    <div className="narrow" data-dialog-content="">
      <Heading title={title} />
      <Refused why={refused} />
      <p>{says}</p>
      <ChangeForm to={to}>
        {Object.entries(fields).map(([name, value]) => (
          <input key={name} type="hidden" name={name} value={value} />
        ))}
        <ReasonField reason={reason} />
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
}
