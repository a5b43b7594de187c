/** Functions that see text as words. */
import type { Budget } from '../budget.ts'
import { bytesOf, textOf, written } from '../values.ts'
import { isSpace, isUpper, lower, upper } from './letters.ts'

/** Each word with a small letter at its beginning. */
export function untitled(text: string): string {
  let isStart = true
  return [...written(text)]
    .map((letter) => {
      const changed = isStart && !isSpace(letter) ? lower(letter) : letter
      isStart = isSpace(letter)
      return changed
    })
    .join('')
}

/** The first letters of the words. */
export function initials(text: string): string {
  let isGap = true
  let result = ''
  for (const letter of text) {
    if (isSpace(letter)) isGap = true
    else if (isGap) {
      result += letter
      isGap = false
    }
  }
  return result
}

/** The text with capitals in place of small letters and the reverse. */
export const swapped = (text: string): string =>
  [...written(text)].map((letter) => (/^[\p{Lu}\p{Lt}]$/u.test(letter) ? lower(letter) : /^\p{Ll}$/u.test(letter) ? upper(letter) : letter)).join('')

/** Breaks lines at spaces; with `breaksWords` also words that are too long. */
export function wrapped(budget: Budget, text: string, { width, line, breaksWords }: { width: number; line: string; breaksWords: boolean }): string {
  const bytes = bytesOf(text)
  const most = Math.max(width, 1)
  budget.text(text.length + (bytes.length / (breaksWords ? most : 1)) * line.length)
  const lines: Buffer[] = []
  let at = 0
  while (bytes.length - at > most) {
    if (bytes[at] === 32) {
      at++
      continue
    }
    const space = bytes.subarray(at, at + most + 1).lastIndexOf(32)
    const end = space >= 0 ? at + space : breaksWords ? at + most : bytes.indexOf(32, at + most)
    lines.push(bytes.subarray(at, end < 0 ? bytes.length : end))
    if (end < 0) return textOf(joined(lines, line))
    at = end + (space >= 0 || !breaksWords ? 1 : 0)
  }
  lines.push(bytes.subarray(at))
  return textOf(joined(lines, line))
}

const joined = (lines: readonly Buffer[], line: string): Buffer =>
  Buffer.concat(lines.flatMap((part, at) => (at === 0 ? [part] : [bytesOf(line), part])))

const isConnector = (letter: string): boolean => letter === '-' || letter === '_' || isSpace(letter)

/** The words joined, each with a capital (`camelcase`). */
export function pascal(text: string): string {
  const letters = [...text]
  let at = 0
  let result = ''
  while (at < letters.length && isConnector(letters[at] as string)) result += letters[at++]
  // Go repeats the last connector of a text that has nothing else.
  if (at >= letters.length) return result + (letters.at(-1) ?? '')
  let isFirstUpper = isUpper(letters[at] as string)
  let last = upper(letters[at++] as string)
  for (; at < letters.length; at++) {
    const before = last
    last = letters[at] as string
    if (isConnector(last) && isConnector(before)) {
      result += before
      continue
    }
    if (isConnector(before)) {
      isFirstUpper = isUpper(last)
      last = upper(last)
      continue
    }
    if (isFirstUpper) {
      if (isUpper(last)) last = lower(last)
      else isFirstUpper = false
    }
    result += before
  }
  return result + last
}

type Kind = 'none' | 'connector' | 'punctuation' | 'capitals' | 'letters' | 'number' | 'other'

interface Word {
  readonly kind: Kind
  readonly letters: readonly string[]
}

const isHan = (letter: string): boolean => /^[\u4e00-\u9fcc\u3400-\u4d85\u{20000}-\u{2b81d}]$/u.test(letter)
const isAlphabet = (letter: string): boolean => /^\p{L}$/u.test(letter) && !isHan(letter)
const isNumber = (letter: string): boolean => /^\p{N}$/u.test(letter)
const isPunctuation = (letter: string): boolean => /^\p{P}$/u.test(letter)

