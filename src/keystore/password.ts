/** The password of a key store, from the text of a file. */

/** The maximum length of a password in characters. */
const longest = 1024

/** Returns the first line of a text, as OpenSSL and keytool take it, without its end. Throws an Error when it is longer than 1,024 characters. */
export function passwordOf(text: string): string {
  const [line = ''] = text.split(/\r?\n/, 1)
  if (line.length > longest) throw new Error(`has a password of more than ${longest.toLocaleString('en')} characters`)
  return line
}
