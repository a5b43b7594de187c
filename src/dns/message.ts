/**
 * Parses and encodes DNS messages (RFC 1035, RFC 6891) as far as the agent needs: the header, the first question and the EDNS record of a
 * query, and answers with addresses. Everything else is passed on as bytes, unknown record types and the case of names included.
 */

/** Types of resource records. */
export const recordType = { A: 1, CNAME: 5, OPT: 41, AAAA: 28 } as const

/** Response codes (RFC 1035, 4.1.1; RFC 6891, 9). */
export const rcode = { noError: 0, formatError: 1, serverFailure: 2, nameError: 3, badVersion: 16 } as const

/** The length of a header, in bytes. */
const headerLength = 12
/** The maximum length of an encoded name, in bytes. */
const longestName = 255
/** The class IN. */
const internet = 1
/** The UDP message size that every client accepts, in bytes. */
const minSize = 512
/** The UDP payload size in our EDNS records, in bytes. Messages of this size fit into one packet on most networks. */
const ownSize = 1232

/** Flags in the second 16-bit word of the header. */
const flag = {
  response: 0x8000,
  authoritative: 0x0400,
  truncated: 0x0200,
  recursionDesired: 0x0100,
  recursionAvailable: 0x0080,
  checkingDisabled: 0x0010,
}
const opcodeMask = 0x7800

/** The first question of a message. */
export interface Question {
  /** The name in lower case without a trailing dot. Undefined when a label contains bytes that names of services cannot contain. */
  readonly name: string | undefined
  readonly type: number
  /** Whether the class is IN. */
  readonly isInternet: boolean
  /** The encoded question as received, with its case. */
  readonly bytes: Buffer
}

/** A query. */
export interface Query {
  readonly id: number
  /** The second 16-bit word of the header. */
  readonly flags: number
  /** Whether the opcode is 0 (QUERY). */
  readonly isStandard: boolean
  readonly question: Question | undefined
  /** The version and UDP payload size of the EDNS record. Undefined without one. */
  readonly edns: { readonly version: number; readonly size: number } | undefined
}

/**
 * Thrown for a message that cannot be parsed. `query` contains the header when that could be parsed, so that a format error can be
 * answered.
 */
export class BadMessage extends Error {
  readonly query: Query | undefined
  constructor(reason: string, query?: Query) {
    super(reason)
    this.query = query
  }
}

