import { expect } from 'chai'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { mesh, service, workload } from '../../harness/faulty-objects.ts'
import { testSettings } from '../../harness/settings.ts'

/** What is told of the ports and selectors of documents. */
function messages(...documents: string[]): string[] {
  const offline = new OfflineMesh(testSettings())
  offline.add('all.yaml', documents.join('\n---\n'))
  expect(offline.faults).to.deep.equal([])
  const analysis = new Analysis(offline.facts())
  analysis.refresh()
  return analysis.all().flatMap(({ code, path, message }) => (['IST0118', 'IST0116'].includes(code) ? [] : [`${code} ${path}: ${message}`]))
}

const deployment = (name: string, ports: string, labels = `{app: ${name}}`) =>
  workload('Deployment', `shop/${name}`, `labels: ${labels}`, `containers: [{name: app, image: app, ports: [${ports}]}]`)
const web = (ports: string, name = 'web') => service(`shop/${name}`, ports)
const peer = (port: number, selector = 'selector: {matchLabels: {app: web}}, ') =>
  mesh('PeerAuthentication', 'shop/p', `{${selector}portLevelMtls: {${port}: {mode: STRICT}}}`, '', 'security')
const admits = (ports: string) =>
  mesh('AuthorizationPolicy', 'shop/p', `{selector: {matchLabels: {app: web}}, rules: [{to: [{operation: {ports: [${ports}]}}]}]}`, '', 'security')

describe('the analysis of ports of workloads', () => {
  it('says what a Service leads to instead', () => {
    expect(messages(web('{port: 80, targetPort: 8081}'), deployment('web', '{containerPort: 8080}'))).to.deep.equal([
      'MESH0008 spec.ports[0].targetPort: no container of the selected workloads declares the port 8081, and no Service leads to 8080, which they declare: set targetPort to that, or declare 8081',
    ])
    expect(messages(web('{port: 80, targetPort: metircs}'), deployment('web', '{containerPort: 8080, name: metrics}'))).to.deep.equal([
      'IST0101 spec.ports[0].targetPort: no container of the selected workloads has a port named "metircs", so the port 80 has no endpoints: name one of theirs; did you mean "metrics"?',
    ])
    expect(messages(web('{port: 80}'), deployment('wbe', ''))).to.deep.equal([
      'IST0127 spec.selector: no workload of the namespace shop has the labels app=web, so it has no endpoints at present: correct the labels',
    ])
  })

  it('says which port of a workload is meant where a policy names that of a Service', () => {
    const pods = deployment('web', '{containerPort: 9090}, {containerPort: 8080}')
    const leads = web('{port: 80, targetPort: 8080}')
    expect(messages(leads, pods, peer(80))).to.deep.equal([
      'MESH0008 spec.portLevelMtls[80]: 80 is a port of the Service web, which leads to 8080 of the workloads, so its mode has no effect: policies name ports of workloads, so write 8080',
    ])
    expect(messages(leads, pods, peer(9091))).to.deep.equal([
      'MESH0008 spec.portLevelMtls[9091]: no container of the selected workloads declares the port 9091, and no Service leads to it, so its mode has no effect: use one of 8080, 9090, or declare it',
    ])
    expect(messages(leads, pods, peer(15020))).to.deep.equal([
      'MESH0008 spec.portLevelMtls[15020]: 15020 is a port of the sidecar itself, and connections to it pass no policy, so its mode has no effect: leave it out',
    ])
    expect(messages(leads, pods, admits('"80"'))).to.have.length(1)
    // That of a proxy that declares no ports, such as a gateway.
    const gateway = workload('Deployment', 'shop/web', 'labels: {app: web}', 'containers: [{name: istio-proxy, image: auto}]')
    expect(messages(leads, gateway, admits('"80", "8443"'))).to.have.length(1)
  })

  const right: Readonly<Record<string, readonly string[]>> = {
    'a container that declares no port': [web('{port: 80, targetPort: 8081}'), deployment('web', ''), peer(9999), admits('"8082"')],
    'a second port that is not declared': [
      web('{port: 80, targetPort: 8080}, {port: 81, targetPort: 8081}'),
      deployment('web', '{containerPort: 8080}'),
    ],
    'a port that another Service leads to': [
      web('{port: 80, targetPort: 8080}'),
      web('{port: 81, targetPort: 8081}', 'admin'),
      deployment('web', '{containerPort: 8080}'),
    ],
    'a port that only the sidecar declares': [
      web('{port: 80, targetPort: 8080}'),
      workload(
        'Deployment',
        'shop/web',
        'labels: {app: web}',
        'containers: [{name: app, image: app}, {name: mesh-proxy, image: p, ports: [{containerPort: 15090, name: http-envoy}]}]',
      ),
    ],
    'a name that one of several versions has': [
      web('{port: 80, targetPort: http}'),
      deployment('v1', '{containerPort: 8080, name: http}', '{app: web, version: v1}'),
      deployment('v2', '{containerPort: 8080, name: web}', '{app: web, version: v2}'),
    ],
    'a named port of an init container that goes on': [
      web('{port: 80, targetPort: http}'),
      workload(
        'Deployment',
        'shop/web',
        'labels: {app: web}',
        'containers: [{name: app, image: app}], initContainers: [{name: a, image: a, restartPolicy: Always, ports: [{containerPort: 8080, name: http}]}]',
      ),
    ],
    'workloads of which only labels are known': [
      web('{port: 80, targetPort: htp}'),
      mesh('WorkloadEntry', 'shop/vm', '{address: 10.0.0.1, labels: {app: web}}'),
      deployment('web', '{containerPort: 8080, name: http}'),
      peer(81),
      admits('"81"'),
    ],
    'workloads of a kind of an extension': [
      web('{port: 80, targetPort: 8080}'),
      deployment('other', ''),
      'apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: shop}\nspec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: app}]}}}',
    ],
    'a Service without a selector': [service('shop/web', '{port: 80, targetPort: 9}', '{}'), deployment('web', '{containerPort: 8080}')],
    'a namespace without known workloads': [web('{port: 80, targetPort: 8081}'), workload('Deployment', 'other/web', 'labels: {app: wbe}')],
    'a policy for all workloads of its namespace': [
      web('{port: 80, targetPort: 8080}'),
      deployment('web', '{containerPort: 8080}'),
      mesh('AuthorizationPolicy', 'shop/p', '{rules: [{to: [{operation: {ports: ["9"]}}]}]}', '', 'security'),
    ],
    'a policy whose port a Service leads to, though no container declares it': [
      web('{port: 80, targetPort: 8080}, {port: 81, targetPort: 8081}'),
      deployment('web', '{containerPort: 8080}'),
      peer(8081),
      admits('"8081"'),
    ],
    'a pod that has ended': [web('{port: 80, targetPort: htp}'), `${workload('Pod', 'shop/web', 'labels: {app: web}')}\nstatus: {phase: Succeeded}`],
  }
  for (const [name, documents] of Object.entries(right))
    it(`says nothing of ${name}`, () => {
      expect(messages(...documents)).to.deep.equal([])
    })
})
