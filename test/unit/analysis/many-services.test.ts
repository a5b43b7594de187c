/** The gateway of a network is analyzed beside as many services as a large cluster has (docs/analysis.md, Y32). */
import { expect } from 'chai'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { mesh, service, workload } from '../../harness/faulty-objects.ts'
import { testSettings } from '../../harness/settings.ts'

describe('the analysis of the gateway of a network beside 10,000 services', () => {
  it('counts those that it does not pass on, each with its workloads', function () {
    this.timeout(300_000)
    const offline = new OfflineMesh(testSettings())
    const documents = [
      'apiVersion: v1\nkind: Secret\nmetadata: {name: remotes, namespace: mesh-system, labels: {mesh/multiCluster: "true"}}\nstringData: {west: ""}',
      service(
        'edge/eastwest',
        '{name: tls, port: 15443}',
        '{app: eastwest}, externalIPs: [192.0.2.1]',
        ', labels: {topology.mesh.io/network: first}',
      ),
      workload('Pod', 'edge/eastwest', 'labels: {app: eastwest}'),
      mesh(
        'Gateway',
        'edge/passing',
        '{selector: {app: eastwest}, servers: [{port: {number: 15443, name: tls, protocol: TLS}, hosts: ["bank/*"], tls: {mode: AUTO_PASSTHROUGH}}]}',
      ),
    ]
    for (let at = 0; at < 10_000; at++) {
      documents.push(service(`n${at % 100}/s${at}`, '{name: http, port: 80}', `{app: a${at}}`))
      if (at % 2 === 0) documents.push(workload('Pod', `n${at % 100}/p${at}`, `labels: {app: a${at}}`))
    }
    for (const [at, document] of documents.entries()) offline.add(`${at}.yaml`, document)
    const analysis = new Analysis(offline.facts())
    analysis.refresh()
    const told = analysis.of('Service/edge/eastwest').flatMap(({ code, message }) => (code === 'MESH0008' ? [] : [`${code}: ${message}`]))
    expect(told).to.have.length(1)
    expect(told[0]).to.match(/^MESH0016: the gateway of the network first does not pass .* and 4995 more on, /)
  })
})