/** Parses a query. Throws {@link BadMessage}. Runs in linear time. */
export function readQuery(message: Buffer): Query {
  if (message.length < headerLength) throw new BadMessage('shorter than a header')
  const [id, flags, questions, answers, authorities, additional] = [0, 2, 4, 6, 8, 10].map((at) => message.readUInt16BE(at)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  if ((flags & flag.response) !== 0) throw new BadMessage('a response')
  const plain: Query = { id, flags, isStandard: (flags & opcodeMask) === 0, question: undefined, edns: undefined }
  try {
    let at = headerLength
    let question: Question | undefined
    for (let index = 0; index < questions; index++) {
      const read = readQuestion(message, at)
      question ??= read.question
      at = read.end
    }
    for (let index = 0; index < answers + authorities; index++) at = recordAt(message, at).end
    let edns: Query['edns']
    for (let index = 0; index < additional; index++) {
      const record = recordAt(message, at)
      if (record.type === recordType.OPT) edns = { version: (record.ttl >>> 16) & 0xff, size: record.class }
      at = record.end
    }
    return { ...plain, question, edns }
  } catch (error) {
    throw new BadMessage((error as Error).message, plain)
  }
}

/**
 * Parses id, opcode and first question of a response, for the comparison with the query. Undefined when the message is not a response or
 * cannot be parsed.
 */
export function readResponse(message: Buffer): { readonly id: number; readonly opcode: number; readonly question: Question | undefined } | undefined {
  if (message.length < headerLength) return undefined
  const flags = message.readUInt16BE(2)
  if ((flags & flag.response) === 0) return undefined
  const head = { id: message.readUInt16BE(0), opcode: flags & opcodeMask }
  if (message.readUInt16BE(4) === 0) return { ...head, question: undefined }
  try {
    return { ...head, question: readQuestion(message, headerLength).question }
  } catch {
    return undefined
  }
}

/** Whether a response answers a query that was forwarded under `id`. A response without a question is accepted only as an error. */
export function isAnswerTo(query: Query, id: number, response: Buffer): boolean {
  const read = readResponse(response)
  if (!read || read.id !== id || read.opcode !== (query.flags & opcodeMask)) return false
  if (!read.question) return !query.question || (response.readUInt16BE(2) & 0xf) !== rcode.noError
  const { question } = query
  return question !== undefined && sameQuestion(question.bytes, read.question.bytes)
}

/** Compares questions case-insensitively, because servers may change the case of the name. */
function sameQuestion(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && one.every((byte, index) => lower(byte) === lower(other[index] as number))
}

const lower = (byte: number): number => (byte >= 65 && byte <= 90 ? byte + 32 : byte)

/** Parses a question. Compression pointers are rejected: no earlier name exists that they could point to. */
function readQuestion(message: Buffer, from: number): { question: Question; end: number } {
  const labels: string[] = []
  let isPlain = true
  let at = from
  for (let length = byteAt(message, at); length > 0; length = byteAt(message, at)) {
    if (length > 63) throw new Error('a label of a question is longer than 63 bytes, or a pointer')
    const end = at + 1 + length
    if (end > message.length || end - from >= longestName) throw new Error('a name is cut short, or longer than 255 bytes')
    for (let index = at + 1; index < end; index++) isPlain &&= isNameByte(message[index] as number)
    labels.push(message.toString('latin1', at + 1, end))
    at = end
  }
  const end = at + 5
  if (end > message.length) throw new Error('a question is cut short')
  const name = isPlain ? labels.join('.').toLowerCase() : undefined
  const question = {
    name,
    type: message.readUInt16BE(at + 1),
    isInternet: message.readUInt16BE(at + 3) === internet,
    bytes: message.subarray(from, end),
  }
  return { question, end }
}

/** Printable ASCII except the dot, which inside a label would be mistaken for a separator. */
const isNameByte = (byte: number): boolean => byte > 32 && byte < 127 && byte !== 46

function byteAt(message: Buffer, at: number): number {
  const byte = message[at]
  if (byte === undefined) throw new Error('a name is cut short')
  return byte
}

/** Parses the type, class and TTL of the record at an offset. */
function recordAt(message: Buffer, from: number): { type: number; class: number; ttl: number; end: number } {
  let at = from
  for (;;) {
    const length = byteAt(message, at)
    // A compression pointer ends a name.
    if (length >= 192) {
      at += 2
      break
    }
    at += 1 + length
    if (length === 0) break
  }
  if (at + 10 > message.length) throw new Error('a record is cut short')
  const end = at + 10 + message.readUInt16BE(at + 8)
  if (end > message.length) throw new Error('a record is cut short')
  return { type: message.readUInt16BE(at), class: message.readUInt16BE(at + 2), ttl: message.readUInt32BE(at + 4), end }
}

/** Returns a copy of a message with another id. */
export function withId(message: Buffer, id: number): Buffer {
  const copy = Buffer.from(message)
  copy.writeUInt16BE(id, 0)
  return copy
}

/** The maximum size of a UDP message, in bytes. */
const longestPacket = 65_487

/** Returns the maximum size of a response that the client accepts, in bytes. */
export function sizeFor({ edns }: Query, isStream: boolean): number {
  return isStream ? 65_535 : Math.min(longestPacket, Math.max(minSize, edns?.size ?? 0))
}

/** The addresses of an answer. */
export interface Addresses {
  /** The target of the CNAME record when the queried name is an alias. */
  readonly alias?: string | undefined
  /** 4 or 16 bytes each. */
  readonly addresses: readonly Uint8Array[]
  /** The TTL in seconds. */
  readonly ttl: number
}

/** The length of a record before its data, in bytes. The owner name is a compression pointer. */
const recordHead = 12

/** Returns the maximum number of addresses that fit into an answer of `size` bytes. */
export const roomFor = (size: number, addressBytes: number): number => Math.floor(size / (recordHead + addressBytes))

/**
 * Encodes an authoritative answer (AA) with addresses of one family. When not all fit into `size` bytes, the rest is omitted and the answer
 * marked as truncated (TC).
 */
export function answer(query: Query, { alias, addresses, ttl }: Addresses, size: number): Buffer {
  const { question } = query
  if (!question) return failure(query, rcode.serverFailure)
  const name = alias !== undefined && addresses.length > 0 ? encodeName(alias) : undefined
  const options = query.edns ? optRecord(rcode.noError) : Buffer.alloc(0)
  // The queried name directly follows the header.
  const answers = headerLength + question.bytes.length
  const first = answers + (name ? recordHead + name.length : 0)
  const bytes = recordHead + (addresses[0]?.length ?? 0)
  const count = Math.max(0, Math.min(addresses.length, Math.floor((size - first - options.length) / bytes)))
  const message = Buffer.alloc(first + count * bytes + options.length)
  const bits = flag.authoritative | (count < addresses.length ? flag.truncated : 0)
  message.set(header(query, bits, 1, count + (name ? 1 : 0), options.length > 0 ? 1 : 0))
  message.set(question.bytes, headerLength)
  if (name) writeRecord(message, answers, headerLength, recordType.CNAME, ttl, name)
  const owner = name ? answers + recordHead : headerLength
  for (let index = 0; index < count; index++) {
    const address = addresses[index] as Uint8Array
    writeRecord(message, first + index * bytes, owner, address.length === 4 ? recordType.A : recordType.AAAA, ttl, address)
  }
  message.set(options, message.length - options.length)
  return message
}

/** Whether the response code is NXDOMAIN. */
export const isNameError = (response: Buffer): boolean => (response.readUInt16BE(2) & 0xf) === rcode.nameError

/** Encodes an answer that contains only a response code. */
export function failure(query: Query, code: number): Buffer {
  const { question, edns } = query
  const options = edns || code > 15 ? optRecord(code) : Buffer.alloc(0)
  return Buffer.concat([header(query, code & 0xf, question ? 1 : 0, 0, options.length > 0 ? 1 : 0), question?.bytes ?? Buffer.alloc(0), options])
}

/** Returns an upstream response unchanged, or truncated to its header and question (TC) when it is larger than the client accepts. */
export function fitting(query: Query, response: Buffer, size: number): Buffer {
  if (response.length <= size) return response
  const options = query.edns ? optRecord(rcode.noError) : Buffer.alloc(0)
  const question = query.question?.bytes ?? Buffer.alloc(0)
  const cut = Buffer.concat([response.subarray(0, headerLength), question, options])
  cut.writeUInt16BE(cut.readUInt16BE(2) | flag.truncated, 2)
  for (const [at, count] of [
    [4, question.length > 0 ? 1 : 0],
    [6, 0],
    [8, 0],
    [10, options.length > 0 ? 1 : 0],
  ] as const)
    cut.writeUInt16BE(count, at)
  return cut
}

function header({ id, flags }: Query, bits: number, questions: number, answers: number, additional: number): Buffer {
  const kept = flags & (opcodeMask | flag.recursionDesired | flag.checkingDisabled)
  const head = Buffer.alloc(headerLength)
  for (const [index, word] of [id, flag.response | flag.recursionAvailable | kept | bits, questions, answers, 0, additional].entries())
    head.writeUInt16BE(word, index * 2)
  return head
}

/** Writes a record. Its owner is a compression pointer to the name at the offset `owner`. */
function writeRecord(message: Buffer, at: number, owner: number, type: number, ttl: number, data: Uint8Array): void {
  message.writeUInt16BE(0xc000 | owner, at)
  message.writeUInt16BE(type, at + 2)
  message.writeUInt16BE(internet, at + 4)
  message.writeUInt32BE(ttl, at + 6)
  message.writeUInt16BE(data.length, at + 10)
  message.set(data, at + recordHead)
}

/** Encodes the EDNS record of an answer: the upper bits of the response code, version 0. */
function optRecord(code: number): Buffer {
  const record = Buffer.alloc(11)
  record.writeUInt16BE(recordType.OPT, 1)
  record.writeUInt16BE(ownSize, 3)
  record.writeUInt8(code >>> 4, 5)
  return record
}

/** Encodes a name as labels. A name that is not valid (labels of 1 to 63 bytes, 255 bytes in total) is encoded as the root. */
export function encodeName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from(label, 'latin1'))
  const length = labels.reduce((sum, label) => sum + 1 + label.length, 1)
  if (length > longestName || labels.some((label) => label.length === 0 || label.length > 63)) return Buffer.alloc(1)
  return Buffer.concat([...labels.flatMap((label) => [Buffer.of(label.length), label]), Buffer.alloc(1)])
}
