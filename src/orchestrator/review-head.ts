/** What the answer to a review needs that is nested too deep to be parsed: its version and its uid (docs/operation.md, W3). */

/** What was found: texts, empty where there is none. */
export interface ReviewHead {
  readonly apiVersion: string
  readonly uid: string
}

/** The most bytes of a text that is read, in JSON. */
const most = 512

const [quote, backslash, colon] = [0x22, 0x5c, 0x3a]
const [opening, closing] = [new Set([0x5b, 0x7b]), new Set([0x5d, 0x7d])]
const space: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d])

/** Finds `apiVersion` and `request.uid` in JSON, in one pass that does not recur. Never throws. */
export function reviewHead(json: Uint8Array): ReviewHead {
  const found = { apiVersion: '', uid: '' }
  /** The keys that lead to the value that is read: of the outermost mapping, and of the one in it. */
  const keys = ['', '']
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] as number
    if (opening.has(byte)) depth++
    else if (closing.has(byte)) depth--
    if (byte !== quote) continue
    const end = endOfText(json, at)
    if (depth === 1 || depth === 2) {
      const value = textIn(json, at, end)
      if (isKey(json, end)) keys[depth - 1] = value
      else if (depth === 1 && keys[0] === 'apiVersion') found.apiVersion = value
      else if (depth === 2 && keys[0] === 'request' && keys[1] === 'uid') found.uid = value
    }
    at = end - 1
  }
  return found
}

/** The place after the text that begins at a place. */
function endOfText(json: Uint8Array, from: number): number {
  let at = from + 1
  while (at < json.length && json[at] !== quote) at += json[at] === backslash ? 2 : 1
  return Math.min(at + 1, json.length)
}

/** Whether a colon follows. */
function isKey(json: Uint8Array, from: number): boolean {
  let at = from
  while (space.has(json[at])) at++
  return json[at] === colon
}

function textIn(json: Uint8Array, from: number, end: number): string {
  if (end - from > most) return ''
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json.subarray(from, end)))
    return typeof value === 'string' ? value : ''
  } catch {
    return ''
  }
}
