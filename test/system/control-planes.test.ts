/** Two control planes, of which one reads the configuration objects of the other (`configSources`, `xds://`; docs/operation.md, F13). */
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { clusterType, routeType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

interface Shown {
  readonly kind: string
  readonly source: string
  readonly place: string
  readonly metadata: { readonly name: string; readonly annotations: Record<string, string> }
}

interface Files {
  readonly sources: readonly { readonly source: string; readonly files: number; readonly isComplete: boolean }[]
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[]
  readonly problems: readonly string[]
}

const route = (timeout: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: ns, annotations: {note: x}}\nspec: {hosts: [a.ns.svc.cluster.local], http: [{timeout: ${timeout}, route: [{destination: {host: a.ns.svc.cluster.local}}]}]}\n`

describe('two control planes', () => {
  const first = new Service()
  const second = new Service()
  const made = new ServingCertificates(first.authorityDir)
  const ports = { first: 0, second: 0 }
  const proxies: XdsClient[] = []
  const tlsSettings = (identity: string) => ({
    mode: 'MUTUAL',
    clientCertificate: made.file(`${identity}.pem`),
    privateKey: made.file(`${identity}-key.pem`),
    caCertificates: made.file('ca.pem'),
  })
  /** Has a control plane read from a port, as an identity. */
  const read = (service: Service, ...from: [port: number, identity: string][]) =>
    service.write(
      'mesh-config',
      JSON.stringify({ configSources: from.map(([port, identity]) => ({ address: `xds://localhost:${port}`, tlsSettings: tlsSettings(identity) })) }),
    )
  /** The objects in force, as `<name>=<source>`. */
  const objects = async (service: Service) =>
    (await service.debug<Shown[]>('configz')).map(({ metadata, source }) => `${metadata.name}=${source.slice(0, 5)}`).sort()
  const have = (what: string, service: Service, ...expected: string[]) =>
    until(what, async () => JSON.stringify(await objects(service)) === JSON.stringify(expected))
  const proxy = async (service: Service, delta: boolean) => {
    const client = await new XdsClient(service.grpcPort, sidecarNode('10.0.0.9', 'p', 'ns'), delta).connect().ready()
    proxies.push(client)
    return client
  }

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca', 1, 'subjectAltName=DNS:localhost')
    made.workload('root', 'ca', ['spiffe://cluster.local/ns/mesh-system/sa/meshd'])
    made.workload('shop', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    for (const [name, service] of [
      ['first', first],
      ['second', second],
    ] as const) {
      ports[name] = await freePort()
      service.flags.push('--secureGRPCAddr', `localhost:${ports[name]}`, '--writers', '1', ...made.servingFlags())
    }
    first.write('a.yaml', serviceEntry('a'))
    first.write('route.yaml', route('1.5s'))
    await first.start()
    // It waits for what the first one has.
    read(second, [ports.first, 'root'])
    await second.start()
  })
  after(async () => {
    for (const client of proxies) client.close()
    await Promise.all([first.dispose(), second.dispose()])
  })

  it('the second one serves its proxies what the first one has, and follows its changes', async () => {
    expect(await objects(second)).to.deep.equal(['a=xds:/', 'a=xds:/'])
    const [shown] = (await second.debug<Shown[]>('configz')).filter(({ kind }) => kind === 'VirtualService')
    expect(shown?.metadata.annotations).to.deep.equal({ note: 'x' })
    expect(shown?.place).to.match(new RegExp(`^xds://localhost:${ports.first}, version `))
    const client = await proxy(second, true)
    expect([...(client.resources.get(clusterType)?.keys() ?? [])]).to.include('outbound|80||a.ns.svc.cluster.local')
    const routes = client.resources.get(routeType)?.get('80')
    first.write('route.yaml', route('7s'))
    await until(
      'the changed route',
      () =>
        client.resources
          .get(routeType)
          ?.get('80')
          ?.equals(routes as Buffer) === false,
    )
    first.write('b.yaml', serviceEntry('b'))
    await until('the added service', () => client.resources.get(clusterType)?.has('outbound|80||b.ns.svc.cluster.local') === true)
    first.remove('b.yaml')
    await until('its removal', () => client.resources.get(clusterType)?.has('outbound|80||b.ns.svc.cluster.local') === false)
    const { sources } = await second.debug<Files>('filez')
    expect(sources.find(({ source }) => source.startsWith('xds:'))).to.deep.include({ files: 2, isComplete: true })
    expect(await second.metrics()).to.include(`pilot_config_source_complete{source="xds://localhost:${ports.first}"} 1`)
  })

  it('while the first one is away, what it had stays; what it removed meanwhile goes when it is back', async () => {
    const client = await proxy(second, false)
    await first.stop('SIGKILL')
    await until('that it is said', async () => (await second.debug<Files>('filez')).unreadable.some(({ path }) => path.startsWith('xds:')))
    expect(await objects(second)).to.deep.equal(['a=xds:/', 'a=xds:/'])
    expect(await (await fetch(`http://127.0.0.1:${second.httpPort}/ready`)).text()).to.match(/xds:\/\/localhost:\d+ cannot be read/)
    second.write('own.yaml', serviceEntry('own'))
    await until('its own change', () => client.resources.get(clusterType)?.has('outbound|80||own.ns.svc.cluster.local') === true)
    first.remove('route.yaml')
    first.write('late.yaml', serviceEntry('late'))
    await first.start()
    await have('the state of the first one', second, 'a=xds:/', 'late=xds:/', 'own=files')
    expect(client.closed).to.equal(undefined)
    first.remove('late.yaml')
    second.remove('own.yaml')
    await have('what is left', second, 'a=xds:/')
  })

  it('a policy that is not valid denies at the second one, too, and is named there', async () => {
    first.write('a.yaml', `${serviceEntry('a')}---\n${route('3s')}`)
    await have('the change', second, 'a=xds:/', 'a=xds:/')
    const policy = (rules: string) =>
      `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ns}\nspec: {action: DENY, rules: ${rules}}\n`
    first.write('policy.yaml', policy('7'))
    await until('the stand-in', async () =>
      (await second.debug<Files>('filez')).problems.some((line) => line.startsWith('AuthorizationPolicy/ns/p of xds:')),
    )
    first.write('policy.yaml', policy('[{from: [{source: {namespaces: [x]}}]}]'))
    await until('the policy', async () => (await second.debug<Files>('filez')).problems.length === 0)
    await have('all', second, 'a=xds:/', 'a=xds:/', 'p=xds:/')
    first.remove('policy.yaml')
    await have('all but the policy', second, 'a=xds:/', 'a=xds:/')
  })

  it('two that read from each other return nothing: what one removes is gone at both', async () => {
    first.remove('route.yaml')
    first.write('a.yaml', `${serviceEntry('a')}---\n${route('3s')}`)
    second.write('mine.yaml', serviceEntry('mine'))
    read(first, [ports.second, 'root'])
    await have('both', first, 'a=files', 'a=files', 'mine=xds:/')
    await have('both at the second', second, 'a=xds:/', 'a=xds:/', 'mine=files')
    // Both define it alike, and then neither does.
    second.write('a.yaml', serviceEntry('a'))
    await have('its own', second, 'a=files', 'a=xds:/', 'mine=files')
    first.remove('a.yaml')
    await have('that of the second', first, 'a=xds:/', 'mine=xds:/')
    second.remove('a.yaml')
    await have('no echo at the first', first, 'mine=xds:/')
    await have('no echo at the second', second, 'mine=files')
    first.write('a.yaml', `${serviceEntry('a')}---\n${route('3s')}`)
    await have('that it goes on', second, 'a=xds:/', 'a=xds:/', 'mine=files')
  })

  it('an identity of another namespace is refused, and keeps the last state', async () => {
    read(second, [ports.first, 'shop'])
    await until('the refusal', async () =>
      (await second.debug<Files>('filez')).unreadable.some(({ reason }) => /may not read configuration objects/.test(reason)),
    )
    expect((await second.debug<Files>('filez')).unreadable[0]?.reason).to.match(
      /gRPC status 7: spiffe:\/\/cluster.local\/ns\/shop\/sa\/cart may not read/,
    )
    expect(await objects(second)).to.deep.equal(['a=xds:/', 'a=xds:/', 'mine=files'])
    await first.output.says(/configuration objects refused to 127\.0\.0\.1/)
    read(second)
    await have('the end of the source', second, 'mine=files')
    read(second, [ports.first, 'root'])
    await have('the source again', second, 'a=xds:/', 'a=xds:/', 'mine=files')
  })
})
