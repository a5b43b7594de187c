import { expect } from 'chai'
import { listenerType } from '../../../src/xds/type-urls.ts'
import { madeOf } from '../../harness/made.ts'

/** A policy for the workload `app`, and services of two namespaces at its address. The proxy sends no labels. */
const documents = `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: own, namespace: ns}
spec: {hosts: [own.ns.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1, labels: {app: app}}]}
---
apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: a, namespace: lab}
spec: {hosts: [a.lab.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: tcp}, {number: 81, name: tcp-more}], endpoints: [{address: 10.0.0.1, labels: {app: other}}]}
---
apiVersion: security.mesh.io/v1
kind: AuthorizationPolicy
metadata: {name: deny, namespace: ns}
spec: {selector: {matchLabels: {app: app}}, action: DENY, rules: [{to: [{operation: {paths: [/secret]}}]}]}
`

function inbound() {
  const { resources, reported } = madeOf(documents)
  expect(reported).to.deep.equal([])
  const listener = resources[listenerType]?.find(({ name }) => name === 'virtualInbound')
  const text = Buffer.from(listener?.element ?? '', 'base64').toString('latin1')
  return { isPolicyHeld: text.includes('[deny]'), isHttp: text.includes('inbound_0.0.0.0_80'), hasForeignPort: text.includes('0.0.0.0_81') }
}

describe('inbound ports and labels of a workload', () => {
  it('follow from services of its own namespace only', () => {
    expect(inbound()).to.deep.equal({ isPolicyHeld: true, isHttp: true, hasForeignPort: false })
  })
})
