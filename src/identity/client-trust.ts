/**
 * Trust in client certificates: roots by trust domain, and the identity in a certificate (docs/identity.md, T1 to T5; SPIFFE X.509-SVID,
 * sections 2 to 5). TLS has already verified a chain to any of the roots; the check here is that the chain leads to a root of the
 * certificate's own trust domain.
 */
import { createHash, type X509Certificate } from 'node:crypto'
import type { Caller, MeshNamesEvent } from '../../protocols/messages/identity.ts'
import { isOwnTrustDomain } from './access.ts'
import { certificatesOf, fingerprintOf } from './pem.ts'
import { parseSpiffeId } from './spiffe-id.ts'
import { vouchingCluster } from './vouched.ts'

/** A verified client certificate, and the root that verified it. */
export interface VerifiedClient {
  readonly caller: Caller
  readonly trustDomain: string
  /** A hash of the root's subject and key, so that a root renewed with the same key counts as the same. */
  readonly anchor: string
}

/** The certificates that a client presented, after TLS has verified a chain to one of {@link ClientTrust.bundle}. */
export interface PresentedChain {
  readonly leaf: X509Certificate
  /** The other presented certificates, in any order. Called only when no root has signed the leaf directly. */
  intermediates(): readonly X509Certificate[]
}

/** The maximum number of certificates between a leaf and its root. */
const longestChain = 4
/** The maximum number of presented certificates that are examined. */
const maxPresented = 10

interface Root {
  readonly certificate: X509Certificate
  readonly fingerprint: string
  readonly anchor: string
}

type Names = Pick<MeshNamesEvent, 'trustDomain' | 'trustDomainAliases' | 'rootNamespace'>

/** The roots of all sources. */
export class ClientTrust {
  readonly #sources = new Map<string, ReadonlyMap<string, readonly Root[]>>()
  #names: Names = { trustDomain: '', trustDomainAliases: [], rootNamespace: '' }
  #bundle = ''

  /**
   * Sets the roots of a source, by trust domain and as PEM. The empty name stands for the mesh's trust domain. Throws an Error for invalid
   * PEM.
   */
  set(source: string, roots: Readonly<Record<string, string>>): void {
    const read = Object.entries(roots).map(([domain, pem]) => [domain, pem === '' ? [] : certificatesOf(pem).map(rootOf)] as const)
    this.#sources.set(source, new Map(read))
    const all = [...this.#sources.values()].flatMap((domains) => [...domains.values()].flat())
    this.#bundle = [...new Map(all.map(({ fingerprint, certificate }) => [fingerprint, certificate.toString()])).values()].join('')
  }

  /** Sets the trust domains and root namespace of the mesh. */
  rename(names: Names): void {
    this.#names = names
  }

  /** All roots as PEM without duplicates, for the verification by TLS. Empty when there are none: client certificates are then ignored. */
  get bundle(): string {
    return this.#bundle
  }

  /** Returns the identity of a certificate at the Unix time `now` in milliseconds, or the reason of its rejection for the log. */
  verify(presented: PresentedChain, now: number): VerifiedClient | { readonly refused: string } {
    const { leaf } = presented
    const read = identityOf(leaf, now)
    if ('refused' in read) return read
    const { identity, trustDomain, cluster } = read
    const roots = this.#rootsOf(trustDomain)
    if (roots.length === 0) return { refused: `there is no root for the trust domain ${trustDomain}` }
    const root = rootFor(leaf, roots, presented, now)
    if (!root) return { refused: `no root of the trust domain ${trustDomain} has signed the certificate of ${identity}` }
    const expiresAt = leaf.validToDate.getTime()
    const caller: Caller = {
      ...{ identities: [identity], via: 'certificate', method: 'client certificate', expiresAt },
      certificate: { serial: leaf.serialNumber.toLowerCase(), root: root.fingerprint },
      ...(cluster !== undefined && { cluster: { id: cluster, isOwn: false } }),
    }
    return { caller, trustDomain, anchor: root.anchor }
  }

  /** Whether the root that verified a certificate is still trusted for its trust domain. */
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

/**
 * Returns the identity of a leaf (X.509-SVID, sections 2, 4 and 5.2): exactly one URI among its names, which is a SPIFFE id with a path, and
 * the other cluster that vouches for it.
 */
function identityOf(
  leaf: X509Certificate,
  now: number,
): { readonly identity: string; readonly trustDomain: string; readonly cluster: string | undefined } | { readonly refused: string } {
  if (leaf.ca) return { refused: 'the certificate is one of an authority' }
  if (!isValid(leaf, now))
    return { refused: `the certificate is valid from ${leaf.validFromDate.toISOString()} to ${leaf.validToDate.toISOString()}` }
  const uris = uriNames(leaf.subjectAltName ?? '')
  const [identity] = uris
  if (uris.length !== 1 || identity === undefined) return { refused: `the certificate has ${uris.length} URIs among its names instead of one` }
  const id = parseSpiffeId(identity)
  if (!id || id.path.length === 0) return { refused: 'the URI of the certificate is not the SPIFFE id of a workload' }
  try {
    return { identity, trustDomain: id.trustDomain, cluster: vouchingCluster(leaf.raw) }
  } catch (error) {
    return { refused: (error as Error).message }
  }
}

/**
 * Returns the URIs in a subject alternative name as Node prints it: `URI:x, DNS:y`, where a value with special characters is a JSON string.
 */
export function uriNames(names: string): string[] {
  const found: string[] = []
  const name = /([^:,"]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/y
  while (name.lastIndex < names.length) {
    const [, kind, value = ''] = name.exec(names) ?? []
    // Text that cannot be parsed adds two invalid names, so that callers, which expect exactly one URI, reject the certificate.
    if (kind === undefined) return [...found, '', '']
    if (kind === 'URI') found.push(value.startsWith('"') ? String(JSON.parse(value)) : value)
  }
  return found
}

const isValid = ({ validFromDate, validToDate }: X509Certificate, now: number): boolean =>
  validFromDate.getTime() <= now && now <= validToDate.getTime()

const hasSigned = (issuer: X509Certificate, subject: X509Certificate): boolean => subject.checkIssued(issuer) && subject.verify(issuer.publicKey)

/**
 * Returns the root at the end of a leaf's chain, through presented authority certificates where necessary. Breadth-first; each of them is
 * used once.
 */
function rootFor(leaf: X509Certificate, roots: readonly Root[], presented: PresentedChain, now: number): Root | undefined {
  const usable = roots.filter(({ certificate }) => isValid(certificate, now))
  let unused: readonly X509Certificate[] | undefined
  let reached: readonly X509Certificate[] = [leaf]
  for (let length = 0; length <= longestChain && reached.length > 0; length++) {
    const root = usable.find(({ certificate }) => reached.some((subject) => hasSigned(certificate, subject)))
    if (root) return root
    unused ??= presented
      .intermediates()
      .slice(0, maxPresented)
      .filter((certificate) => certificate.ca && isValid(certificate, now))
    const issuers: readonly X509Certificate[] = unused.filter((issuer) => reached.some((subject) => hasSigned(issuer, subject)))
    unused = unused.filter((certificate) => !issuers.includes(certificate))
    reached = issuers
  }
  return undefined
}
