/**
 * Notes of the certificate authority in Secrets, compressed (docs/certificates.md, K12). A long one is divided over a bounded number of
 * Secrets; the first one of the note says which of them belong together.
 */
import { createHash, randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { createGzip, gunzip } from 'node:zlib'
import type { KeptSecret } from '../../../protocols/messages/secret-calls.ts'
import { list, number, object, text } from '../../../src/ca/fields.ts'
import { noteSecret, secretTypes } from '../../../src/names/secret-names.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { newSecret, type SecretAccess } from './secret-access.ts'
import { damagedNote, StorageAwayError } from './storage.ts'

const decompress = promisify(gunzip)

/** Bounds of a note: the bytes of a Secret (the API server takes 1 MiB), the number of Secrets, and the size of the text. */
const largest = { part: 700_000, parts: 12, text: 67_108_864 }
/** Size of the chunks in which a note is compressed, in characters. */
const pieceBytes = 65_536
/** How often a note is written or read anew because others wrote it meanwhile. */
const mostTurns = 5
/**
 * A replica that divides a note over Secrets writes that into the first one before. Others wait until it has ended, or until they have
 * seen nothing of it for this long; it gives up well before that. In milliseconds.
 */
const claims = { heldMs: 30_000, takenMs: 60_000 }

/** The Secrets of a long note: those with these numbers of one of two sets, which alternate. */
interface Division {
  readonly set: number
  /** SHA-256 of each, hexadecimal. */
  readonly sums: readonly string[]
}

export class SecretNotes {
  readonly #access: SecretAccess
  /** The versions of the notes as this process last wrote them. */
  readonly #known = new Map<string, string>()
  readonly #id = randomUUID()
  readonly #claims = new Map<string, { readonly version: string; readonly since: number }>()

  constructor(access: SecretAccess) {
    this.#access = access
  }

  /** Reads a note; undefined when there is none. Rejects when it cannot be read, or is damaged. */
  async read(name: string): Promise<string | undefined> {
    for (let turn = 1; ; turn++) {
      const head = await this.#access.get(noteSecret(name))
      if (!head) return undefined
      try {
        return await this.#text(name, head)
      } catch (error) {
        // Another replica may have written the other Secrets of a long note meanwhile.
        const now = await this.#access.get(noteSecret(name))
        if (turn === mostTurns || now?.resourceVersion === head.resourceVersion) throw error
      }
    }
  }

  /** Writes a note. `others` is called with the text of another replica before, which the pieces have to contain then. */
  async write(name: string, pieces: Iterable<string>, others?: (text: string) => void): Promise<void> {
    for (let turn = 0; turn < mostTurns; turn++) {
      const head = (await this.#access.get(noteSecret(name))) ?? newSecret(noteSecret(name), secretTypes.state)
      if (others && head.resourceVersion !== '' && head.resourceVersion !== this.#known.get(name)) {
        const found = await this.#text(name, head).catch((error: Error) => {
          if (error instanceof StorageAwayError) throw error
          return error
        })
        if (found instanceof Error) {
          const now = await this.#access.get(noteSecret(name))
          if (now?.resourceVersion !== head.resourceVersion) continue
          throw damagedNote(found.message)
        }
        others(found)
      }
      const bytes = await compressed(pieces)
      const written = bytes.length <= largest.part ? await this.#whole(name, head, bytes) : await this.#divided(name, head, bytes)
      if (!written) continue
      this.#known.set(name, written.resourceVersion)
      return
    }
    throw new Error(`${this.#access.described(noteSecret(name))}: is written by other replicas all the time`)
  }

  #whole(name: string, head: KeptSecret, bytes: Buffer): Promise<KeptSecret | undefined> {
    return this.#access.write({ ...head, data: { [`${name}.json.gz`]: bytes.toString('base64') } })
  }

  async #divided(name: string, head: KeptSecret, bytes: Buffer): Promise<KeptSecret | undefined> {
    const described = this.#access.described(noteSecret(name))
    const count = Math.ceil(bytes.length / largest.part)
    if (count > largest.parts) throw new Error(`${described}: the note has ${bytes.length} bytes, more than ${largest.parts} Secrets hold`)
    this.#checkClaim(described, head)
    const until = monotonicMs() + claims.heldMs
    const claimed = await this.#access.write({ ...head, data: { ...head.data, claim: base64(this.#id) } })
    if (!claimed) return undefined
    const set = 1 - (divisionIn(head)?.set ?? 1)
    const parts = Array.from({ length: count }, (_, index) => bytes.subarray(index * largest.part, (index + 1) * largest.part))
    for (const [index, part] of parts.entries()) {
      if (monotonicMs() > until) throw new Error(`${described}: the note was not written within ${claims.heldMs / 1000} s`)
      const secret = partSecret(name, set, index)
      const before = (await this.#access.get(secret)) ?? newSecret(secret, secretTypes.state)
      if (!(await this.#access.write({ ...before, data: { part: part.toString('base64') } })))
        throw new Error(`${this.#access.described(secret)}: another replica writes it`)
    }
    const division: Division = { set, sums: parts.map(sumOf) }
    return this.#access.write({ ...claimed, data: { parts: base64(JSON.stringify(division)) } })
  }

  /** Throws an Error while another replica divides the note. */
  #checkClaim(described: string, { data, resourceVersion }: KeptSecret): void {
    if (data.claim === undefined || Buffer.from(data.claim, 'base64').toString() === this.#id) return
    const known = this.#claims.get(described)
    const seen = known?.version === resourceVersion ? known : { version: resourceVersion, since: monotonicMs() }
    this.#claims.set(described, seen)
    if (monotonicMs() - seen.since < claims.takenMs) throw new Error(`${described}: another replica writes it`)
  }

  async #text(name: string, head: KeptSecret): Promise<string> {
    const described = this.#access.described(head.name)
    const plain = head.data[`${name}.json`]
    if (plain !== undefined) return Buffer.from(plain, 'base64').toString('utf8')
    try {
      const whole = head.data[`${name}.json.gz`]
      const division = divisionIn(head)
      if (whole === undefined && !division) throw new Error(`${name}.json.gz: is missing`)
      const bytes = whole === undefined ? await this.#joined(name, division as Division) : Buffer.from(whole, 'base64')
      return (await decompress(bytes, { maxOutputLength: largest.text })).toString('utf8')
    } catch (error) {
      // What is said of a Secret that cannot be read stays what it is.
      if (error instanceof StorageAwayError) throw error
      throw new Error(`${described}: ${(error as Error).message}`)
    }
  }

  async #joined(name: string, { set, sums }: Division): Promise<Buffer> {
    const parts: Buffer[] = []
    for (const [index, sum] of sums.entries()) {
      const secret = await this.#access.get(partSecret(name, set, index))
      const part = Buffer.from(secret?.data.part ?? '', 'base64')
      if (sumOf(part) !== sum) throw new Error(`${partSecret(name, set, index)}: does not belong to it`)
      parts.push(part)
    }
    return Buffer.concat(parts)
  }
}

