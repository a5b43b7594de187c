/** Parses JSON of strangers. What it may contain is checked before anything is parsed, so that no text costs more than its length. */

/** The maximum depth of lists and objects, and the maximum number of values. */
export interface JsonBounds {
  readonly depth: number
  readonly values: number
}

/** The usual bounds: a key set has 4 levels, and some ten values a key. */
const usual: JsonBounds = { depth: 256, values: 50_000 }

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c]
const [opening, closing] = [new Set([0x5b, 0x7b]), new Set([0x5d, 0x7d])]

/** Parses a JSON text. Throws an Error with the reason, as a clause about the text: `not JSON`, `nested in more than 256 levels`. */
export function parseBounded(text: string, most = usual): unknown {
  const excess = excessOf(text, most)
  if (excess !== undefined) throw new Error(excess)
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('not JSON')
  }
}

function excessOf(text: string, most: JsonBounds): string | undefined {
  let [depth, values] = [0, 1]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at)
    else if (code === comma) values++
    else if (closing.has(code)) depth--
    else if (opening.has(code)) {
      values++
      if (++depth > most.depth) return `nested in more than ${most.depth} levels`
    }
    if (values > most.values) return `more than ${most.values} values`
  }
  return undefined
}

/** Returns the index of the quote that ends a string; the length of the text when none does. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) return at
    if (code === backslash) at++
  }
  return text.length
}
