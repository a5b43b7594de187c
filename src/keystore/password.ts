/** The password of a key store, from the text of a file. */

/** The maximum length of a password in characters. */
const longest = 1024

/** Returns the first line of a text, as OpenSSL and keytool take it, without its end. Throws an Error when it is longer than 1,024 characters. */
export function passwordOf(text: string): string {
  const [line = ''] = text.split(/\r?\n/, 1)
  if (line.length > longest) throw new Error(`has a password of more than ${longest.toLocaleString('en')} characters`)
  return line
}

/**
 * Returns the password of a file that is to be written, from a text as in {@link passwordOf}. Throws an Error when it is empty, or has a
 * character that is not printable ASCII, since Java reads no key store with such a password.
 */
export function passwordToWriteOf(text: string): string {
  const password = passwordOf(text)
  if (password === '') throw new Error('its first line, the password of a key store, is empty')
  const other = password.search(/[^ -~]/)
  if (other !== -1) throw new Error(`character ${other + 1} of the password is not printable ASCII: Java reads no key store with such a password`)
  return password
}