/** The name of a further Secret of a note. */
const partSecret = (name: string, set: number, index: number): string => `${noteSecret(name)}-${set === 0 ? 'a' : 'b'}${index}`

const base64 = (value: string): string => Buffer.from(value, 'utf8').toString('base64')

const sumOf = (part: Buffer): string => createHash('sha256').update(part).digest('hex')

function divisionIn({ data }: KeptSecret): Division | undefined {
  if (data.parts === undefined) return undefined
  const { set, sums } = object(JSON.parse(Buffer.from(data.parts, 'base64').toString('utf8')), 'parts')
  return { set: number(set, 'parts.set') === 0 ? 0 : 1, sums: list(sums, 'parts.sums', largest.parts).map((sum) => text(sum, 'parts.sums')) }
}

/** Compresses a text without holding up the thread: other work has its turn between the chunks. */
async function compressed(pieces: Iterable<string>): Promise<Buffer> {
  const stream = createGzip()
  const bytes: Buffer[] = []
  const ended = new Promise<void>((resolve, reject) => {
    stream.on('data', (chunk: Buffer) => bytes.push(chunk))
    stream.on('end', resolve)
    stream.on('error', reject)
  })
  const write = (chunk: string) => new Promise<void>((resolve) => stream.write(chunk, () => resolve()))
  let waiting = ''
  for (const piece of pieces) {
    waiting += piece
    if (waiting.length < pieceBytes) continue
    await write(waiting)
    waiting = ''
  }
  stream.end(waiting)
  await ended
  return Buffer.concat(bytes)
}
