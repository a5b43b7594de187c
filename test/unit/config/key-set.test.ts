import { generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { keySetFault, usableKeySet } from '../../../src/config/shapes/key-set.ts'
import { unusableKeys, usableKeys } from '../../harness/odd-keys.ts'
import { names } from '../../harness/settings.ts'

const setOf = (...keys: unknown[]) => JSON.stringify({ keys })
const good = { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }), kid: 'good' }

describe('JSON web key sets', () => {
  for (const [name, key] of Object.entries(unusableKeys))
    it(`lose a key that is ${name}, and are rejected if no other key is left`, () => {
      expect(() => usableKeySet(setOf(key))).to.throw(/none of its keys can be used: key 0/)
      const { content, leftOut } = usableKeySet(setOf(good, key))
      expect(JSON.parse(content)).to.deep.equal({ keys: [good] })
      expect(leftOut).to.have.length(1)
    })

  for (const [name, key] of Object.entries(usableKeys))
    it(`keep a key that is ${name}`, () => {
      expect(usableKeySet(setOf(key)).leftOut).to.deep.equal([])
    })

  it('keep only public fields, once each and without padding', () => {
    const text = `{"keys": [1], "x": ${'['.repeat(200)}1e999${']'.repeat(200)}, "keys": [${JSON.stringify({ ...good, x5c: ['\ud800'], x: `${good.x}=` })}]}`
    expect(usableKeySet(text)).to.deep.equal({ content: setOf({ ...good }), leftOut: [] })
  })

  it('are rejected if they are no JSON object with 1 to 500 keys', () => {
    for (const text of ['x', '[]', '{}', '{"keys":[]}', setOf(...Array.from({ length: 501 }, () => good))])
      expect(keySetFault(text), text.slice(0, 20)).to.be.a('string')
  })

  it('in a policy lose unusable keys with a warning, and are a fault if they contain a private key', () => {
    const policy = (keys: string) =>
      parseConfigFile(
        'a.yaml',
        JSON.stringify({
          apiVersion: 'security.mesh.io/v1',
          kind: 'RequestAuthentication',
          metadata: { name: 'a', namespace: 'ns' },
          spec: { jwtRules: [{ issuer: 'i', jwks: keys }] },
        }),
        names,
      )
    const {
      objects: [made],
      warnings,
    } = policy(setOf(good, { kty: 'EC', crv: 'P-256', x: good.x, y: good.x }))
    expect(made?.spec).to.deep.include({ jwtRules: [{ issuer: 'i', jwks: setOf(good) }] })
    expect(warnings.map(({ path, reason }) => [path, reason])).to.deep.equal([['spec.jwtRules[0].jwks', 'key 1 is not a valid key; it is left out']])
    expect(policy(setOf(good, { ...good, d: 'AQ' })).faults[0]?.reason).to.equal('key 1 is a secret, not a public key')
  })
})
