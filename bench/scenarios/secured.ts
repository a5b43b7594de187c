/**
 * Measures connect storms on the secured port with a client certificate or a token per sidecar, beside a bare TLS server that verifies the
 * same client certificates.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, SignJWT } from 'jose'
import { readCertificate } from '../../src/ca/certificate.ts'
import { issueRoot, issueServing, issueWorkload, signingKeyOf } from '../../src/ca/issue.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { pemOf } from '../../src/identity/pem.ts'
import type { Shown } from '../clients.ts'
import type { Measure } from '../report.ts'
import type { ConvergenceOptions } from './convergence.ts'

const issuer = 'https://bench.test'
const namespaces = 10
const day = 86_400_000

/** Runs the storm with certificates, then with tokens. */
export async function secured(
  run: (callers: Required<Pick<ConvergenceOptions, 'variant' | 'tls' | 'callers'>>) => Promise<Measure[]>,
  proxies: number,
): Promise<Measure[]> {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-bench-secured-'))
  try {
    const { tls, certificates } = makeCertificates(dir, proxies)
    const { env, tokens } = await makeTokens(proxies)
    return [
      ...(await run({ variant: 'client certificates', tls, callers: { shown: certificates, atLimit: certificates, env: {} } })),
      ...(await run({ variant: 'tokens', tls, callers: { shown: tokens, atLimit: certificates, env } })),
    ]
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const newKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const pem = (key: KeyObject): string => String(key.export({ type: 'pkcs8', format: 'pem' }))

/** Creates a root with a P-256 key, a serving certificate, and a client certificate per sidecar. */
function makeCertificates(dir: string, proxies: number) {
  const now = Math.floor(Date.now() / 1000) * 1000
  const grant = () => ({ notBefore: now - 60_000, notAfter: now + day, serial: randomBytes(16) })
  const rootKey = newKey()
  const root = issueRoot('bench', grant(), createPrivateKey(pem(rootKey)))
  const signer = signingKeyOf(readCertificate(root), rootKey)
  const file = (name: string, text: string) => {
    writeFileSync(join(dir, name), text)
    return join(dir, name)
  }
  const servingKey = newKey()
  const serving = issueServing(makeSigningRequest(servingKey, [{ dns: 'localhost' }]), grant(), signer)
  const certificates = Array.from({ length: proxies }, (_, index): Shown => {
    const key = newKey()
    const leaf = issueWorkload(makeSigningRequest(key, []), `spiffe://cluster.local/ns/ns-${index % namespaces}/sa/default`, grant(), signer)
    return { cert: pemOf('CERTIFICATE', leaf), key: pem(key) }
  })
  const tls = {
    cert: file('cert.pem', pemOf('CERTIFICATE', serving)),
    key: file('key.pem', pem(servingKey)),
    ca: file('ca.pem', pemOf('CERTIFICATE', root)),
  }
  return { tls, certificates }
}

/** Creates a token per sidecar, and the variable with which the server accepts them. */
async function makeTokens(proxies: number) {
  const key = newKey()
  const jwk = { ...(await exportJWK(createPublicKey(key))), kid: 'bench', alg: 'ES256', use: 'sig' }
  const token = async (index: number): Promise<Shown> => {
    const claims = { sub: `system:serviceaccount:ns-${index % namespaces}:default`, jti: String(index) }
    const unsigned = new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'bench' }).setIssuer(issuer).setAudience('mesh-ca')
    return { token: await unsigned.setIssuedAt().setExpirationTime('1h').sign(key) }
  }
  const tokens = await Promise.all(Array.from({ length: proxies }, (_, index) => token(index)))
  return { tokens, env: { JWT_RULE: JSON.stringify({ issuer, audiences: ['mesh-ca'], jwks: { keys: [jwk] } }) } }
}
