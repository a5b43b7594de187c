/** Why a proxy has a resource: asked by JSON, by gRPC and on a page, by operators and by callers of one namespace. */
import { expect } from 'chai'
import { adminService } from '../../actors/discovery/admin/admin-service.ts'
import { Explanations } from '../../actors/discovery/admin/explanations.ts'
import type { Viewer } from '../../actors/discovery/admin/page-access.ts'
import { PageSources } from '../../actors/discovery/admin/page-sources.ts'
import { PageServer } from '../../actors/http/page-server.ts'
import { freePort } from '../../bench/ports.ts'
import { adminServiceName } from '../../protocols/messages/admin-call.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { describedRequest } from '../harness/described-request.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const objects = `
apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: a, namespace: own}
spec: {hosts: [a.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}
---
apiVersion: networking.mesh.io/v1
kind: DestinationRule
metadata: {name: rule, namespace: own}
spec: {host: a.example, trafficPolicy: {connectionPool: {tcp: {maxConnections: 3}}}}
---
apiVersion: networking.mesh.io/v1
kind: DestinationRule
metadata: {name: secret, namespace: foreign}
spec: {host: a.example, exportTo: ["."]}
`
const name = 'outbound|80||a.example'

/** The answer of `ExplainResource` in JSON. */
interface Answer {
  readonly code?: string
  readonly message?: string
  readonly exists?: boolean
  readonly isComplete?: boolean
  readonly hidden?: number
  readonly objects?: readonly {
    readonly object: { readonly kind: string; readonly name: string; readonly place: string }
    readonly without: string
    readonly reason?: string
  }[]
}

