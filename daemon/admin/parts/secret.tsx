interface SecretProps {
  /** Such as `token`. */
  of: string;
  secret: string;
  /** What one can do with it. */
  warning: string;
}

/** A new secret. Going back or reloading does not show it again. */
export function Secret({ of, secret, warning }: SecretProps) {
  return (
    <>
      <p className="notice">
        <strong>Copy the secret now. It is shown only once.</strong> {warning}
      </p>
      <div className="secret">
        <code id="secret" tabIndex={0} role="textbox" aria-readonly="true" aria-label={`Secret of the ${of}`}>
          {secret}
        </code>
        <button type="button" className="primary" data-copy="secret" hidden>
          Copy
        </button>
      </div>
    </>
  );
}

/** In place of a secret that was already shown: it is not stored anywhere. */
export const SecretGone = ({ advice }: { advice: string }) => (
  <p>{`A secret is shown only once and is not stored. ${advice}`}</p>
);
