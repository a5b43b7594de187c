import { expect } from 'chai'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { Faults } from '../../../src/model/faults.ts'
import { MeshState } from '../../../src/snapshot/state.ts'
import { names, testSettings } from '../../harness/settings.ts'

const key = 'DestinationRule/ns/r'
const rule = (host: string) =>
  parseConfigFile('f', `apiVersion: networking.mesh.io/v1\nkind: DestinationRule\nmetadata: {name: r, namespace: ns}\nspec: {host: ${host}}\n`, names)
    .objects[0]

describe('generations of objects without a generation of their own', () => {
  const state = new MeshState(testSettings(), new Faults())
  const digests: string[] = []
  const at = (now: number, host: string | undefined) => {
    state.setConfig(key, host === undefined ? undefined : rule(host))
    state.take(now)
    digests.push(state.objects.digest)
  }

  it('increase with each change, and identify each version, older ones included', () => {
    for (const [index, host] of ['a', 'b', 'b', 'a', undefined, 'a'].entries()) at(index, host)
    expect(digests[1]).to.equal(digests[2])
    expect(new Set(digests).size, 'equal content at another time is another version').to.equal(5)
    expect(digests.map((digest) => state.objects.generation(key, digest))).to.deep.equal([1, 2, 2, 3, undefined, 4])
    expect(state.objects.generation('DestinationRule/ns/other', digests[0] ?? '')).to.equal(undefined)
    expect(state.objects.generation(key, 'no-such-one')).to.equal('not kept')
  })

  it('are forgotten a minute after they were replaced', () => {
    at(59_000, 'c')
    expect(state.objects.generation(key, digests[3] ?? '')).to.equal(3)
    at(65_000, 'd')
    expect([
      state.objects.generation(key, digests[3] ?? ''),
      state.objects.generation(key, digests[6] ?? ''),
      state.objects.generation(key, digests[7] ?? ''),
    ]).to.deep.equal(['not kept', 5, 6])
  })

  it('do not count changes that wait for the next snapshot', () => {
    state.setConfig(key, rule('waiting'))
    expect(state.objects.generation(key, digests[7] ?? '')).to.equal(6)
  })

  it('distinguish different content that a restarted process numbers alike', () => {
    const of = (host: string) => {
      const again = new MeshState(testSettings(), new Faults())
      again.setConfig(key, rule(host))
      return again.objects.digest
    }
    expect(of('a')).to.equal(of('a'))
    expect(of('a')).not.to.equal(of('b'))
  })
})
