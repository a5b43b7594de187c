import { expect } from 'chai'
import fc from 'fast-check'
import { configKey, keyAt, kindId, kindOfKey, kinds, readKey } from '../../../src/config/kinds.ts'

describe('The key of an object', () => {
  const gatewayApi = { group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'edge', name: 'web' }
  const own = { ...gatewayApi, group: 'networking.mesh.io' }

  it('differs for two kinds of the same name in different groups', () => {
    expect(configKey(own)).to.equal('Gateway/edge/web')
    expect(configKey(gatewayApi)).to.equal('Gateway.gateway.networking.k8s.io/edge/web')
    expect(kindOfKey(configKey(gatewayApi)))
      .to.equal(kindId(gatewayApi))
      .and.not.equal(kindOfKey(configKey(own)))
    expect(kinds.get(kindId(own))?.name).to.equal('Gateway')
    expect(kinds.has(kindId(gatewayApi))).to.equal(false)
  })

  it('is that of the kind of the mesh without a group, and in every mesh domain', () => {
    expect(configKey({ kind: 'Gateway', namespace: 'edge', name: 'web' })).to.equal(configKey(own))
    expect(configKey({ ...own, group: 'networking.example.com' })).to.equal(configKey(own))
    expect(keyAt('Gateway', 'edge/web')).to.equal(configKey(own))
    expect(configKey({ ...own, group: 'networkings.mesh.io' })).to.equal('Gateway.networkings.mesh.io/edge/web')
  })

  it('tells the objects of clusters apart by cluster, and no other objects', () => {
    const pod = { group: '', kind: 'Pod', namespace: 'shop', name: 'web-1' }
    expect(configKey(pod)).to.equal('Pod/shop/web-1')
    const remote = { ...pod, cluster: 'gke/project@1' }
    expect(configKey(remote)).to.equal('Pod/shop/web-1@gke/project@1')
    expect(readKey(configKey(remote), 'mesh.io')).to.deep.equal(remote)
    expect(configKey({ ...own, cluster: 'east' })).to.equal(configKey(own))
  })

  it('can be read', () => {
    const names = fc.constantFrom('web', 'a.b', '(dir/file.yaml#1)', '')
    const groups = fc.constantFrom('networking.mesh.io', 'gateway.networking.k8s.io', 'apps')
    fc.assert(
      fc.property(groups, fc.constantFrom('Gateway', 'VirtualService'), fc.constantFrom('edge', ''), names, (group, kind, namespace, name) => {
        const object = { group, kind, namespace, name }
        expect(readKey(configKey(object), 'mesh.io')).to.deep.equal(object)
      }),
    )
    expect(readKey('Secret/ns/s', 'mesh.io')).to.deep.equal({ group: '', kind: 'Secret', namespace: 'ns', name: 's' })
    expect(readKey('nonsense', 'mesh.io')).to.deep.equal({ group: '', kind: 'nonsense', namespace: '', name: '' })
  })
})
