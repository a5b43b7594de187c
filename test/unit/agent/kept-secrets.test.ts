import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { expect } from 'chai'
import { type KeptSecrets, keptText, keyText, readKept, restore } from '../../../src/agent/kept-secrets.ts'
import { makeSigningRequest } from '../../../src/ca/signing-request.ts'
import { SigningService } from '../../harness/signing-service.ts'

const identity = 'spiffe://cluster.local/ns/shop/sa/web'
const ec = { type: 'ec', format: 'traditional' } as const

describe('secrets that the agent keeps in a file', () => {
  const service = new SigningService(identity)
  let key: KeyObject
  before(() => {
    key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  })
  const kept = (changes: Partial<KeptSecrets> = {}, holder = identity): KeptSecrets => {
    const [chain = '', roots = ''] = service.chain(makeSigningRequest(key, []), holder)
    return { identity, authority: 'ca:443', chain, roots, key: keyText(key, ec), issuedAt: Date.now(), ...changes }
  }
  const restored = (from: KeptSecrets, changes: Partial<Parameters<typeof restore>[1]> = {}, now = Date.now()) =>
    restore(from, { identity, key: ec, ...changes }, 'ca:443', now)

  it('are read back as they were written', () => {
    const one = kept()
    expect(readKept(keptText(one))).to.deep.equal(one)
  })

  it('are rejected if the file is malformed, with an error that quotes none of its content', () => {
    const one = kept()
    const refused: [string, RegExp][] = [
      [keptText(one).slice(0, -200), /^is not JSON$/],
      ['null', /^is not of version 1$/],
      ['{"version":2}', /^is not of version 1$/],
      [JSON.stringify({ version: 1, ...one, key: 7 }), /^key is not text$/],
      [JSON.stringify({ version: 1, ...one, issuedAt: '1' }), /^issuedAt is not a number$/],
    ]
    for (const [text, reason] of refused) expect(() => readKept(text)).to.throw(reason)
  })

  it('restore the key pair for the same workload while it is valid, and the roots even after it expired', () => {
    const one = kept()
    const { roots, pair, isDue } = restored(one)
    expect([roots, isDue, typeof pair === 'object' && pair.key === one.key && pair.issued.identity]).to.deep.equal([one.roots, false, identity])
    const later = restored(one, {}, Date.now() + 7_200_000)
    expect([later.roots, later.pair]).to.deep.equal([one.roots, (later.pair as string).match(/^the certificate is valid from .*/)?.[0]])
  })

  it('are restored with the key converted to the format that is configured now', () => {
    const { pair } = restored(kept(), { key: { type: 'ec', format: 'pkcs8' } })
    const text = typeof pair === 'object' ? pair.key : ''
    expect(text).to.match(/^-----BEGIN PRIVATE KEY/)
    expect(createPrivateKey(text).equals(key)).to.equal(true)
  })

  it('are restored if the trust domain differs, but not if namespace or service account differ', () => {
    expect(restored(kept({}, 'spiffe://other.domain/ns/shop/sa/web')).pair).to.be.an('object')
    expect(restored(kept({}, 'spiffe://cluster.local/ns/shop/sa/db')).pair).to.equal('the certificate is of spiffe://cluster.local/ns/shop/sa/db')
  })

  it('are renewed at once if the configured authority has changed', () => {
    expect(restored(kept({ authority: 'other:443' })).isDue).to.equal(true)
  })

  it('are not restored for another identity or key type, or if key, roots or certificate do not parse or match', () => {
    const other = 'spiffe://cluster.local/ns/shop/sa/db'
    expect(() => restored(kept({ identity: other }))).to.throw(`is of "${other}"`)
    expect(() => restored(kept(), { identity: undefined })).to.throw('is of')
    expect(() => restored(kept(), { key: { type: 'rsa', format: 'pkcs8' } })).to.throw('has a key of type ec')
    expect(() => restored(kept({ key: 'none' }))).to.throw(/^has no private key$/)
    expect(() => restored(kept({ roots: 'none' }))).to.throw('holds no certificate')
    const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    expect(restored(kept({ key: keyText(stranger, ec) })).pair).to.equal('the certificate is for another key')
  })
})
