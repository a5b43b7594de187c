import { expect } from 'chai'
import fc from 'fast-check'
import { clusterType, listenerType } from '../../src/xds/type-urls.ts'
import { anyDocuments, textOf } from '../harness/documents.ts'
import { runs, seed } from '../harness/seed.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const entry = (name: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: calm}\nspec: {hosts: [${name}.calm.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 8888, name: http}], endpoints: [{address: 10.9.0.1}]}\n`
/** Documents that once crashed an actor. */
const known = `apiVersion: networking.mesh.io/v1
kind: VirtualService
metadata: {name: nan, namespace: fuzz}
spec: {hosts: [a], http: [{timeout: {seconds: abc}, route: [{destination: {host: a}}]}]}
---
apiVersion: networking.mesh.io/v1
kind: Gateway
metadata: {name: portless, namespace: fuzz}
spec: {servers: [{hosts: [a]}]}
---
apiVersion: security.mesh.io/v1
kind: AuthorizationPolicy
metadata: {name: keyless, namespace: fuzz}
spec: {rules: [{when: [{values: [a]}]}]}
---
apiVersion: networking.mesh.io/v1
kind: Sidecar
metadata: {name: portless, namespace: fuzz}
spec: {ingress: [{bind: 1.2.3.4}]}
`
const pages = [
  'adsz',
  'syncz',
  'configz',
  'registryz',
  'endpointz',
  'endpointShardz',
  'cachez',
  'instancesz',
  'push_status',
  'mesh',
  'resourcesz',
  'authorizationz',
]

describe('unusual documents against the running service', () => {
  const service = new Service()
  const proxies: XdsClient[] = []
  const proxy = (address: string, name: string, namespace: string, metadata = {}, type = 'sidecar') => {
    const node = sidecarNode(address, name, namespace, metadata)
    const client = new XdsClient(service.grpcPort, { ...node, id: node.id.replace(/^sidecar/, type) }, proxies.length % 2 === 0)
    proxies.push(client)
    return client
  }
  before(async () => {
    service.write('good.yaml', entry('good'))
    await service.start()
  })
  after(async () => {
    for (const client of proxies) client.close()
    await service.dispose()
  })

  it('restart no actor, do not delay other changes, and leave no fault when they are removed', async () => {
    const good = await proxy('10.9.0.1', 'good', 'calm').connect().ready()
    proxy('10.1.0.1', 'own', 'fuzz', { INTERCEPTION_MODE: 'NONE' }).connect()
    proxy('10.1.0.2', 'gateway', 'fuzz', { LABELS: { app: 'v1' } }, 'router').connect()
    const documents = fc.sample(anyDocuments(3), { seed, numRuns: runs(240) }).map((document) => textOf(document, 'fuzz'))
    const batches = Array.from({ length: 12 }, (_, index) => documents.slice(index * 20, (index + 1) * 20))
    for (const [round, batch] of [[known], ...batches].entries()) {
      for (const [index, text] of batch.entries()) service.write(`odd-${index}.yaml`, text)
      const name = `round-${round}`
      service.write('change.yaml', entry(name))
      const what = `the change of round ${round}, seed ${seed}`
      await until(what, () => good.resources.get(clusterType)?.has(`outbound|8888||${name}.calm.svc.cluster.local`) ?? false)
      expect(good.closed, what).to.equal(undefined)
      for (const page of pages) await service.debug(page)
    }
    expect(good.resources.get(listenerType)?.has('0.0.0.0_8888')).to.equal(true)
    for (let index = 0; index < 20; index++) service.remove(`odd-${index}.yaml`)
    await until('the faults to be gone', async () => (await service.debug<{ faults: unknown[] }>('push_status')).faults.length === 0)
    const actors = await service.debug<{ name: string; restarts: number }[]>('actorsz')
    expect(actors.filter((actor) => actor.restarts > 0)).to.deep.equal([])
    await until('no invalid documents to be left', async () => /^pilot_config_documents_invalid 0$/m.test(await service.metrics()))
    service.output.lacks(/TypeError|RangeError|SyntaxError|cannot encode/)
  })
})
