/** What the Secrets of the certificate authority hold (docs/certificates.md, A6, K8, K9). */
import { expect } from 'chai'
import { pluggedInSecret } from '../../../actors/discovery/authority/plugged-in.ts'
import { importedState, rootIn, rootTexts, signingRecord } from '../../../src/ca/secret-forms.ts'
import { emptyState, stages } from '../../../src/ca/state.ts'
import { rootOf, signedBy } from '../../harness/authorities.ts'

const pem = (name: string): string => rootOf(name).key.export({ type: 'pkcs8', format: 'pem' }) as string
/** An authority whose certificate another root has signed. */
const below = signedBy(rootOf('root'), rootOf('below'))

describe('the Secret of a plugged-in authority', () => {
  const root = rootOf('root').record.root

  it('has the names of the files, or those of a certificate for TLS with its chain', () => {
    const named = pluggedInSecret({ 'ca-cert.pem': below, 'ca-key.pem': pem('below'), 'root-cert.pem': root }, 'Secret a/cacerts')
    const asTls = pluggedInSecret({ 'tls.crt': `${below}${root}`, 'tls.key': pem('below'), 'ca.crt': root }, 'Secret a/cacerts')
    for (const { found, key } of [named, asTls]) {
      expect([found.by?.certificate, found.roots, key]).to.deep.equal([below, [root], pem('below')])
      expect(JSON.stringify(found), 'the key is nowhere in what is shown').not.to.include('PRIVATE')
    }
    expect(asTls.found.keyStamp).to.equal(named.found.keyStamp)
    const other = pluggedInSecret({ 'ca-cert.pem': below, 'ca-key.pem': pem('root'), 'root-cert.pem': root }, 'Secret a/cacerts')
    expect(other.found.keyStamp).to.not.equal(named.found.keyStamp)
  })

  it('may have roots only, or nothing', () => {
    expect(pluggedInSecret({ 'root-cert.pem': root }, 'S')).to.deep.equal({ found: { by: undefined, roots: [root] }, key: '' })
    expect(pluggedInSecret({}, 'S')).to.deep.equal({ found: { by: undefined, roots: [] }, key: '' })
  })

  it('is refused with its name, that of the value, and the reason', () => {
    const good = { 'ca-cert.pem': below, 'ca-key.pem': pem('below'), 'root-cert.pem': root }
    for (const [reason, data] of [
      ['S: ca-cert.pem: is missing, but ca-key.pem is there', { ...good, 'ca-cert.pem': '' }],
      ['S: root-cert.pem: is missing, but ca-key.pem is there', { ...good, 'root-cert.pem': '' }],
      ['S: root-cert.pem: holds no certificate in PEM', { ...good, 'root-cert.pem': 'garbage' }],
      ['S: ca-cert.pem: holds no certificate in PEM', { ...good, 'ca-cert.pem': 'garbage' }],
      ['S: ca-cert.pem: the signing certificate does not lead to a root', { ...good, 'root-cert.pem': rootOf('other').record.root }],
      ['S: tls.crt: is missing, but tls.key is there', { 'tls.key': pem('below'), 'ca.crt': root }],
    ] as const)
      expect(() => pluggedInSecret(data, 'S')).to.throw(reason)
  })
})

describe('the Secret of the root', () => {
  it('is the first root of a state, with what lies between its certificate and a root, and is what the state shows', () => {
    for (const [data, certificate] of [
      [{ 'ca-cert.pem': rootOf('root').record.root, 'ca-key.pem': pem('root') }, rootOf('root').record.root],
      [{ 'ca-cert.pem': below, 'ca-key.pem': pem('below'), 'root-cert.pem': rootOf('root').record.root }, below],
    ] as const) {
      const { state, id, key } = importedState(data, 5)
      expect(state.authorities).to.have.length(1)
      expect(state.authorities[0]).to.include({ id, certificate, intermediates: '', root: rootOf('root').record.root, origin: 'imported' })
      const record = signingRecord(state)
      const shown = record && rootTexts(record, key)
      expect(rootIn(shown ?? {})).to.equal(id)
      expect(importedState(shown ?? {}, 5)).to.deep.equal({ state, id, key })
    }
    expect(rootIn({ 'ca-cert.pem': 'garbage' })).to.equal(undefined)
  })

  it('has the authority that signs for workloads at each stage', () => {
    const [old, next] = [rootOf('old').record, rootOf('next').record]
    const signs = stages.slice(1).map((stage) => signingRecord({ ...emptyState, authorities: [old, next], stage }))
    expect(signs).to.deep.equal([old, old, next, next])
    expect([signingRecord({ ...emptyState, authorities: [old] }), signingRecord(emptyState)]).to.deep.equal([old, undefined])
  })
})
