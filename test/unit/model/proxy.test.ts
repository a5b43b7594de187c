import { expect } from 'chai'
import { BadNode, readNode } from '../../../src/model/proxy.ts'
import { names } from '../../harness/settings.ts'

const id = 'sidecar~10.0.0.1~pod.ns~ns.svc.cluster.local'
const read = (metadata: Record<string, unknown>, nodeId = id) => readNode({ id: nodeId, metadata, locality: undefined }, names, false)

describe('the node of a proxy', () => {
  const long = (bytes: number) => 'x'.repeat(bytes)
  const refused: readonly (readonly [string, Record<string, unknown>])[] = [
    ['TLS_CLIENT_ROOT_CERT has 4097 bytes, at most 4096', { TLS_CLIENT_ROOT_CERT: long(4097) }],
    ['TLS_SERVER_KEY has 4097 bytes, at most 4096', { TLS_SERVER_KEY: long(4097) }],
    ['REQUESTED_NETWORK_VIEW has 5000 bytes', { REQUESTED_NETWORK_VIEW: long(5000) }],
    ['NETWORK has 1025 bytes, at most 1024', { NETWORK: long(1025) }],
    ['NAMESPACE has 1025 bytes', { NAMESPACE: long(1025) }],
    ['NAMESPACE: "n1|ipv4" is not a valid namespace name', { NAMESPACE: 'n1|ipv4' }],
    ['NAMESPACE: "n1@n2" is not a valid namespace name', { NAMESPACE: 'n1@n2' }],
    ['LABELS: app has 2004 bytes, at most 1024', { LABELS: { app: long(2000) } }],
    ['LABELS: more than 512 labels', { LABELS: Object.fromEntries(Array.from({ length: 513 }, (_, index) => [`l${index}`, ''])) }],
    ['INSTANCE_IPS: more than 64 addresses', { INSTANCE_IPS: Array.from({ length: 65 }, () => '10.0.0.1').join() }],
  ]
  for (const [reason, metadata] of refused) it(`is rejected: ${reason}`, () => expect(() => read(metadata)).to.throw(BadNode, reason))

  it('is rejected with an id that is too long', () => expect(() => read({}, id + long(2048))).to.throw(BadNode, 'node ID has'))

  it('is rejected if the first label of its domain is not a namespace', () =>
    expect(() => read({}, 'sidecar~10.0.0.1~pod.ns~n1|ipv4.svc.cluster.local')).to.throw(BadNode, 'node ID: the domain "n1|ipv4"'))

  it('has no namespace if its domain has one label', () => expect(read({}, 'sidecar~10.0.0.1~pod.ns~local').namespace).to.equal(''))

  it('is accepted up to the limits, with labels kept once', () => {
    const node = read({ TLS_CLIENT_ROOT_CERT: long(4096), NETWORK: long(1024), LABELS: { app: long(1000) } })
    expect(node.network).to.have.length(1024)
    expect(node.labels).to.deep.equal({ app: long(1000) })
    expect(Object.keys(node.metadata), 'labels are kept once').to.deep.equal(['TLS_CLIENT_ROOT_CERT', 'NETWORK'])
  })
})