describe('explanations of resources', () => {
  const discovery = new LocalDiscovery({ mode: 'threads' })
  const explanations = new Explanations()
  const server = new PageServer()
  let client: XdsClient | undefined
  let base = ''
  const viewers: Record<string, Viewer> = {
    own: { name: 'own', isOperator: false, mayAct: true, sees: (namespace) => namespace === 'own', isDeliberate: true },
    operator: { name: 'operator', isOperator: true, mayAct: true, sees: () => true, isDeliberate: true },
  }
  const ask = async (request: object, viewer = 'operator'): Promise<Answer> => {
    const answer = await fetch(`${base}/ExplainResource`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-viewer': viewer },
      body: JSON.stringify(request),
    })
    const said = (await answer.json()) as Answer
    // The thread that explains starts slowly on a busy machine.
    return said.message?.endsWith(': ask again') ? ask(request, viewer) : said
  }
  const said = ({ objects: told = [] }: Answer) => Object.fromEntries(told.map(({ object, without }) => [`${object.kind} ${object.name}`, without]))

  before(async () => {
    discovery.write('a.yaml', objects)
    const { supervisor, ready } = await discovery.start({ registries: ['Mock'] })
    await ready()
    client = await new XdsClient(discovery.grpcPort, sidecarNode('10.0.9.1', 'pod', 'own'), true).connect().ready()
    const log = { info: () => undefined, error: () => undefined } as never
    const levels = { get: () => ({}), set: async () => undefined } as never
    const parts = {
      sources: new PageSources(supervisor, true, explanations),
      levels,
      settings: async () => ({ settings: [], misspelt: [] }),
      log,
      domain: 'mesh.io',
    }
    server.addRpcs(
      adminService(parts, true, async ({ headers }) => viewers[String(headers['x-viewer'])] as Viewer),
      () => undefined,
    )
    const port = await freePort()
    await server.listen('127.0.0.1', port)
    base = `http://127.0.0.1:${port}/${adminServiceName}`
  })
  after(async () => {
    client?.close()
    await server.close()
    await explanations.close()
    await discovery.dispose()
  })

  it('that take too long say so, where the thread says that it was aborted', async () => {
    const hasty = new Explanations(1)
    const said = await hasty.explain({} as never).then(String, ({ message }: Error) => message)
    await hasty.close()
    expect(said).to.equal('the explanation took longer than 0.001 s: ask again')
  })

  it('find the thread started that others did not wait for: one that was given up starts all the same', async () => {
    const hasty = new Explanations(25)
    const request = { ...describedRequest, scheme: 'http' as const, host: 'a.example', destinationPort: 80 }
    const asked = () =>
      hasty.route({ request, namespace: 'ns', domain: 'cluster.local', isGateway: false, envoy: undefined, missingSecrets: [], resources: {} }).then(
        ({ status }) => String(status),
        ({ message }: Error) => message,
      )
    expect(await asked()).to.equal('the explanation took longer than 0.025 s: ask again')
    await until('the thread', async () => (await asked()) === '0')
    await hasty.close()
  })

  it('name the objects that made a resource, and those that were left out, with their places', async () => {
    const answer = await ask({ proxy: 'pod.own', type: 'cds', name })
    expect([answer.exists, answer.isComplete]).to.deep.equal([true, true])
    expect(said(answer)).to.deep.equal({ 'ServiceEntry a': 'removed', 'DestinationRule rule': 'changed', 'DestinationRule secret': 'same' })
    expect(answer.objects?.[0]?.object.place).to.contain('a.yaml')
    expect(answer.objects?.at(-1)?.reason).to.contain('exportTo')
    expect(await ask({ proxy: 'pod.own', type: clusterType, name })).to.deep.equal(answer)
    const mock = [...(client?.resources.get(clusterType)?.keys() ?? [])].find((each) => each.includes('mock-0.mock-0'))
    expect(said(await ask({ proxy: 'pod.own', type: 'cds', name: mock })), 'a service of a registry').to.deep.equal({
      'Service mock-0.mock-0.svc.cluster.local': 'removed',
    })
  })

  it('keep objects of other namespaces from callers of one, and count them', async () => {
    const answer = await ask({ proxy: 'pod.own', type: 'cds', name }, 'own')
    expect(said(answer)).to.deep.equal({ 'ServiceEntry a': 'removed', 'DestinationRule rule': 'changed' })
    expect(answer.hidden).to.equal(1)
  })

  it('say why a proxy has no such resource', async () => {
    discovery.write(
      'sidecar.yaml',
      'apiVersion: networking.mesh.io/v1\nkind: Sidecar\nmetadata: {name: narrow, namespace: own}\nspec: {egress: [{hosts: ["mock-0/*"]}]}\n',
    )
    await until('the cluster to be gone', () => client?.resources.get(clusterType)?.has(name) === false)
    const answer = await ask({ proxy: 'pod.own', type: 'cds', name })
    expect(answer.exists ?? false).to.equal(false)
    expect(said(answer)).to.include({ 'Sidecar narrow': 'added', 'ServiceEntry a': 'same' })
    discovery.remove('sidecar.yaml')
    await until('the cluster to be back', () => client?.resources.get(clusterType)?.has(name) === true)
  })

  it('are on a page too', async () => {
    const path = `explain?proxyID=pod.own&type=cds&name=${encodeURIComponent(name)}`
    const told: string[] = []
    await until('the page', async () => {
      const { objects } = await discovery.debug<{ objects: { key: string; without: string }[] }>(path)
      return told.push(...objects.map(({ key, without }) => `${key} ${without}`)) > 0
    })
    expect(told).to.include('ServiceEntry/own/a removed')
  })

  it('refuse what they cannot answer', async () => {
    expect(await ask({ proxy: 'pod.own', type: 'sds', name })).to.deep.equal({
      code: 'invalid_argument',
      message: 'type: "sds" is none of cds, eds, lds, rds, vhds and their type URLs',
    })
    expect(await ask({ proxy: 'pod.own', type: 'cds' })).to.include({ code: 'invalid_argument' })
    expect(await ask({ type: 'cds', name })).to.include({ code: 'invalid_argument' })
    expect(await ask({ proxy: 'no.such', type: 'cds', name })).to.include({ code: 'not_found' })
  })
})
