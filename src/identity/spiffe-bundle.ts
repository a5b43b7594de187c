/**
 * Roots of other trust domains: parses `SPIFFE_BUNDLE_ENDPOINTS` and the bundles of the endpoints (docs/identity.md, B1 to B4; SPIFFE Trust
 * Domain and Bundle, section 4).
 */
import { X509Certificate } from 'node:crypto'
import { isMapping } from '../config/shape.ts'
import { canonicalTrustDomain } from '../config/trust-domain.ts'
import { parseBounded } from '../model/bounded-json.ts'

/** The endpoint of a trust domain's bundle. */
export interface BundleEndpoint {
  readonly trustDomain: string
  /** `https:` URL. */
  readonly url: string
}

/** A parsed bundle. */
export interface SpiffeBundle {
  /** Root certificates as concatenated PEM. */
  readonly roots: string
  /** The sequence number, which grows with every change. Undefined when the document has none. */
  readonly sequence: number | undefined
  /** The interval between fetches, in milliseconds. */
  readonly refreshMs: number
}

/** The maximum numbers of endpoints, and of keys in a bundle. */
const most = { endpoints: 256, keys: 256 }
/** The bounds of the refresh hint and its default, in milliseconds. */
const refresh = { least: 1000, most: 24 * 3_600_000, usual: 5 * 60_000 }

/** Parses `SPIFFE_BUNDLE_ENDPOINTS`: `<trust domain>|<url>`, joined by `||`. Throws an Error that names the invalid tuple. */
export function readBundleEndpoints(given: string): BundleEndpoint[] {
  if (given.trim() === '') return []
  const tuples = given.split('||')
  const fail = (tuple: string, reason: string): never => {
    throw new Error(`environment variable SPIFFE_BUNDLE_ENDPOINTS: ${JSON.stringify(tuple.slice(0, 200))}: ${reason}`)
  }
  if (tuples.length > most.endpoints) return fail('', `more than ${most.endpoints} tuples`)
  const endpoints = tuples.map((tuple): BundleEndpoint => {
    const [domain = '', address = '', more] = tuple.split('|').map((part) => part.trim())
    if (address === '' || more !== undefined) return fail(tuple, 'expected <trust domain>|<URL>')
    const trustDomain = canonicalTrustDomain(domain)
    if (trustDomain === undefined) return fail(tuple, `${JSON.stringify(domain.slice(0, 100))} is not a trust domain`)
    const url = URL.parse(address.includes('://') ? address : `https://${address}`)
    if (!url || `${url.username}${url.password}` !== '') return fail(tuple, 'not a URL without user and password')
    return url.protocol === 'https:' ? { trustDomain, url: url.href } : fail(tuple, 'not an https: URL')
  })
  const twice = endpoints.find(({ trustDomain }, index) => endpoints.findIndex((other) => other.trustDomain === trustDomain) !== index)
  return twice ? fail(`${twice.trustDomain}|${twice.url}`, 'this trust domain has an endpoint already') : endpoints
}

/** Parses the bundle of an endpoint. Throws an Error with the reason. One invalid root makes the whole bundle invalid. */
export function readSpiffeBundle(content: string): SpiffeBundle {
  const document = parseBounded(content)
  if (!isMapping(document) || !Array.isArray(document.keys)) throw new Error('not a SPIFFE bundle: it has no list of keys')
  const { keys, spiffe_sequence: sequence, spiffe_refresh_hint: hint } = document
  if (keys.length > most.keys) throw new Error(`more than ${most.keys} keys`)
  // Keys for other uses, such as those for tokens, are ignored (section 4.2.2).
  const roots = keys.flatMap((key: unknown, index) => (isMapping(key) && key.use === 'x509-svid' ? [rootOf(key.x5c, index)] : []))
  if (roots.length === 0) throw new Error('it has no key of use x509-svid')
  if (sequence !== undefined && !(Number.isInteger(sequence) && (sequence as number) >= 0)) throw new Error('spiffe_sequence is not a whole number')
  if (hint !== undefined && !(Number.isInteger(hint) && (hint as number) >= 0))
    throw new Error('spiffe_refresh_hint is not a whole number of seconds')
  const refreshMs = hint === undefined ? refresh.usual : Math.min(refresh.most, Math.max(refresh.least, (hint as number) * 1000))
  return { roots: [...new Set(roots)].join(''), sequence: sequence as number | undefined, refreshMs }
}

function rootOf(chain: unknown, index: number): string {
  if (!Array.isArray(chain) || chain.length !== 1 || typeof chain[0] !== 'string') throw new Error(`key ${index}: x5c is not exactly one certificate`)
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(Buffer.from(chain[0], 'base64'))
  } catch {
    throw new Error(`key ${index}: its certificate cannot be read`)
  }
  if (!certificate.ca) throw new Error(`key ${index}: its certificate is not that of an authority`)
  return certificate.toString()
}
