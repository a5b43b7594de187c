/**
 * The task of the thread that fetches (`fetch-thread.ts`): fetches one document and returns it checked, as plain data. While a handshake
 * or a check blocks the thread, shared memory says for which fetch, so that others can be told apart from it when the thread is ended.
 */
import { usableKeySet } from '../../src/config/shapes/key-set.ts'
import { readSpiffeBundle, type SpiffeBundle } from '../../src/identity/spiffe-bundle.ts'
import { parseBounded } from '../../src/model/bounded-json.ts'
import { sortedKeySet } from '../../src/policy/key-set.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { FairWork } from '../runtime/fair-work.ts'
import { boundedFetch, type FetchBounds } from './bounded-fetch.ts'
import { LookupTurns } from './lookup-turns.ts'

/** The contents of an issuer's OpenID configuration (OpenID Connect Discovery 1.0, section 3) that are used. */
export interface OpenIdConfiguration {
  /** `http:` or `https:` URL of the key set. */
  readonly uri: string
  /** Undefined if the configuration does not name it. */
  readonly issuer: string | undefined
}

/** The result for each kind of document. That of a key set is a text with only the usable keys, in canonical order. */
export interface Documents {
  readonly 'key-set': string
  readonly 'openid-configuration': OpenIdConfiguration
  readonly 'spiffe-bundle': SpiffeBundle
}

/** A document to fetch, and who asks for it. `id` is positive and identifies the fetch in `shared`, the memory of {@link marks}. */
export interface FetchTask {
  readonly id: number
  readonly asker: string
  readonly kind: keyof Documents
  readonly url: string
  readonly bounds: FetchBounds
  readonly shared: SharedArrayBuffer
}

/** The document, or the reason why there is none; and for how many milliseconds the fetch blocked the thread. */
export type FetchAnswer = ({ readonly document: Documents[keyof Documents] } | { readonly fault: string }) & { readonly blockedMs: number }

/** Indexes in the shared 32-bit words: the fetch that blocks the thread, 0 for none; and the number of times that one began to. */
export const marks = { fetch: 0, times: 1, count: 2 } as const

/** The maximum length of the URL of a key set in an OpenID configuration. */
const longestUrl = 8192

const readers: { readonly [Kind in keyof Documents]: (content: string) => Documents[Kind] } = {
  'key-set': (content) => sortedKeySet(usableKeySet(content).content),
  'openid-configuration': openIdConfiguration,
  'spiffe-bundle': readSpiffeBundle,
}

const lookups = new LookupTurns()
/** Long bodies: how many are read at a time, of all askers and of one. */
const longBodies = new FairWork({ atOnce: 4, ofClient: 2, waiting: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY })

/** Fetches a document. Never rejects. */
export default async function fetchDocument({ id, asker, kind, url, bounds, shared }: FetchTask): Promise<FetchAnswer> {
  const words = new Int32Array(shared)
  let blockedMs = 0
  const blocking = <Result>(work: () => Result): Result => {
    Atomics.add(words, marks.times, 1)
    Atomics.store(words, marks.fetch, id)
    const since = monotonicMs()
    try {
      return work()
    } finally {
      blockedMs += monotonicMs() - since
      Atomics.store(words, marks.fetch, 0)
    }
  }
  try {
    const content = await boundedFetch(url, bounds, {
      blocking,
      lookup: (signal) => lookups.of(asker, signal),
      readLong: ({ read, isGone }) => void longBodies.run({ client: asker, bytes: 0, run: read, isGone }),
    })
    const document = blocking(() => readers[kind](content))
    return { document, blockedMs }
  } catch (error) {
    return { fault: (error as Error).message, blockedMs }
  }
}

function openIdConfiguration(content: string): OpenIdConfiguration {
  const of = 'the OpenID configuration of the issuer'
  let read: { readonly jwks_uri?: unknown; readonly issuer?: unknown } | null
  try {
    read = parseBounded(content) as typeof read
  } catch (error) {
    throw new Error(`${of} cannot be read: ${(error as Error).message}`)
  }
  const { jwks_uri: uri, issuer } = read ?? {}
  if (typeof uri !== 'string' || !/^https?:\/\//.test(uri)) throw new Error(`${of} has no http or https jwks_uri`)
  if (uri.length > longestUrl) throw new Error(`jwks_uri in ${of} is longer than ${longestUrl} characters`)
  return { uri, issuer: typeof issuer === 'string' ? issuer : undefined }
}