/** Splits a text into runs of letters of one kind. `HTTPStatus` is two words. */
function* words(text: string): Generator<Word> {
  const letters = [...text]
  let at = 0
  while (at < letters.length) {
    const start = at
    const kind = kindOf(letters[at++] as string)
    const go = (fits: (letter: string) => boolean) => {
      while (at < letters.length && fits(letters[at] as string)) at++
    }
    if (kind === 'connector') go(isConnector)
    else if (kind === 'punctuation') go((letter) => isPunctuation(letter))
    else if (kind === 'number') go(isNumber)
    else if (kind === 'letters') go((letter) => isAlphabet(letter) && !isUpper(letter))
    else if (kind === 'capitals') {
      const next = letters[at]
      if (next !== undefined && isUpper(next)) {
        go(isUpper)
        if (at < letters.length && isAlphabet(letters[at] as string)) at--
      } else if (next !== undefined && isAlphabet(next)) go((letter) => isAlphabet(letter) && !isUpper(letter))
    } else go((letter) => !(isConnector(letter) || isAlphabet(letter) || isNumber(letter) || isPunctuation(letter)))
    yield { kind, letters: letters.slice(start, at) }
  }
  for (;;) yield { kind: 'none', letters: [] }
}

function kindOf(letter: string): Kind {
  if (isConnector(letter)) return 'connector'
  if (isPunctuation(letter)) return 'punctuation'
  if (isUpper(letter)) return 'capitals'
  if (isAlphabet(letter)) return 'letters'
  return isNumber(letter) ? 'number' : 'other'
}

/** The words in small letters, with a connector between them (`snakecase`, `kebabcase`). */
export function connected(text: string, connector: string): string {
  if (text === '') return ''
  return new Connecting(text, connector).run()
}

class Connecting {
  readonly #words: Generator<Word>
  readonly #connector: string
  #word: Word
  #next: Word
  #result = ''

  constructor(text: string, connector: string) {
    this.#words = words(text)
    this.#connector = connector
    this.#word = this.#words.next().value as Word
    this.#next = this.#words.next().value as Word
  }

  run(): string {
    while (this.#next.kind !== 'none') {
      if (this.#word.kind !== 'connector') this.#write(this.#word)
      const before = this.#word
      this.#step()
      this.#between(before)
    }
    this.#write(this.#word)
    return this.#result
  }

  /** Goes to the next word, and returns its kind. */
  #step(): Kind {
    this.#word = this.#next
    this.#next = this.#words.next().value as Word
    return this.#word.kind
  }

  /** Writes what stands between the word before and the present one, with what belongs to a number. */
  #between(before: Word): void {
    if (before.kind === 'punctuation') return
    if (before.kind === 'connector') return this.#write(before)
    if (before.kind === 'number') {
      this.#writeWhileJoined()
      if (!['none', 'punctuation', 'connector'].includes(this.#word.kind)) this.#result += this.#connector
      return
    }
    if (this.#word.kind !== 'number') {
      if (this.#word.kind !== 'connector' && this.#word.kind !== 'punctuation') this.#result += this.#connector
      return
    }
    if (this.#next.kind === 'none') return
    const number = this.#word
    // Digits belong to the word before, unless small letters follow.
    const kind = this.#step()
    if (kind !== 'letters') {
      this.#write(number)
      if (kind !== 'connector' && kind !== 'punctuation') this.#result += this.#connector
      return
    }
    this.#result += this.#connector
    this.#write(number)
    this.#writeWhileJoined()
    if (!['none', 'punctuation', 'connector'].includes(this.#word.kind)) this.#result += this.#connector
  }

  #writeWhileJoined(): void {
    while (this.#word.kind === 'letters' || this.#word.kind === 'number') {
      this.#write(this.#word)
      this.#step()
    }
  }

  #write({ kind, letters }: Word): void {
    for (const letter of letters)
      if (kind !== 'capitals' && kind !== 'connector') this.#result += letter
      else this.#result += isConnector(letter) ? this.#connector : isUpper(letter) ? lower(letter) : letter
  }
}
