/**
 * Whose client certificates are trusted: roots by trust domain, and what a certificate says of its holder (docs/identity.md, T1 to T5;
 * SPIFFE X.509-SVID, sections 2 to 5). TLS has verified a chain to any of the roots before; what is checked here is that a chain leads to a
 * root of the certificate's own trust domain.
 */
import { createHash, type X509Certificate } from 'node:crypto'
import type { Caller, MeshNamesEvent } from '../../protocols/messages/identity.ts'
import { isOwnTrustDomain } from './access.ts'
import { certificatesOf, fingerprintOf } from './pem.ts'
import { parseSpiffeId } from './spiffe-id.ts'

/** A client certificate that was verified, and what it was verified by. */
export interface VerifiedClient {
  readonly caller: Caller
  readonly trustDomain: string
  /** Names the root by its subject and key, so that a root that was renewed with the same key is the same. */
  readonly anchor: string
}

/** What a client presented, once TLS has verified that it leads to one of {@link ClientTrust.bundle}. */
export interface PresentedChain {
  readonly leaf: X509Certificate
  /** The other certificates that were presented, in any order; asked for only where the leaf is not signed by a root. */
  intermediates(): readonly X509Certificate[]
}

/** Most certificates between a leaf and its root. */
const longestChain = 4
/** Most presented certificates that are looked at. */
const mostPresented = 10

interface Root {
  readonly certificate: X509Certificate
  readonly fingerprint: string
  readonly anchor: string
}

type Names = Pick<MeshNamesEvent, 'trustDomain' | 'trustDomainAliases' | 'rootNamespace'>

/** The roots of all sources, joined. */
export class ClientTrust {
  readonly #sources = new Map<string, ReadonlyMap<string, readonly Root[]>>()
  #names: Names = { trustDomain: '', trustDomainAliases: [], rootNamespace: '' }
  #bundle = ''

  /** Says which roots a source has, by trust domain and as PEM; the empty name is the trust domain of the mesh. Throws an Error for what is no PEM. */
  set(source: string, roots: Readonly<Record<string, string>>): void {
    const read = Object.entries(roots).map(([domain, pem]) => [domain, pem === '' ? [] : certificatesOf(pem).map(rootOf)] as const)
    this.#sources.set(source, new Map(read))
    const all = [...this.#sources.values()].flatMap((domains) => [...domains.values()].flat())
    this.#bundle = [...new Map(all.map(({ fingerprint, certificate }) => [fingerprint, certificate.toString()])).values()].join('')
  }

  /** The names of the mesh are these now. */
  rename(names: Names): void {
    this.#names = names
  }

  /** All roots as PEM, each once: what TLS verifies chains by. Empty when there are none: then no certificate of a client is looked at. */
  get bundle(): string {
    return this.#bundle
  }

  /** Says whose certificate it is at the Unix time `now` in milliseconds, or why it is refused: for the log. */
  verify(presented: PresentedChain, now: number): VerifiedClient | { readonly refused: string } {
    const { leaf } = presented
    const read = identityOf(leaf, now)
    if ('refused' in read) return read
    const { identity, trustDomain } = read
    const roots = this.#rootsOf(trustDomain)
    if (roots.length === 0) return { refused: `there is no root for the trust domain ${trustDomain}` }
    const root = rootFor(leaf, roots, presented, now)
    if (!root) return { refused: `no root of the trust domain ${trustDomain} has signed the certificate of ${identity}` }
    const expiresAt = leaf.validToDate.getTime()
    const caller: Caller = { identities: [identity], via: 'certificate', method: 'client certificate', expiresAt, issuedRoot: root.fingerprint }
    return { caller, trustDomain, anchor: root.anchor }
  }

  /** Whether the root that a certificate was verified by still verifies those of its trust domain. */
  stillTrusts({ trustDomain, anchor }: VerifiedClient): boolean {
    return this.#rootsOf(trustDomain).some((root) => root.anchor === anchor)
  }

  #rootsOf(trustDomain: string): Root[] {
    const names = isOwnTrustDomain(trustDomain, this.#names) ? ['', trustDomain] : [trustDomain]
    return [...this.#sources.values()].flatMap((domains) => names.flatMap((name) => domains.get(name) ?? []))
  }
}

function rootOf(certificate: X509Certificate): Root {
  const key = certificate.publicKey.export({ type: 'spki', format: 'der' })
  const anchor = createHash('sha256').update(`${certificate.subject}\n`).update(key).digest('hex')
  return { certificate, fingerprint: fingerprintOf(certificate), anchor }
}

/** The identity of a leaf (X.509-SVID, sections 2, 4 and 5.2): exactly one URI among its names, which is a SPIFFE id with a path. */
function identityOf(leaf: X509Certificate, now: number): { readonly identity: string; readonly trustDomain: string } | { readonly refused: string } {
  if (leaf.ca) return { refused: 'the certificate is one of an authority' }
  if (!isValid(leaf, now))
    return { refused: `the certificate is valid from ${leaf.validFromDate.toISOString()} to ${leaf.validToDate.toISOString()}` }
  const uris = uriNames(leaf.subjectAltName ?? '')
  const [identity] = uris
  if (uris.length !== 1 || identity === undefined) return { refused: `the certificate has ${uris.length} URIs among its names instead of one` }
  const id = parseSpiffeId(identity)
  if (!id || id.path.length === 0) return { refused: 'the URI of the certificate is not the SPIFFE id of a workload' }
  return { identity, trustDomain: id.trustDomain }
}

/** The URIs among the names of a certificate, in the notation of Node: `URI:x, DNS:y`, where a value with special characters is a JSON string. */
export function uriNames(names: string): string[] {
  const found: string[] = []
  const name = /([^:,"]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/y
  while (name.lastIndex < names.length) {
    const [, kind, value = ''] = name.exec(names) ?? []
    // What cannot be read counts as a name too many.
    if (kind === undefined) return [...found, '', '']
    if (kind === 'URI') found.push(value.startsWith('"') ? String(JSON.parse(value)) : value)
  }
  return found
}

const isValid = ({ validFromDate, validToDate }: X509Certificate, now: number): boolean =>
  validFromDate.getTime() <= now && now <= validToDate.getTime()

const hasSigned = (issuer: X509Certificate, subject: X509Certificate): boolean => subject.checkIssued(issuer) && subject.verify(issuer.publicKey)

/** The root that a leaf leads to, over presented certificates of authorities where it has to. Each of those is looked at once. */
function rootFor(leaf: X509Certificate, roots: readonly Root[], presented: PresentedChain, now: number): Root | undefined {
  const usable = roots.filter(({ certificate }) => isValid(certificate, now))
  let unused: readonly X509Certificate[] | undefined
  let reached: readonly X509Certificate[] = [leaf]
  for (let length = 0; length <= longestChain && reached.length > 0; length++) {
    const root = usable.find(({ certificate }) => reached.some((subject) => hasSigned(certificate, subject)))
    if (root) return root
    unused ??= presented
      .intermediates()
      .slice(0, mostPresented)
      .filter((certificate) => certificate.ca && isValid(certificate, now))
    const issuers: readonly X509Certificate[] = unused.filter((issuer) => reached.some((subject) => hasSigned(issuer, subject)))
    unused = unused.filter((certificate) => !issuers.includes(certificate))
    reached = issuers
  }
  return undefined
}
