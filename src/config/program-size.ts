/**
 * Computes the size of RE2's program for a regular expression, which Envoy limits (`re2.max_program_size.error_level`). Envoy 1.36 compiles
 * for UTF-8, where a character class is several instructions over bytes; 1.40 compiles for single bytes.
 */
import { RE2JS } from 're2js'
import { agentProgramSize } from './program-bounds.ts'

/** Opcodes of the instructions of `re2js` 2.10. */
const operation = {
  alt: 1,
  altMatch: 2,
  emptyWidth: 4,
  fail: 5,
  match: 6,
  nop: 7,
  rune: 8,
  rune1: 9,
  runeAny: 10,
  runeAnyNotNewline: 11,
  lookbehind: 12,
} as const
/** Arguments of empty-width instructions, and the flag of case-insensitive rune instructions. */
const [beginText, endText, foldCase] = [4, 8, 1]

interface Instruction {
  readonly op: number
  readonly out: number
  readonly arg: number
  readonly runes: ArrayLike<number>
}
interface Program {
  readonly start: number
  readonly inst: readonly Instruction[]
}

/**
 * Returns the number of instructions in RE2's program for a regular expression: an upper bound for all supported releases of Envoy.
 * Counting stops above the largest limit, so that a pattern with large classes costs no more than another. Throws when the text is not a
 * regular expression.
 */
export function programSize(pattern: string): number {
  const size = sizeOf(programOf(pattern), utf8Steps)
  const bytes = Buffer.from(pattern).toString('latin1')
  return bytes === pattern || size > agentProgramSize ? size : Math.max(size, sizeOf(programOf(bytes), byteSteps))
}

function programOf(pattern: string): Program {
  const { prog } = RE2JS.compile(pattern).re2() as unknown as { readonly prog: Program }
  if (prog.inst.some(({ op }) => op >= operation.lookbehind)) throw new Error('lookbehind is not supported')
  return prog
}

/** Computes the number of instructions that match a character of some ranges: those that match its first byte, and all. */
type Steps = (ranges: readonly Range[]) => { readonly first: number; readonly all: number }
type Range = readonly [low: number, high: number]

/**
 * Counts the instructions. RE2 flattens a program into lists: one at the start and one after each instruction that consumes input, with the
 * instructions that may come next. A list that may follow several instructions exists once, and each of these refers to it with one
 * instruction.
 */
function sizeOf({ inst, start }: Program, steps: Steps): number {
  if (inst.length > agentProgramSize) return inst.length
  const anchors = anchorsOf(inst, start)
  const next = (at: number): number => {
    const { op, out } = inst[at] as Instruction
    return op === operation.nop || anchors.has(at) ? next(out) : at
  }
  const branches = (at: number): number[] => {
    const { op, out, arg } = inst[at] as Instruction
    return op === operation.alt || op === operation.altMatch ? [next(out), next(arg)] : []
  }
  const roots = new Set([next(start)])
  const comesFrom = new Map<number, number[]>()
  for (const at of reachable([next(start)], (each) =>
    branches(each).length > 0 ? branches(each) : isEnd(inst[each]) ? [] : [next((inst[each] as Instruction).out)],
  )) {
    const both = branches(at)
    for (const branch of both) comesFrom.set(branch, [...(comesFrom.get(branch) ?? []), at])
    if (both.length === 0 && !isEnd(inst[at])) roots.add(next((inst[at] as Instruction).out))
  }
  const listOf = (root: number) => reachable([root], (at) => (at !== root && roots.has(at) ? [] : branches(at)))
  for (const root of [...roots].reverse()) {
    if (root === next(start)) continue
    const list = listOf(root)
    for (const at of list) if (comesFrom.get(at)?.some((from) => !list.has(from))) roots.add(at)
  }
  const known = new Map<string, ReturnType<Steps>>()
  const stepsOf = (instruction: Instruction): ReturnType<Steps> => {
    if (instruction.op < operation.rune) return { first: 1, all: 1 }
    const key = `${instruction.op} ${instruction.arg} ${Array.prototype.join.call(instruction.runes)}`
    const own = known.get(key) ?? steps(rangesOf(instruction))
    known.set(key, own)
    return own
  }
  const used = new Set<number>()
  // One instruction for failure, and two for unanchored search.
  let size = 3
  for (const root of roots) {
    for (const at of listOf(root)) {
      if (at !== root && roots.has(at)) size += 1
      else if (branches(at).length === 0) {
        const { first, all } = stepsOf(inst[at] as Instruction)
        size += used.has(at) ? first : all
        if (size > agentProgramSize) return size
        used.add(at)
      }
    }
  }
  return size
}

/** Returns the nodes reachable from some nodes, including these. */
function reachable(from: readonly number[], next: (at: number) => readonly number[]): Set<number> {
  const found = new Set<number>()
  const open = [...from]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (found.has(at)) continue
    found.add(at)
    open.push(...next(at))
  }
  return found
}

const isEnd = (instruction: Instruction | undefined): boolean => instruction?.op === operation.match || instruction?.op === operation.fail

