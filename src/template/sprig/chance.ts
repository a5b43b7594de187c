/** Functions of chance. */
import type { Budget } from '../budget.ts'
import { type Functions, templateFunction } from '../function.ts'
import { fail } from '../values.ts'
import type { Random } from './encodings.ts'

const small = 'abcdefghijklmnopqrstuvwxyz'
const digits = '0123456789'
const printable = String.fromCharCode(...Array.from({ length: 95 }, (_, at) => 32 + at))

/** Returns a number below `below`, each with the same chance. */
function below(random: Random, most: number): number {
  if (most <= 1) return 0
  const size = Math.ceil(Math.log2(most) / 8)
  const range = 256 ** size
  const fair = range - (range % most)
  for (;;) {
    const number = random(size).readUIntBE(0, size)
    if (number < fair) return number % most
  }
}

function text(random: Random, budget: Budget, count: number, letters: string): string {
  if (count < 0) return ''
  budget.text(count)
  budget.make(count)
  return Array.from({ length: count }, () => letters[below(random, letters.length)]).join('')
}

function shuffled(random: Random, budget: Budget, given: string): string {
  const letters = [...given]
  budget.make(letters.length)
  for (let at = letters.length - 1; at > 0; at--) {
    const other = below(random, at + 1)
    ;[letters[at], letters[other]] = [letters[other] as string, letters[at] as string]
  }
  return letters.join('')
}

function uuid(random: Random): string {
  const bytes = random(16)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** The functions by name. */
export function chanceFunctions(random: Random): Functions {
  const letters = (set: string) => templateFunction(['int'], (budget, count) => text(random, budget, count, set))
  return new Map(
    Object.entries({
      randAlphaNum: letters(small + small.toUpperCase() + digits),
      randAlpha: letters(small + small.toUpperCase()),
      randAscii: letters(printable),
      randNumeric: letters(digits),
      randBytes: templateFunction(['int'], (budget, count) => {
        if (count < 0) return fail('randBytes: the count is negative')
        budget.text(count * 2)
        return random(count).toString('base64')
      }),
      randInt: templateFunction(['int', 'int'], (_, least, most) =>
        most > least && most - least < 2 ** 40 ? least + below(random, most - least) : fail('invalid argument to Intn'),
      ),
      shuffle: templateFunction(['string'], (budget, given) => shuffled(random, budget, given)),
      uuidv4: templateFunction([], () => uuid(random)),
    }),
  )
}
