/** What commands write for people, on standard output. */

/** Writes a text and ends its last line. */
export const print = (text: string): void => void process.stdout.write(`${text}\n`)

/** Writes the body of a page. Throws an Error with status and body when the status is above 399 and not 404. */
export function printPage({ status, body }: { readonly status: number; readonly body: string }): void {
  if (status > 399 && status !== 404) throw new Error(`received unsuccessful status code ${status}: ${body}`)
  print(body)
}
