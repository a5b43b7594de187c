import { expect } from 'chai'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { isClusterLocal } from '../../../src/snapshot/cluster-local.ts'
import { testSettings } from '../../harness/settings.ts'

describe('hosts that are local to clusters', () => {
  const local = (host: string, config = '{}') => {
    const read = readMeshConfig(config)
    if ('error' in read) throw new Error(read.error)
    return isClusterLocal(host, { mesh: read.value, settings: testSettings() })
  }
  const settings = (...entries: readonly (readonly [boolean, ...string[]])[]) =>
    JSON.stringify({ serviceSettings: entries.map(([clusterLocal, ...hosts]) => ({ settings: { clusterLocal }, hosts })) })

  it('are those of the system, the API server and the control plane', () => {
    for (const host of ['kube-dns.kube-system.svc.cluster.local', 'kubernetes.default.svc.cluster.local', 'meshd.mesh-system.svc.cluster.local'])
      expect(local(host), host).to.equal(true)
    expect(local('web.shop.svc.cluster.local')).to.equal(false)
    expect(local('a.example.com', '{defaultConfig: {discoveryAddress: "a.example.com:15012"}}')).to.equal(true)
  })

  it('are set by the most specific pattern, of equal ones by the last', () => {
    const dns = 'kube-dns.kube-system.svc.cluster.local'
    expect(local(dns, settings([false, dns]))).to.equal(false)
    expect(local(dns, settings([false, '*.svc.cluster.local']))).to.equal(true)
    expect(local(dns, settings([false, '*.kube-system.svc.cluster.local']))).to.equal(false)
    const shop = settings([true, '*.shop.svc.cluster.local'], [false, 'web.shop.svc.cluster.local'], [true, '*'], [false, '*'])
    expect(['api', 'web'].map((name) => local(`${name}.shop.svc.cluster.local`, shop))).to.deep.equal([true, false])
    expect(local('other.example.com', shop)).to.equal(false)
  })
})
