/** A root and an intermediate authority of one type of key, made by the project's own code. */
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { readCertificate } from '../../src/ca/certificate.ts'
import { issueCross, issueRoot, signingKeyOf } from '../../src/ca/issue.ts'

/** Certificates in DER. The key is that of the intermediate authority. */
export interface MadeAuthority {
  readonly root: Buffer
  readonly between: Buffer
  readonly key: KeyObject
}

/** Makes an authority that is valid for a day. */
export function madeAuthority(type: 'rsa' | 'ec'): MadeAuthority {
  const made = () =>
    type === 'rsa' ? generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey : generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey
  const grant = () => ({ serial: randomBytes(16), notBefore: Date.now() - 60_000, notAfter: Date.now() + 86_400_000 })
  const [rootKey, key] = [made(), made()]
  const root = issueRoot(`${type} root`, grant(), rootKey)
  const between = issueCross(readCertificate(issueRoot(`${type} below`, grant(), key)), grant(), signingKeyOf(readCertificate(root), rootKey))
  return { root, between, key }
}
