/** Writes the output of commands to standard output. */
import { printable } from '../logging/layout.ts'

/** Writes a text and a newline. */
export const print = (text: string): void => void process.stdout.write(`${text}\n`)

/**
 * Ends the process with a status and one line when standard output cannot be written, as on a full disk. A reader that closes its pipe early
 * (EPIPE) has what it wants. What the last call says counts.
 */
export function endWhenUnwritten(status: number): void {
  process.stdout.prependListener('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return
    process.stderr.write(`Error: standard output: ${message}\n`)
    process.exit(status)
  })
}

/**
 * Writes the body of a response. `isJson`: as a JSON value with its status, in which a body of JSON is that value, and any other a text. Throws an Error
 * with status and body when the status is above 399, except 404.
 */
export function printPage({ status, body }: { readonly status: number; readonly body: string }, isJson = false): void {
  const text = body.replace(/\n$/, '')
  if (status > 399 && status !== 404) throw new Error(`received unsuccessful status code ${status}: ${text}`)
  // A body of JSON stays as it is written: numbers beyond 2^53 would become others.
  print(isJson ? printable(`{\n  "status": ${status},\n  "body": ${isValue(text) ? text : JSON.stringify(text)}\n}`) : text)
}

function isValue(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Writes an answer for programs, which a terminal shows as it is. */
export const printJson = (answer: unknown): void => print(printable(JSON.stringify(answer, null, 2)))

/** Whether what is written to standard output may have colours: on a terminal that has some, unless `NO_COLOR` is set. */
export const isColoured = (): boolean => process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb'

/** The width of the terminal that standard output is, in characters; infinite where it is none. */
export const terminalWidth = (): number => (process.stdout.isTTY && process.stdout.columns > 0 ? process.stdout.columns : Number.POSITIVE_INFINITY)
