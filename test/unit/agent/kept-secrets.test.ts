import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { expect } from 'chai'
import { type KeptSecrets, keptText, keyText, readKept, restore } from '../../../src/agent/kept-secrets.ts'
import { makeSigningRequest } from '../../../src/ca/signing-request.ts'
import { SigningService } from '../../harness/signing-service.ts'

const identity = 'spiffe://cluster.local/ns/shop/sa/web'
const ec = { type: 'ec', format: 'traditional' } as const

describe('what is kept of the secrets', () => {
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

  it('is read as it was written', () => {
    const one = kept()
    expect(readKept(keptText(one))).to.deep.equal(one)
  })

  it('is refused when it is garbled, without a word of what it holds', () => {
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

  it('is used by the same workload: the pair while it is valid, the roots in any case', () => {
    const one = kept()
    const { roots, pair, isDue } = restored(one)
    expect([roots, isDue, typeof pair === 'object' && pair.key === one.key && pair.issued.identity]).to.deep.equal([one.roots, false, identity])
    const later = restored(one, {}, Date.now() + 7_200_000)
    expect([later.roots, later.pair]).to.deep.equal([one.roots, (later.pair as string).match(/^the certificate is valid from .*/)?.[0]])
  })

  it('is used with a key in the form that is asked for now', () => {
    const { pair } = restored(kept(), { key: { type: 'ec', format: 'pkcs8' } })
    const text = typeof pair === 'object' ? pair.key : ''
    expect(text).to.match(/^-----BEGIN PRIVATE KEY/)
    expect(createPrivateKey(text).equals(key)).to.equal(true)
  })

  it('is used when the authority named a trust domain of its own, and not when it names another account', () => {
    expect(restored(kept({}, 'spiffe://other.domain/ns/shop/sa/web')).pair).to.be.an('object')
    expect(restored(kept({}, 'spiffe://cluster.local/ns/shop/sa/db')).pair).to.equal('the certificate is of spiffe://cluster.local/ns/shop/sa/db')
  })

  it('is renewed at once when the authority is another', () => {
    expect(restored(kept({ authority: 'other:443' })).isDue).to.equal(true)
  })

  it('is not used by another workload, for a key of another kind, or with a key or roots that are none', () => {
    const other = 'spiffe://cluster.local/ns/shop/sa/db'
    expect(() => restored(kept({ identity: other }))).to.throw(`is of "${other}"`)
    expect(() => restored(kept(), { identity: undefined })).to.throw('is of')
    expect(() => restored(kept(), { key: { type: 'rsa', format: 'pkcs8' } })).to.throw('has a key of type ec')
    expect(() => restored(kept({ key: 'none' }))).to.throw(/^has no private key$/)
    expect(() => restored(kept({ roots: 'none' }))).to.throw('holds no certificate')
    const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    expect(restored(kept({ key: keyText(stranger, ec) })).pair).to.equal('the certificate is of another key')
  })
})
