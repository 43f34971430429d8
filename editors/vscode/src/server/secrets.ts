/** Keys and passwords, kept out of what is written down. */

const HIDDEN = "•••";

/** Names whose values are secrets. `idempotencyKey` is none, nor is a number of tokens. */
const NAMES =
  /^(?:.*[_-])?(?:api[_-]?key|access[_-]?key|secret|secret[_-]?key|password|passwd|authorization|token|auth|credentials?|private[_-]?key|cookie)$/i;

/** Values that are secrets wherever they stand. */
const VALUES = [
  /\b(?:sk|pk|rk|xox[abprs]|gh[pousr]|glpat|github_pat)[-_][\w-]{12,}/g,
  /\bAKIA[0-9A-Z]{16}\b/g,
  /\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
];

const BEARER = /\b(bearer|basic)(\s+)[\w.~+/=-]{8,}/gi;

/** `NAME=value`, `"name": "value"`, `name: value`. */
const ASSIGNED =
  /((?<![\w-])[\w-]{0,40}(?:api[_-]?key|access[_-]?key|secret|secret[_-]?key|password|passwd|authorization|token|private[_-]?key)\\?["']?\s{0,4}[=:]\s{0,4})(\\?["']?)([^\s"'\\,;}]+)/gi;

/** Where a password stands in a URL. */
const IN_URL = /\b([a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@]{1,100}:)[^\s/@]{1,200}@/gi;

export function isSecretName(name: string): boolean {
  return NAMES.test(name.replace(/([a-z0-9])([A-Z])/g, "$1_$2"));
}

/** The text, with what looks like a secret in it put out of sight. */
export function masked(text: string): string {
  let out = text.replace(BEARER, `$1$2${HIDDEN}`).replace(IN_URL, `$1${HIDDEN}@`);
  for (const value of VALUES) {
    out = out.replace(value, HIDDEN);
  }
  return out.replace(ASSIGNED, (all, before: string, quote: string, value: string) =>
    value === HIDDEN || /^(?:bearer|basic|null|true|false|\d+)$/i.test(value)
      ? all
      : `${before}${quote}${HIDDEN}`,
  );
}

export { HIDDEN };
