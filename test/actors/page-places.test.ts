/** Debug pages name the objects that they tell of with their places. */
import { expect } from 'chai'
import { LocalDiscovery } from '../harness/discovery.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

interface Reference {
  readonly kind: string
  readonly name: string
  readonly source: string
  readonly place: string
}

describe('the pages about listeners and Sidecars', () => {
  const control = new LocalDiscovery({ mode: 'in-thread' }, { PILOT_MOCK_SERVICES: '0' })
  let client: XdsClient
  const document = (kind: string, name: string, namespace: string, spec: string) =>
    `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n`
  const entry = (name: string, protocol: string) =>
    document(
      'ServiceEntry',
      name,
      'shop',
      `{hosts: [${name}.test], resolution: STATIC, ports: [{number: 81, name: p, protocol: ${protocol}}], endpoints: [{address: 10.1.1.1}]}`,
    )
  const route = (name: string, namespace: string) =>
    document('VirtualService', name, namespace, `{hosts: [one.test], http: [{route: [{destination: {host: one.test}}]}]}`)

  before(async () => {
    control.write('entries.yaml', [entry('one', 'HTTP'), entry('two', 'MONGO')].join('---\n'))
    control.write('shop.yaml', [document('Sidecar', 'all', 'shop', '{egress: [{hosts: ["*/*"]}]}'), route('own', 'shop')].join('---\n'))
    await control.start()
    await until('the service to be ready', async () => (await control.ready()).status === 200)
    client = await new XdsClient(control.grpcPort, sidecarNode('10.2.0.1', 'web', 'shop'), false).connect().ready()
  })
  after(async () => {
    client.close()
    await control.dispose()
  })
  const placeOf = ({ kind, name, source, place }: Reference) => [kind, name, source, place]

  it('name the service that loses a listener with its object and place', async () => {
    const { listenerConflicts } = await control.debug<{ listenerConflicts: { object: string; reference: Reference }[] }>('push_status')
    expect(listenerConflicts.map(({ object, reference }) => [object, ...placeOf(reference)])).to.deep.include([
      'ServiceEntry/shop/two',
      ...['ServiceEntry', 'two', 'files', 'entries.yaml, document 2'],
    ])
  })

  it('name the Sidecar and the VirtualServices of its namespace with their places', async () => {
    const page = await control.debug<{ sidecar: string; references: Record<string, Reference> }>('sidecarz?proxyID=web.shop')
    expect(page.sidecar).to.equal('Sidecar/shop/all')
    expect(Object.entries(page.references).map(([key, reference]) => [key, ...placeOf(reference)])).to.deep.equal([
      ['Sidecar/shop/all', 'Sidecar', 'all', 'files', 'shop.yaml, document 1'],
      ['VirtualService/shop/own', 'VirtualService', 'own', 'files', 'shop.yaml, document 2'],
    ])
  })
})
