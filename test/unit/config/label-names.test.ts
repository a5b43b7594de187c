import { expect } from 'chai'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { madeOf } from '../../harness/made.ts'
import { names } from '../../harness/settings.ts'

const document = (group: string, kind: string, spec: string) =>
  `apiVersion: ${group}.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${kind.toLowerCase()}, namespace: ns}\nspec: ${spec}`

/** Documents with a mesh-owned label, in alias form, in every field that can name a label. */
const documents = [
  document('security', 'AuthorizationPolicy', '{selector: {matchLabels: {service.istio.io/canonical-name: app}}, action: DENY, rules: [{}]}'),
  document('security', 'RequestAuthentication', '{selector: {matchLabels: {istio.io/rev: a}}}'),
  document('security', 'PeerAuthentication', '{selector: {matchLabels: {istio.io/rev: a}}, mtls: {mode: STRICT}}'),
  document('networking', 'Gateway', '{selector: {istio.io/rev: a}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [a.example]}]}'),
  document('networking', 'Sidecar', '{workloadSelector: {labels: {istio.io/rev: a}}, egress: [{hosts: ["./*"]}]}'),
  document('networking', 'EnvoyFilter', '{workloadSelector: {labels: {istio.io/rev: a}}}'),
  document(
    'networking',
    'DestinationRule',
    '{host: a.example, subsets: [{name: v1, labels: {istio.io/rev: a}}], workloadSelector: {matchLabels: {istio.io/rev: a}}}',
  ),
  document(
    'networking',
    'ServiceEntry',
    '{hosts: [a.example], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.2, labels: {istio.io/rev: a}}]}',
  ),
  document('networking', 'WorkloadEntry', '{address: 10.0.0.3, labels: {istio.io/rev: a}}'),
  document('networking', 'WorkloadGroup', '{metadata: {labels: {istio.io/rev: a}}, template: {labels: {istio.io/rev: a}}}'),
  document(
    'networking',
    'VirtualService',
    '{hosts: [a.example], http: [{match: [{sourceLabels: {istio.io/rev: a}}], route: [{destination: {host: a.example}}]}]}',
  ),
]

describe('mesh-owned labels', () => {
  it('are converted to the mesh form in every field that names labels', () => {
    const { objects, faults } = parseConfigFile('f.yaml', documents.join('\n---\n'), names)
    expect(faults).to.deep.equal([])
    expect(objects.map(({ kind }) => kind)).to.have.length(documents.length)
    for (const { kind, spec } of objects) expect(JSON.stringify(spec), kind).to.include('mesh.io/').and.not.include('istio.io/')
  })

  it('select a workload whichever form workload and policy use, also for invalid policies', () => {
    const listeners = (form: string, spec: string) =>
      JSON.stringify(
        madeOf(
          `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ns}\nspec: {selector: {matchLabels: {service.${form}/canonical-name: app}}, ${spec}}`,
          {},
          { metadata: { LABELS: { 'service.istio.io/canonical-name': 'app' } } },
        ).resources['type.googleapis.com/envoy.config.listener.v3.Listener'],
      )
    const none = JSON.stringify(madeOf('', {}, {}).resources['type.googleapis.com/envoy.config.listener.v3.Listener'])
    for (const spec of ['action: DENY, rules: [{}]', 'action: DENY, rules: [{to: [{operation: {ports: ["x"]}}]}]']) {
      expect(listeners('istio.io', spec), spec).to.equal(listeners('mesh.io', spec))
      expect(listeners('istio.io', spec), spec).to.not.equal(none)
    }
  })
})
