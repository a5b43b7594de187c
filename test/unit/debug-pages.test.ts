import { expect } from 'chai'
import { findConnection, findExactly } from '../../actors/discovery/admin/debug-pages.ts'

describe('which connection a page is about', () => {
  const node = (name: string) => `sidecar~10.0.0.1~${name}.ns~ns.svc.cluster.local`
  const connections = [
    { nodeId: node('xpod-1'), connectionId: `${node('xpod-1')}-3` },
    { nodeId: node('pod-1'), connectionId: `${node('pod-1')}-21` },
    { nodeId: node('pod-1'), connectionId: `${node('pod-1')}-2` },
  ]
  const found = (find: typeof findExactly, named: string) => connections.indexOf(find(connections, named) as (typeof connections)[number])

  it('is that of the given id, node or proxy name', () => {
    for (const find of [findExactly, findConnection]) {
      expect(found(find, `${node('pod-1')}-2`)).to.equal(2)
      expect(found(find, node('pod-1'))).to.equal(1)
      expect(found(find, 'pod-1.ns')).to.equal(1)
    }
  })

  it('may be named in part where a page shows something, and never where it acts', () => {
    expect([found(findConnection, 'xpod'), found(findExactly, 'xpod')]).to.deep.equal([0, -1])
  })

  it('is never one of which the number merely begins alike', () => {
    for (const find of [findExactly, findConnection]) expect(found(find, `${node('xpod-1')}-`)).to.equal(-1)
    connections.splice(2)
    for (const find of [findExactly, findConnection]) expect(found(find, `${node('pod-1')}-2`)).to.equal(-1)
  })
})
