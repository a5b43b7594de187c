/** Keeps a Secret with a certificate of the mesh configuration, on the main thread (docs/certificates.md, M1 to M6). */
import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import type { KeptSecret, SecretOutcome } from '../../../protocols/messages/secret-calls.ts'
import type { CertificateOrder, CertificateOutcome } from '../../../protocols/messages/signer.ts'
import { checkSigned, renewalOf, type SignedLeaf } from '../../../src/ca/signed-by-signer.ts'
import { makeSigningRequest, readSigningRequest } from '../../../src/ca/signing-request.ts'
import { secretTypes } from '../../../src/names/secret-names.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { type Asking, patient } from '../../runtime/ask.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { ClusterSigner } from '../cluster/main-cluster.ts'
import { type CallSecret, secretCalls } from '../cluster/secret-calls.ts'
import { type Leadership, NotLeading } from './leadership.ts'

/** What Secrets are kept with. */
export interface CertificateWritesParts {
  /** Of the duty, for which the process stands for election with the first call. */
  readonly leadership: () => Leadership
  readonly signer: ClusterSigner
  /** The domain of the label that marks Secrets as made here. */
  readonly domain: string
  /** The namespace of the Secrets. */
  readonly namespace: string
}

/** The values of such a Secret. */
const values = { chain: 'cert-chain.pem', key: 'key.pem', roots: 'root-cert.pem' } as const

const newKeyPair = promisify(generateKeyPair)

/** Returns the answer to the question. */
export const certificateWrites = (parts: CertificateWritesParts): BoundedAnswers<'keepCertificate'> => ({
  async keepCertificate(order, asking = patient) {
    const leadership = parts.leadership()
    try {
      return await keep(parts, leadership, order, asking)
    } catch (error) {
      if (error instanceof NotLeading || leadership.term !== order.term) return { outcome: 'lost' }
      return { outcome: 'failed', reason: (error as Error).message }
    }
  },
})

async function keep(parts: CertificateWritesParts, leadership: Leadership, order: CertificateOrder, asking: Asking): Promise<CertificateOutcome> {
  const { signer, namespace } = parts
  const { term, secretName: name, dnsNames } = order
  const calls = leadership.inTerm(term)
  const secret: CallSecret = secretCalls(calls, namespace)
  const found = secretOf(await secret({ verb: 'get', name }))
  if (found && !isOwn(found, parts.domain))
    return { outcome: 'foreign', reason: `its type is ${JSON.stringify(found.type.slice(0, 100))}, and it was not made by this control plane` }
  const roots = await signer.roots()
  const held = found && heldBy(found, dnsNames, roots)
  if (held && renewalOf(held) > wallClockMs()) return { outcome: 'kept', renewAt: renewalOf(held), notAfter: held.notAfter }
  const { privateKey } = await newKeyPair('ec', { namedCurve: 'P-256' })
  const csr = makeSigningRequest(
    privateKey,
    dnsNames.map((dns) => ({ dns })),
  )
  const answer = await signer.requests.sign({ use: 'dns', csr, lifeMs: 0, client: `dns ${name}` }, asking, calls)
  if (answer.outcome !== 'signed') throw new Error(answer.reason)
  const asked = { request: readSigningRequest(csr), roots, until: Number.POSITIVE_INFINITY, now: wallClockMs() }
  const signed = checkSigned(answer.certificate, asked)
  const written = await secret({ verb: found ? 'update' : 'create', secret: filled(found ?? fresh(parts.domain, name), signed, privateKey, roots) })
  if (written.outcome === 'failed') throw new Error(written.reason)
  if (written.outcome !== 'done') throw new Error('somebody else has changed it meanwhile')
  return { outcome: 'written', renewAt: renewalOf(signed), notAfter: signed.notAfter }
}

function secretOf(outcome: SecretOutcome): KeptSecret | undefined {
  if (outcome.outcome === 'failed') throw new Error(outcome.reason)
  return outcome.outcome === 'done' ? outcome.secret : undefined
}

/** The label that marks a Secret as made here. */
const mark = (domain: string) => ({ [`${domain}/certificate`]: 'dns' })

const isOwn = ({ type, others }: KeptSecret, domain: string): boolean =>
  type === secretTypes.dns && Object.entries(mark(domain)).every(([key, value]) => others?.labels?.[key] === value)

const fresh = (domain: string, name: string): KeptSecret => ({
  ...{ name, type: secretTypes.dns, resourceVersion: '', data: {} },
  others: { labels: mark(domain) },
})

function filled(secret: KeptSecret, { leaf, intermediates }: SignedLeaf, key: KeyObject, roots: string): KeptSecret {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const pem = key.export({ type: 'pkcs8', format: 'pem' }) as string
  return {
    ...secret,
    data: { ...secret.data, [values.chain]: base64(leaf + intermediates), [values.key]: base64(pem), [values.roots]: base64(roots) },
  }
}

/** The certificate that a Secret has for these names, which its key and the roots fit; undefined: it has to be made again. */
function heldBy({ data }: KeptSecret, dnsNames: readonly string[], roots: string): SignedLeaf | undefined {
  const text = (name: string) => Buffer.from(data[name] ?? '', 'base64').toString('utf8')
  if (text(values.roots) !== roots) return undefined
  try {
    const key = createPrivateKey(text(values.key))
    const request = readSigningRequest(
      makeSigningRequest(
        key,
        dnsNames.map((dns) => ({ dns })),
      ),
    )
    return checkSigned(text(values.chain), { request, roots, until: Number.POSITIVE_INFINITY, now: wallClockMs() })
  } catch {
    return undefined
  }
}
