/** Parses Go string literals. */
import { textOf } from './values.ts'

const plainEscapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
}

/**
 * Resolves the escapes of the text between the quotes of a Go literal (Go specification, "String literals"). Undefined when an escape is
 * invalid. A byte that is not UTF-8 becomes a lone surrogate (`textOf`).
 */
export function unescapeGo(inner: string, quote: '"' | "'" = '"'): string | undefined {
  if (!inner.includes('\\')) return inner
  const parts: Buffer[] = []
  const pattern = /([^\\]+)|\\(?:([abfnrtv\\"'])|([0-7]{3})|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8}))/gy
  let end = 0
  for (const [whole, text, plain, octal, byte, short, long] of inner.matchAll(pattern)) {
    end += whole.length
    const code = Number.parseInt(short ?? long ?? '', 16)
    if (text !== undefined) parts.push(Buffer.from(text))
    else if (plain !== undefined && `"'`.includes(plain) && plain !== quote) return undefined
    else if (plain !== undefined) parts.push(Buffer.from(plainEscapes[plain] ?? plain))
    else if (octal !== undefined && Number.parseInt(octal, 8) > 255) return undefined
    else if (octal !== undefined || byte !== undefined) parts.push(Buffer.of(octal ? Number.parseInt(octal, 8) : Number.parseInt(byte as string, 16)))
    else if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return undefined
    else parts.push(Buffer.from(String.fromCodePoint(code)))
  }
  return end === inner.length ? textOf(Buffer.concat(parts)) : undefined
}
