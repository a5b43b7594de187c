/** Encodes and decodes DNS messages independently of the implementation under test. */

/** The fields of a query. */
export interface Asked {
  readonly name: string
  /** The number of the record type. The default is A. */
  readonly type?: number
  readonly id?: number
  readonly flags?: number
  readonly class?: number
  /** The UDP payload size in the EDNS record. Without it there is no such record. */
  readonly size?: number
  readonly version?: number
}

/** Encodes a query. */
export function dnsQuery({ name, type = 1, id = 0x1234, flags = 0x0100, class: of = 1, size, version = 0 }: Asked): Buffer {
  const words = (...values: number[]) => Buffer.from(values.flatMap((value) => [value >> 8, value & 255]))
  const labels = name.split('.').filter((label) => label !== '')
  const encoded = Buffer.concat([...labels.map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label, 'latin1')])), Buffer.of(0)])
  const options = size === undefined ? Buffer.alloc(0) : Buffer.concat([Buffer.of(0), words(41, size), Buffer.of(0, version), words(0, 0)])
  return Buffer.concat([words(id, flags, 1, 0, 0, size === undefined ? 0 : 1), encoded, words(type, of), options])
}

/** A record of a response. For addresses and aliases `data` is their text. */
export interface DnsRecord {
  readonly name: string
  readonly type: number
  readonly ttl: number
  readonly data: string
}

/** A decoded response. */
export interface DnsResponse {
  readonly id: number
  readonly flags: number
  readonly rcode: number
  readonly isAuthoritative: boolean
  readonly isTruncated: boolean
  readonly question: { readonly name: string; readonly type: number } | undefined
  readonly answers: readonly DnsRecord[]
  /** Authority and additional records. The class of an EDNS record is its payload size. */
  readonly additional: readonly (DnsRecord & { readonly class: number })[]
}

/** Decodes a response. Throws when a part of it is truncated or bytes follow it. */
export function readDnsResponse(message: Buffer): DnsResponse {
  let at = 12
  const nameAt = (from: number): [string, number] => {
    const labels: string[] = []
    let place = from
    let end = 0
    for (let length = message.readUInt8(place); length !== 0; length = message.readUInt8(place)) {
      if (length >= 192) {
        end ||= place + 2
        place = message.readUInt16BE(place) & 0x3fff
        continue
      }
      labels.push(message.toString('latin1', place + 1, place + 1 + length))
      place += 1 + length
    }
    return [labels.join('.'), end || place + 1]
  }
  const record = (): DnsRecord & { class: number } => {
    const [name, end] = nameAt(at)
    const [type, of, length] = [end, end + 2, end + 8].map((place) => message.readUInt16BE(place)) as [number, number, number]
    const ttl = message.readUInt32BE(end + 4)
    const data = message.subarray(end + 10, end + 10 + length)
    if (data.length !== length) throw new Error('a record is cut short')
    at = end + 10 + length
    const text = type === 1 ? [...data].join('.') : type === 5 ? nameAt(end + 10)[0] : data.toString('hex')
    return { name, type, ttl, class: of, data: text }
  }
  const [id, flags, questions, answers, authorities, additional] = [0, 2, 4, 6, 8, 10].map((place) => message.readUInt16BE(place)) as number[]
  let question: DnsResponse['question']
  for (let index = 0; index < Number(questions); index++) {
    const [name, end] = nameAt(at)
    question ??= { name, type: message.readUInt16BE(end) }
    at = end + 4
  }
  const list = (count: number | undefined) => Array.from({ length: count ?? 0 }, record)
  const read = {
    id: Number(id),
    flags: Number(flags),
    rcode: Number(flags) & 15,
    isAuthoritative: (Number(flags) & 0x0400) !== 0,
    isTruncated: (Number(flags) & 0x0200) !== 0,
    question,
    answers: list(answers),
    additional: [...list(authorities), ...list(additional)],
  }
  if (at !== message.length) throw new Error(`${message.length - at} bytes follow the message`)
  return read
}
