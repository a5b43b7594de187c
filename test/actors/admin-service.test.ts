/** `mesh.admin.v1.AdminService`: its answers over HTTP by Connect and gRPC-Web, over the gRPC port, and who gets them. */
import { create, type DescMessage, fromBinary, type MessageInitShape, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { Client, credentials, type ServiceError } from '@grpc/grpc-js'
import { expect } from 'chai'
import { adminService } from '../../actors/discovery/admin/admin-service.ts'
import { Explanations } from '../../actors/discovery/admin/explanations.ts'
import type { Viewer } from '../../actors/discovery/admin/page-access.ts'
import { PageSources } from '../../actors/discovery/admin/page-sources.ts'
import { PageServer } from '../../actors/http/page-server.ts'
import { freePort } from '../../bench/ports.ts'
import {
  AdminService,
  GetProxyConfigRequestSchema,
  GetProxyConfigResponseSchema,
  ListFaultsResponseSchema,
  ListProxiesRequestSchema,
  ListProxiesResponseSchema,
  PushAgainRequestSchema,
  PushAgainResponseSchema,
} from '../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { adminMethods, adminServiceName } from '../../protocols/messages/admin-call.ts'
import type { LogLevels } from '../../protocols/messages/log.ts'
import { settingsOf } from '../../src/cli/settings.ts'
import { status } from '../../src/model/status-codes.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { sendBytes } from '../harness/raw-http.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const objects = (namespace: string, address: string) => `
apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: entry, namespace: ${namespace}}
spec: {hosts: [${namespace}.example], exportTo: ["."], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: ${address}, labels: {app: a}}]}
---
apiVersion: security.mesh.io/v1
kind: AuthorizationPolicy
metadata: {name: policy, namespace: ${namespace}}
spec: {rules: [{to: [{operation: {paths: [/${namespace}]}}]}]}
`

describe('the admin service', () => {
  const discovery = new LocalDiscovery({ mode: 'in-thread' }, { PILOT_ENABLE_ANALYSIS: 'true' })
  const server = new PageServer()
  const clients: XdsClient[] = []
  const said: string[] = []
  let levels: LogLevels = { output: { fallback: 'info', scopes: {} }, stackTrace: { fallback: 'none', scopes: {} }, callers: [] }
  let [port, base] = [0, '']
  const viewers: Record<string, Viewer> = {
    own: { name: 'own', isOperator: false, mayAct: true, sees: (namespace) => namespace === 'own', isDeliberate: true },
    operator: { name: 'operator', isOperator: true, mayAct: true, sees: () => true, isDeliberate: true },
    local: { name: 'local', isOperator: true, mayAct: false, sees: () => true, isDeliberate: false },
  }
  /** Asks by Connect in JSON. Resolves with the answer, or code and message. */
  const ask = async (method: string, request: object = {}, viewer = 'operator', headers: Record<string, string> = {}) => {
    const answer = await fetch(`${base}/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-viewer': viewer, ...headers },
      body: JSON.stringify(request),
    })
    // biome-ignore lint/suspicious/noExplicitAny: JSON of any method
    return (await answer.json()) as any
  }

  before(async () => {
    const { supervisor, ready } = await discovery.start()
    await ready()
    discovery.write('a.yaml', `${objects('own', '10.0.0.1')}---${objects('foreign', '10.0.0.2')}`)
    for (const [namespace, address] of [
      ['own', '10.0.0.1'],
      ['foreign', '10.0.0.2'],
    ] as const)
      clients.push(await new XdsClient(discovery.grpcPort, sidecarNode(address, 'pod', namespace), true).connect().ready())
    const has = (client: XdsClient | undefined, host: string) => client?.resources.get(clusterType)?.has(`outbound|80||${host}`) ?? false
    await until('the objects to be in force', () => has(clients[0], 'own.example') && has(clients[1], 'foreign.example'))
    const parts = {
      sources: new PageSources(supervisor, true, new Explanations()),
      levels: { get: () => levels, set: async (next: LogLevels) => void (levels = next) },
      log: { info: (line: string) => said.push(line), error: (line: string) => said.push(line) } as never,
      domain: 'mesh.io',
      settings: () => settingsOf({ given: new Map([['grpcAddr', ':1']]), faults: [], logging: {} }, { JWT_RULE: 'secret' }),
    }
    server.addRpcs(
      adminService(parts, true, async ({ headers }) => viewers[String(headers['x-viewer'])] as Viewer),
      (path, error) => said.push(`${path} ${error}`),
    )
    port = await freePort()
    await server.listen('127.0.0.1', port)
    base = `http://127.0.0.1:${port}/${adminServiceName}`
  })
  after(async () => {
    for (const client of clients) client.close()
    await server.close()
    await discovery.dispose()
  })

  it('has the methods of its schema', () => {
    expect([...adminMethods].sort()).to.deep.equal(AdminService.methods.map(({ name }) => name).sort())
  })

  it('lists proxies with what was sent and acknowledged, and each caller those of its namespaces', async () => {
    const { proxies } = await ask('ListProxies')
    expect(proxies.map((each: { namespace: string }) => each.namespace).sort()).to.deep.equal(['foreign', 'own'])
    const [own] = (await ask('ListProxies', {}, 'own')).proxies
    expect(own).to.include({ namespace: 'own', delta: true, address: '127.0.0.1' })
    const clusters = own.types.find((type: { typeUrl: string }) => type.typeUrl === clusterType)
    expect(clusters.nonceAcked).to.equal(clusters.nonceSent)
    expect(clusters.current).to.equal(true)
    expect(await ask('ListProxies', { namespace: 'foreign' }, 'own')).to.include({ code: 'permission_denied' })
    expect((await ask('ListProxies', { proxy: 'pod.own' })).proxies).to.have.length(1)
    expect(await ask('ListProxies', { proxy: 'pod.foreign' }, 'own')).to.include({ code: 'not_found' })
  })

  it("shows a proxy's configuration by type and name, readable in JSON", async () => {
    const { nodeId, resources } = await ask('GetProxyConfig', { proxy: 'pod.own', typeUrls: [clusterType], names: ['outbound|80||own.example'] })
    expect(nodeId).to.contain('pod.own')
    expect(resources).to.have.length(1)
    expect(resources[0]).to.include({ name: 'outbound|80||own.example', typeUrl: clusterType })
    expect(resources[0].resource).to.include({ '@type': clusterType, name: 'outbound|80||own.example' })
    const whole = await ask('GetProxyConfig', { proxy: 'pod.own' })
    expect(whole.resources.filter(({ error }: { error?: string }) => error !== undefined)).to.deep.equal([])
    expect(await ask('GetProxyConfig', {})).to.deep.equal({ code: 'invalid_argument', message: 'proxy: a name is required' })
    expect(await ask('GetProxyConfig', { proxy: 'pod.foreign' }, 'own')).to.include({ code: 'not_found' })
  })

  it('explains which policy decides a request, with references to objects', async () => {
    const explain = (request: object) => ask('ExplainRequest', { proxy: 'pod.own', ...request })
    const named = { group: 'security.mesh.io', kind: 'AuthorizationPolicy', namespace: 'own', name: 'policy' }
    const policy = { ...named, source: 'files', place: 'a.yaml, document 2' }
    const allowed = await explain({ path: '/own', headers: [{ name: 'A', value: 'b' }] })
    expect([allowed.status, allowed.decidedBy, allowed.policy, allowed.rule]).to.deep.equal([200, 'AuthorizationPolicy', policy, 0])
    const denied = await explain({ path: '/other' })
    expect([denied.status, denied.considered[0].policy]).to.deep.equal([403, policy])
    expect(denied.considered[0].because).to.not.equal('')
    expect(await explain({ protocol: 'smtp' })).to.include({ code: 'invalid_argument' })
  })

  it('lists what analysis finds, from a level on, and each caller that of its namespaces', async () => {
    const route = (namespace: string) =>
      `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: lost, namespace: ${namespace}}\nspec: {hosts: [lost.${namespace}], http: [{route: [{destination: {host: gone.${namespace}}}]}]}\n`
    discovery.write('lost.yaml', `${route('own')}---\n${route('foreign')}`)
    const errors = async (viewer: string) =>
      ((await ask('ListFindings', { level: 'error' }, viewer)).findings ?? []) as { object: { namespace: string } }[]
    await until('the findings', async () => (await errors('operator')).length === 2)
    const [finding, ...others] = await errors('own')
    expect(others).to.deep.equal([])
    const object = { group: 'networking.mesh.io', kind: 'VirtualService', namespace: 'own', name: 'lost', place: 'lost.yaml, document 1' }
    expect(finding).to.deep.include({ code: 'IST0101', name: 'ReferencedResourceNotFound', level: 'error', object })
    expect(finding).to.include({ path: 'spec.http[0].route[0].destination.host' })
    expect((await ask('ListFindings', { namespace: 'foreign', level: 'error' })).findings).to.have.length(1)
    expect(await ask('ListFindings', { namespace: 'foreign' }, 'own')).to.include({ code: 'permission_denied' })
    expect(await ask('ListFindings', { level: 'bad' })).to.include({ code: 'invalid_argument' })
    discovery.remove('lost.yaml')
    await until('no finding', async () => (await errors('operator')).length === 0)
  })

  it('tells operators of faults, files, actors and scopes, and nobody else', async () => {
    discovery.write(
      'bad.yaml',
      'apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: bad, namespace: own}\nspec: {rules: 7}\n',
    )
    await until('the stand-in', async () => ((await ask('GetFiles')).standIns ?? []).length === 1)
    const [{ object, reason }] = (await ask('GetFiles')).standIns
    expect(object).to.include({ group: 'security.mesh.io', kind: 'AuthorizationPolicy', namespace: 'own', name: 'bad', source: 'files' })
    expect([object.place, reason]).to.satisfy(([place, why]: string[]) => place?.includes('bad.yaml') && why !== '')
    discovery.remove('bad.yaml')
    expect((await ask('ListActors')).actors.map(({ name }: { name: string }) => name)).to.include('push-queue')
    expect((await ask('ListClusters')).clusters ?? []).to.deep.equal([])
    expect(await ask('ListFaults')).to.not.have.property('code')
    expect((await ask('ListScopes')).scopes.map(({ name }: { name: string }) => name)).to.include('ads')
    const { settings } = await ask('ListSettings')
    const setting = (wanted: string) => settings.find(({ name }: { name: string }) => name === wanted)
    expect(setting('--grpcAddr')).to.include({ value: ':1', default: ':15010', origin: 'flag' })
    expect(setting('JWT_RULE')).to.include({ origin: 'environment' }).and.not.have.property('value')
    for (const method of ['ListFaults', 'GetFiles', 'ListActors', 'ListClusters', 'ListScopes', 'ListSettings', 'GetAuthority'])
      expect(await ask(method, {}, 'own'), method).to.include({ code: 'permission_denied' })
    expect(await ask('GetAuthority')).to.include({ code: 'not_found' })
  })

  it('changes levels, and refuses changes to those without a credential', async () => {
    const { scopes } = await ask('SetScope', { name: 'ads', outputLevel: 'debug' })
    expect(scopes.find(({ name }: { name: string }) => name === 'ads')).to.include({ outputLevel: 'debug', stackTraceLevel: 'none' })
    expect(levels.output.scopes).to.deep.equal({ ads: 'debug' })
    expect(said.at(-1)).to.equal('SetScope "ads" by operator')
    expect(await ask('SetScope', { name: 'ads', outputLevel: 'loud' })).to.include({ code: 'invalid_argument' })
    expect(await ask('PushAgain')).to.deep.equal({ proxies: 2 })
    for (const method of ['SetScope', 'PushAgain', 'DisconnectProxy', 'RotateRoot', 'DistrustRoot', 'TrustRoot', 'AcceptTime'])
      for (const viewer of ['local', 'own']) expect(await ask(method, {}, viewer), `${method} ${viewer}`).to.include({ code: 'permission_denied' })
    expect(await ask('DisconnectProxy', { proxy: 'no.such' })).to.include({ code: 'not_found' })
    expect(said.at(-1)).to.equal('DisconnectProxy "no.such" by operator')
    await ask('DistrustRoot', { id: '0123abcd', dryRun: true })
    expect(said.at(-1)).to.equal('DistrustRoot "0123abcd" (dry run) by operator')
    const victim = await new XdsClient(discovery.grpcPort, sidecarNode('10.0.0.3', 'victim', 'own'), true).connect().ready()
    await ask('DisconnectProxy', { proxy: 'victim.own' })
    await until('the end', () => victim.closed !== undefined)
  })

  it('is served by gRPC to programs of this machine, who may not change anything', async () => {
    const client = new Client(`127.0.0.1:${discovery.grpcPort}`, credentials.createInsecure())
    const call = <I extends DescMessage, O extends DescMessage>(name: string, input: I, output: O, value: MessageInitShape<I>) =>
      new Promise<MessageShape<O> | number>((resolve) =>
        client.makeUnaryRequest(
          `/${adminServiceName}/${name}`,
          (init: MessageInitShape<I>) => Buffer.from(toBinary(input, create(input, init))),
          (bytes: Buffer) => fromBinary(output, bytes),
          value,
          (error: ServiceError | null, answer) => resolve(error ? error.code : (answer as MessageShape<O>)),
        ),
      )
    try {
      const listed = await call('ListProxies', ListProxiesRequestSchema, ListProxiesResponseSchema, { proxy: 'pod.own' })
      expect(typeof listed === 'number' ? listed : listed.proxies.map(({ namespace }) => namespace)).to.deep.equal(['own'])
      const config = await call('GetProxyConfig', GetProxyConfigRequestSchema, GetProxyConfigResponseSchema, { proxy: 'pod.own' })
      expect(typeof config === 'number' ? config : config.resources.length).to.be.above(3)
      expect(await call('PushAgain', PushAgainRequestSchema, PushAgainResponseSchema, {})).to.equal(status.permissionDenied)
    } finally {
      client.close()
    }
  })

  it('is served by gRPC-Web', async () => {
    const answer = await fetch(`${base}/ListFaults`, {
      method: 'POST',
      headers: { 'content-type': 'application/grpc-web+proto', 'x-viewer': 'operator' },
      body: messageFrame(Buffer.alloc(0)),
    })
    const bytes = Buffer.from(await answer.arrayBuffer())
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/grpc-web+proto'])
    const length = bytes.readUInt32BE(1)
    expect(fromBinary(ListFaultsResponseSchema, bytes.subarray(5, 5 + length)).faults).to.be.an('array')
    expect(bytes.subarray(5 + length + 5).toString()).to.contain('grpc-status: 0')
  })

  it('no request ends the process, or is answered with more than its bounds', async () => {
    const path = `/${adminServiceName}/ListFaults`
    const head = (line: string, ...headers: string[]) => [
      [line, 'x-viewer: operator', 'content-type: application/json', 'content-length: 2', 'connection: close', ...headers].join('\r\n'),
    ]
    const send = async (lines: string[], body = '{}') => (await sendBytes('127.0.0.1', port, [`${lines.join('\r\n')}\r\n\r\n${body}`])).status
    for (const host of ['[', '', 'a b', '%', '://', 'x:99999999'])
      expect(await send(head(`POST ${path} HTTP/1.1`, `host: ${host}`)), host).to.equal(200)
    expect(await send(head(`POST ${path} HTTP/1.0`)), 'HTTP/1.0 without Host').to.equal(200)
    expect(await send(head(`POST http://[${path} HTTP/1.1`, 'host: a'))).to.be.oneOf([400, 404])
    expect(await ask('ListFaults', {}, 'operator', { 'content-encoding': 'gzip' })).to.include({ code: 'unimplemented' })
    expect(await ask('ListFaults', { unknown: 1 })).to.include({ code: 'invalid_argument' })
    expect(await ask('ListProxies', { proxy: 'x'.repeat(70_000) })).to.include({ code: 'resource_exhausted' })
    expect(await ask('ListFaults', {}, 'operator', { 'connect-timeout-ms': '-1' })).to.deep.equal({
      code: 'invalid_argument',
      message: 'the header connect-timeout-ms is invalid',
    })
    expect(await ask('ListFaults', {}, 'operator', { 'connect-timeout-ms': '9999999999' })).to.not.have.property('code')
    for (const [method, type] of [
      ['GET', 'application/json'],
      ['POST', 'text/plain'],
      ['POST', 'application/grpc'],
    ] as const) {
      const { status: code } = await fetch(`${base}/ListFaults`, {
        method,
        headers: { 'content-type': type, 'x-viewer': 'operator' },
        ...(method === 'POST' ? { body: '{}' } : {}),
      })
      expect(code, `${method} ${type}`).to.be.oneOf([405, 415, 200])
    }
    expect(await ask('ListFaults')).to.not.have.property('code')
  })
})
