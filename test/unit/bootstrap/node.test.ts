import { expect } from 'chai'
import { areIpv6Only, domainOf, hasUnspecified, nodeId, roleOf, workloadAddresses } from '../../../src/bootstrap/node.ts'

describe('the node of a workload', () => {
  it('takes its role from the first argument, and is a sidecar without one', () => {
    expect(roleOf([])).to.equal('sidecar')
    expect(roleOf(['router', 'anything'])).to.equal('router')
    expect(() => roleOf(['ingress'])).to.throw('invalid role type "ingress": expected sidecar or router')
    expect(() => roleOf([''])).to.throw('invalid role type ""')
  })

  it('lists INSTANCE_IP first, then the addresses of the interfaces, each once', () => {
    expect(workloadAddresses('10.1.1.2', ['10.1.1.1', '10.1.1.2', 'fd00::1', '0.0.0.0', '::'])).to.deep.equal(['10.1.1.2', '10.1.1.1', 'fd00::1'])
    expect(workloadAddresses('no address', ['10.1.1.1'])).to.deep.equal(['10.1.1.1'])
    expect(workloadAddresses('', [])).to.deep.equal(['127.0.0.1', '::1'])
    expect(hasUnspecified(['10.1.1.1', '::'])).to.equal(true)
    expect(hasUnspecified(['10.1.1.1'])).to.equal(false)
  })

  it('counts as IPv6 only if no address is IPv4', () => {
    expect(areIpv6Only(['fd00::1', '::1'])).to.equal(true)
    expect(areIpv6Only(['fd00::1', '10.1.1.1'])).to.equal(false)
  })

  it('has an id of role, address, name and domain, and rejects parts that contain a separator or a space', () => {
    expect(nodeId('sidecar', '10.1.2.3', 'web-7d', 'shop', domainOf('', 'shop'))).to.equal('sidecar~10.1.2.3~web-7d.shop~shop.svc.cluster.local')
    expect(domainOf('', '')).to.equal('.svc.cluster.local')
    expect(domainOf('mesh.example', 'shop')).to.equal('mesh.example')
    expect(() => nodeId('sidecar', '10.1.2.3', 'a~b', 'shop', 'd')).to.throw('POD_NAME: "a~b" cannot be part of a node id')
    expect(() => nodeId('sidecar', '10.1.2.3', 'a', 'shop', 'x y')).to.throw('flag --domain: "x y" cannot be part of a node id')
  })
})
