/** Variables of the path of a review (docs/injection.md, N13). */
import { expect } from 'chai'
import fc from 'fast-check'
import { PathError, pathVariables } from '../../../src/inject/request-path.ts'
import { runs } from '../../harness/seed.ts'

describe('the path of a review', () => {
  it('sets the cluster, the network and variables of other names', () => {
    expect(pathVariables('')).to.deep.equal({})
    expect(pathVariables('cluster/east/net/n1')).to.deep.equal({ MESH_META_CLUSTER_ID: 'east', MESH_META_NETWORK: 'n1' })
    expect(pathVariables('region/eu-1/my_zone/a.b//')).to.deep.equal({ REGION: 'eu-1', MY_ZONE: 'a.b' })
    expect(pathVariables('cluster/a%2Db')).to.deep.equal({ MESH_META_CLUSTER_ID: 'a-b' })
  })

  it('is refused with what is wrong about it', () => {
    for (const [path, reason] of [
      ['cluster', 'has the key "cluster" without a value'],
      ['cluster/east/net', 'has the key "net" without a value'],
      ['a-b/c', '"a-b", which is no name of a variable'],
      ['a%3Db/c', 'which is no name of a variable'],
      ['cluster/a%2Fb', '"a%2Fb" for cluster, which is no name'],
      ['cluster/a%0Ab', 'which is no name'],
      ['cluster/%', '"%" for cluster, which is no name'],
      ['cluster/..', 'which is no name'],
      [`cluster/${'x'.repeat(300)}`, 'which is no name'],
    ] as const)
      expect(() => pathVariables(path), path).to.throw(PathError, reason)
  })

  it('gives variables with plain names and values, or is refused, whatever it is', () => {
    const part = fc.oneof(fc.string(), fc.constantFrom('cluster', 'net', '__proto__', '%2F', '..', '\n', 'a', 'B_1'), fc.webSegment())
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        let variables: Record<string, string>
        try {
          variables = pathVariables(parts.join('/'))
        } catch (error) {
          expect(error).to.be.instanceOf(PathError)
          expect((error as Error).message.length).to.be.below(1500)
          return
        }
        for (const [name, value] of Object.entries(variables)) {
          expect(name).to.match(/^[A-Z_][A-Z0-9_]*$/)
          expect(value).to.match(/^[A-Za-z0-9._-]+$/)
        }
      }),
      { numRuns: runs(2000) },
    )
  })
})
