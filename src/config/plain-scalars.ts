/**
 * What plain scalars mean: as the orchestrator and its command line read them (`sigs.k8s.io/yaml`, after YAML 1.1). `yes` and `off` are flags,
 * numbers with a leading zero are octal and may have underscores; times are texts.
 */

/** The words that are no text. */
const words: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
  ...['.nan', '.NaN', '.NAN'].map((word) => [word, Number.NaN] as const),
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((word) => [word, Number.POSITIVE_INFINITY] as const),
  ...['-.inf', '-.Inf', '-.INF'].map((word) => [word, Number.NEGATIVE_INFINITY] as const),
])
const longestWord = 5

/** Scalars that begin like a number. */
const mayBeNumber = /^[-+.\d]/
const usual = /^(?:0|[1-9]\d{0,14})$/
const whole = /^([-+]?)(0[bB][01]+|0[oO][0-7]+|0[xX][\da-fA-F]+|0[0-7]*|[1-9]\d*)$/
const decimal = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/

/** Returns what a plain scalar means: text, a number (which may be infinite or none), a flag or null. */
export function plainScalar(text: string): unknown {
  if (text.length <= longestWord) {
    const word = words.get(text)
    if (word !== undefined) return word
  }
  return mayBeNumber.test(text) ? (numberIn(text) ?? text) : text
}

/** Returns the number that a scalar means. Undefined: it is text, as are numbers in other bases than ten of more than 64 bits. */
function numberIn(text: string): number | undefined {
  if (usual.test(text)) return Number(text)
  // Underscores are left out; in what begins with a point, only those between digits.
  const digits = text.replaceAll(text.startsWith('.') ? /(?<=\d)_(?=\d)/g : '_', '')
  const [, sign, magnitude] = whole.exec(digits) ?? []
  if (magnitude !== undefined) {
    const value = BigInt(/^0\d/.test(magnitude) ? `0o${magnitude}` : magnitude)
    const most = sign === '-' ? 1n << 63n : sign === '+' ? (1n << 63n) - 1n : (1n << 64n) - 1n
    if (value <= most) return Number(sign === '-' ? -value : value)
  }
  if (decimal.test(digits)) {
    const value = Number(digits)
    return Number.isFinite(value) ? value : undefined
  }
  const [, signed] = /^0b([-+][01]{1,63})$/.exec(digits) ?? []
  return signed === undefined ? undefined : Number(`${signed[0]}1`) * Number(`0b${signed.slice(1)}`)
}

/** Whether a value is a number that JSON cannot express. */
export const isNoNumber = (value: unknown): boolean => typeof value === 'number' && !Number.isFinite(value)
