/** What no line of the log shows (docs/operation.md, "Logs"): tokens, passwords and private keys. */

/** What is written in the place of a secret. */
const hidden = '[redacted]'

/** Labels whose values are secrets, whatever they look like. */
const secretLabels = [
  ...['authorization', 'token', 'accessToken', 'access_token', 'subject_token', 'actor_token', 'refresh_token', 'id_token'],
  ...['password', 'secret', 'client_secret', 'privateKey', 'private_key'],
]

/** Secrets that have a form of their own, in any text. The first group, if there is one, is kept. */
const secretTexts = [
  // Private keys in PEM, also when they are cut off, and PEM in base64, as the data of a Secret has it.
  /-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|$)/gs,
  /LS0tLS1CRUdJT[\w+/=-]*/g,
  // JSON Web Tokens.
  /(?<![\w-])eyJ[\w-]*\.[\w-]+(?:\.[\w-]*)*/g,
  // Credentials of a request, fields of a form or of JSON by the names of the labels, and those in a URL.
  /((?<!\w)(?:Bearer|Basic) +)[\w.~+/=-]{16,}/gi,
  new RegExp(`((?<!\\w)(?:${secretLabels.join('|')})\\\\?"?[:=] ?\\\\?"?)[\\w.~+/=-]{16,}`, 'gi'),
  // Shorter ones, where the text is a header, a form or JSON and not a sentence.
  /((?<!\w)authorization: ?(?:Bearer|Basic) +)[\w.~+/=-]+/gi,
  new RegExp(`((?<!\\w)(?:${secretLabels.join('|')})=)[^\\s&;,"'\\\\]+`, 'gi'),
  new RegExp(`((?<!\\w)(?:${secretLabels.join('|')})\\\\?" ?: ?\\\\?")[^"\\\\]+`, 'gi'),
  /(:\/\/)[^/\s:@]+:[^/\s@]+(?=@)/g,
]

/**
 * The rules in the terms of the logging library: paths of labels, and of every other text of a line (`*`), with the function that returns
 * what is written in the place of a value.
 */
export const redaction = {
  paths: ['*', ...secretLabels],
  censor: (value: unknown, [label]: string[]): unknown => {
    if (secretLabels.includes(label ?? '')) return hidden
    return typeof value === 'string' ? secretTexts.reduce(withoutSecrets, value) : value
  },
}

/** Names of fields with credentials, such as `DB_PASSWORD`. */
const credentialName = /(?:^|[_.-])(?:token|passw(?:or)?d|secret|(?:private|api|access)_?key|credentials?)$/i

/** Returns a value of JSON without secrets: those of the rules, and the texts of fields with names of credentials. */
export function redacted(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => redacted(each, name))
  if (typeof value === 'object' && value !== null) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, redacted(each, key)]))
  return typeof value === 'string' && credentialName.test(name) ? hidden : redaction.censor(value, [name])
}

function withoutSecrets(text: string, secret: RegExp): string {
  return text.replace(secret, (_, kept: unknown) => `${typeof kept === 'string' ? kept : ''}${hidden}`)
}