/** Anchors at the beginning and the end of the pattern, which RE2 keeps as flags and not as instructions. */
function anchorsOf(inst: readonly Instruction[], start: number): ReadonlySet<number> {
  const found = new Set<number>()
  const isAnchor = (at: number, kind: number) => inst[at]?.op === operation.emptyWidth && inst[at].arg === kind
  if (isAnchor(start, beginText) && inst.every(({ op, out, arg }) => out !== start && !(op <= operation.altMatch && arg === start))) found.add(start)
  const last = [...inst.keys()].filter((at) => inst[at]?.op !== operation.match && inst[(inst[at] as Instruction).out]?.op === operation.match)
  if (last.length === 1 && isAnchor(last[0] as number, endText)) found.add(last[0] as number)
  return found
}

const lastRune = 0x10ffff

/** Returns the characters that an instruction matches. */
function rangesOf({ op, arg, runes }: Instruction): Range[] {
  if (op === operation.runeAny) return [[0, lastRune]]
  if (op === operation.runeAnyNotNewline)
    return [
      [0, 9],
      [11, lastRune],
    ]
  if (runes.length === 1) return arg & foldCase ? caseVariants(runes[0] as number) : [[runes[0] as number, runes[0] as number]]
  return Array.from({ length: runes.length >> 1 }, (_, pair): Range => [runes[2 * pair] as number, runes[2 * pair + 1] as number])
}

/** Returns a character in all cases. Some characters have a third form that JavaScript does not list; U+FFFF is a placeholder for it. */
function caseVariants(rune: number): Range[] {
  const text = String.fromCodePoint(rune)
  const forms = new Set([text, text.toLowerCase(), text.toUpperCase()].map((form) => form.codePointAt(0) as number))
  if (rune === 0x6b || rune === 0x4b) forms.add(0x212a)
  else if (rune === 0x73 || rune === 0x53) forms.add(0x17f)
  else if (rune > 0x7f) forms.add(0xffff)
  return [...forms].map((form): Range => [form, form])
}

const isUpper = (code: number): boolean => code >= 0x41 && code <= 0x5a

/** Removes upper-case ASCII letters from the ranges if the same lower-case letters are in them, because one instruction matches both. */
function foldedAscii(ranges: readonly Range[]): readonly Range[] {
  const has = (code: number) => ranges.some(([low, high]) => low <= code && code <= high)
  for (let code = 0x41; code <= 0x5a; code++) if (has(code) !== has(code + 32)) return ranges
  return ranges.filter(([low, high]) => !(isUpper(low) && isUpper(high)))
}

/** Instructions over single bytes. */
const byteSteps: Steps = (ranges) => {
  const all = Math.max(1, foldedAscii(ranges).filter(([low]) => low <= 0xff).length)
  return { first: all, all }
}

/**
 * Instructions over the bytes of UTF-8. Common suffixes are counted once. Common prefixes, which RE2 also merges, are counted for each
 * range.
 */
const utf8Steps: Steps = (ranges) => {
  const ends = new Set<string>()
  let [first, all] = [0, 0]
  const add = (low: number, high: number): void => {
    if (low === 0x80 && high === lastRune) {
      first += 3
      all += 6
      return
    }
    for (const [from, to] of sameLength(low, high)) {
      const [lows, highs] = [utf8(from), utf8(to)]
      let key = ''
      for (let at = lows.length - 1; at >= 0; at--) {
        key = `${lows[at]}-${highs[at]} ${key}`
        const shared = lows.length > 1 && (at === lows.length - 1 || (at > 0 && (lows[at] as number) < (highs[at] as number)))
        if (shared && ends.has(key)) continue
        if (shared) ends.add(key)
        all++
        if (at === 0) first++
      }
    }
  }
  for (const [low, high] of foldedAscii(ranges)) {
    if (low <= 0x7f) add(low, Math.min(high, 0x7f))
    if (high > 0x7f) add(Math.max(low, 0x80), high)
  }
  return { first: Math.max(1, first), all: Math.max(1, all) }
}

const utf8 = (rune: number): Uint8Array => {
  if (rune <= 0x7f) return Uint8Array.of(rune)
  if (rune <= 0x7ff) return Uint8Array.of(0xc0 | (rune >> 6), 0x80 | (rune & 63))
  if (rune <= 0xffff) return Uint8Array.of(0xe0 | (rune >> 12), 0x80 | ((rune >> 6) & 63), 0x80 | (rune & 63))
  return Uint8Array.of(0xf0 | (rune >> 18), 0x80 | ((rune >> 12) & 63), 0x80 | ((rune >> 6) & 63), 0x80 | (rune & 63))
}

/** Splits a range into parts in which both ends have encodings of the same length that differ only in their last bytes. */
function sameLength(low: number, high: number): Range[] {
  for (const longest of [0x7f, 0x7ff, 0xffff])
    if (low <= longest && longest < high) return [...sameLength(low, longest), ...sameLength(longest + 1, high)]
  if (high <= 0x7f) return [[low, high]]
  for (let bytes = 1; bytes < 4; bytes++) {
    const rest = 2 ** (6 * bytes) - 1
    if ((low | rest) === (high | rest)) continue
    if ((low & rest) !== 0) return [...sameLength(low, low | rest), ...sameLength((low | rest) + 1, high)]
    if ((high & rest) !== rest) return [...sameLength(low, (high & ~rest) - 1), ...sameLength(high & ~rest, high)]
  }
  return [[low, high]]
}
