/** Fetches small documents from URLs in user configuration: limited in time and size, and protected against server-side request forgery. */
import type { IncomingMessage } from 'node:http'
// biome-ignore lint/style/noRestrictedImports: given to the one client
import { request as httpsRequest } from 'node:https'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import { getCACertificates } from 'node:tls'
import { type AllowedRanges, readRanges, refusal } from '../../src/policy/key-addresses.ts'
import type { LookupParts } from './lookup-turns.ts'
import { send } from './single-request.ts'
import { type Blocking, connectBounded, publicHandshakeBytes } from './tls-client.ts'

/** Limits of one fetch, as plain data. */
export interface FetchBounds {
  readonly timeoutMs: number
  readonly bytes: number
  readonly redirects: number
  /** Special addresses and ranges that are allowed, separated by commas (`readRanges`). */
  readonly allowed: string
  /** CA certificates for https, in addition to the default ones. */
  readonly authorities: readonly string[]
}

/** How a fetch does what concerns others in its thread and process. */
export interface FetchMeans {
  /** The handshake of TLS runs in it. */
  readonly blocking: Blocking
  /** Returns a lookup of names for a fetch that ends with the signal. */
  readonly lookup: (signal: AbortSignal) => (...lookup: LookupParts) => void
  /** Reads a long body when it is its turn, so that few of them are in memory at a time. */
  readonly readLong: (body: LongBody) => void
}

/** The rest of a body of which more than {@link shortBytes} were received. */
export interface LongBody {
  /** Reads it to its end. */
  read(): Promise<void>
  /** Whether the fetch has ended: the body must not be read any more. */
  isGone(): boolean
}

/** Size up to which a body is read at once, in bytes: a usual key set has less than ten thousand. */
const shortBytes = 65_536

/** Fetches a document. Rejects with the reason: forbidden address, HTTP status, maximum size, timeout. */
export async function boundedFetch(url: string, bounds: FetchBounds, means: FetchMeans): Promise<string> {
  const deadline = AbortSignal.timeout(bounds.timeoutMs)
  let target = new URL(url)
  for (let hop = 0; ; hop++) {
    const answer = await get(target, bounds, deadline, means)
    if (answer.location === undefined) return answer.body
    if (hop >= bounds.redirects) throw new Error(`more than ${bounds.redirects} redirects`)
    const next = URL.parse(answer.location, target.href)
    if (!next || `${next.username}${next.password}` !== '' || (next.protocol !== 'https:' && next.protocol !== target.protocol))
      throw new Error(`redirected to ${JSON.stringify(answer.location.slice(0, 200))}`)
    target = next
  }
}

/** A lookup that refuses forbidden addresses. The name is resolved once, so that the checked addresses are those connected to. */
const checkedLookup =
  (allowed: AllowedRanges, find: (...lookup: LookupParts) => void): LookupFunction =>
  (name, options, done) => {
    find(name, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, '')
      const reason = addresses.map(({ address }) => refusal(address, allowed)).find((found) => found !== undefined)
      if (reason) return done(new Error(`${name}: ${reason}`), '')
      const [first] = addresses
      if (options.all) return done(null, addresses)
      return first ? done(null, first.address, first.family) : done(new Error(`${name} has no address`), '')
    })
  }

async function get(url: URL, bounds: FetchBounds, signal: AbortSignal, means: FetchMeans): Promise<{ body: string; location: string | undefined }> {
  const literal = url.hostname.replace(/^\[|\]$/g, '')
  const allowed = readRanges(bounds.allowed)
  const reason = isIP(literal) ? refusal(literal, allowed) : undefined
  if (reason) throw new Error(reason)
  const isTls = url.protocol === 'https:'
  const authorities = bounds.authorities.length > 0 ? { ca: [...getCACertificates('default'), ...bounds.authorities] } : {}
  const createConnection = (): Socket => {
    const to = { host: literal, port: Number(url.port || (isTls ? 443 : 80)), lookup: checkedLookup(allowed, means.lookup(signal)) }
    return isTls
      ? connectBounded(to, { ...authorities, ALPNProtocols: ['http/1.1'] }, { bytes: publicHandshakeBytes, blocking: means.blocking })
      : connect(to)
  }
  const headers = { accept: 'application/json', 'accept-encoding': 'identity' }
  const secure = isTls ? { request: httpsRequest } : {}
  try {
    const response = await send({ url, headers, createConnection, maxHeaderSize: 16_384, ...secure }, signal)
    const status = response.statusCode ?? 0
    const location = [301, 302, 303, 307, 308].includes(status) ? response.headers.location : undefined
    if (status === 200) return { body: await bodyOf(response, bounds, signal, means), location: undefined }
    response.destroy()
    if (location === undefined) throw new Error(`answered ${status}`)
    return { body: '', location }
  } catch (error) {
    throw signal.aborted ? new Error(`no answer within ${bounds.timeoutMs} ms`) : error
  }
}

/** Reads a body; what is beyond {@link shortBytes} when it is its turn. */
function bodyOf(response: IncomingMessage, bounds: FetchBounds, signal: AbortSignal, means: FetchMeans): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  // A body that waits for its turn gives no other sign of the end of its fetch.
  const late = () => {
    response.destroy()
    reject(signal.reason)
  }
  signal.addEventListener('abort', late, { once: true })
  response.on('close', () => signal.removeEventListener('abort', late))
  // Pieces become text at once: buffers of a whole body would stay in the allocator's memory after they are freed.
  const decoder = new StringDecoder()
  let body = ''
  let length = 0
  let isLong = false
  response.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > bounds.bytes) {
      response.destroy()
      return reject(new Error(`larger than ${bounds.bytes} bytes`))
    }
    body += decoder.write(chunk)
    if (isLong || length <= shortBytes) return
    isLong = true
    response.pause()
    means.readLong({ read: () => restOf(response), isGone: () => response.destroyed })
  })
  response.on('error', reject)
  response.on('end', () => resolve(body + decoder.end()))
  return promise
}

function restOf(response: IncomingMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  response.on('close', resolve)
  response.resume()
  return promise
}
