/** The status of configuration objects in a real cluster, written by the leader alone (docs/status.md). */
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { manifest } from '../harness/cluster-mesh.ts'
import { aliasDefinition, establish, meshDefinitions } from '../harness/mesh-definitions.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

interface Condition {
  readonly type: string
  readonly status: string
  readonly message?: string
  readonly lastProbeTime?: string
  readonly lastTransitionTime?: string
}
interface Status {
  readonly observedGeneration?: number
  readonly conditions?: readonly Condition[]
}

const entry = (name: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: shop}\nspec: {hosts: [${name}.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.9.0.1}]}`
const route = (name: string, timeout: string, group = 'networking.mesh.io', host = 'a.test') =>
  `apiVersion: ${group}/v1\nkind: VirtualService\nmetadata: {name: ${name}, namespace: shop}\nspec: {hosts: [${host}], http: [{timeout: ${timeout}, route: [{destination: {host: ${host}}}]}]}`

describe('the status of objects of a cluster', function () {
  // A lease that nobody renews belongs to its holder for 30 s.
  this.timeout(400_000)
  let cluster: TestCluster
  let role: string
  const services: Service[] = []
  const clients: XdsClient[] = []

  const discovery = async (kubeconfig: string, env: Record<string, string> = {}): Promise<Service> => {
    const flags = [
      '--registries',
      'Orchestrator',
      '--orchconfig',
      kubeconfig,
      '--configDir',
      '',
      '--writers',
      '1',
      '--log_output_level',
      'status:debug',
    ]
    const made = new Service({ env: { PILOT_ENABLE_STATUS: 'true', ...env }, flags })
    services.push(made)
    await made.start()
    return made
  }
  const connect = async (to: Service, name: string, address: string): Promise<XdsClient> => {
    const client = new XdsClient(to.grpcPort, sidecarNode(address, name, 'shop'), clients.length % 2 === 0)
    clients.push(client.connect())
    return client.ready()
  }
  const object = (name: string, plural = 'virtualservices.networking.mesh.io') =>
    JSON.parse(cluster.kubectl(['get', plural, '-n', 'shop', name, '-o', 'json'])) as {
      metadata: { generation: number; resourceVersion: string }
      status?: Status
    }
  /** What the status of an object says: its generation, the value and the message of the condition. */
  const said = (name: string, plural?: string) => {
    const { status } = object(name, plural)
    const own = status?.conditions?.find(({ type }) => type === 'Reconciled')
    return `${status?.observedGeneration} ${own?.status} ${own?.message}`
  }
  const says = async (name: string, text: string, plural?: string) => {
    let last = ''
    await until(`the status of ${name} to be "${text}"`, () => {
      last = said(name, plural)
      return last === text
    }).catch((error: Error) => expect.fail(`${error.message}; it was "${last}"`))
  }
  const writes = async (of: Service, outcome = 'written') =>
    Number(new RegExp(`^pilot_status_writes_total\\{outcome="${outcome}"\\} (\\d+)$`, 'm').exec(await of.metrics())?.[1] ?? 0)
  const pushes = async (of: Service) => Number(/^pilot_xds_pushes\{type="rds"\} (\d+)$/m.exec(await of.metrics())?.[1] ?? 0)
  const leads = async (of: Service) => (await of.metrics()).includes('pilot_leader_election_leading{lease="mesh-status-leader"} 1')

  before(async () => {
    cluster = await TestCluster.start()
    cluster.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}')
    const definitions = meshDefinitions()
    const some = ['serviceentries', 'virtualservices', 'workloadentries'].map((plural) => definitions.get(plural) as string)
    establish(cluster, ...some, aliasDefinition(some[1] as string))
    role = cluster.roleConfig()
  })
  after(async () => {
    for (const client of clients) client.close()
    for (const each of services) await each.dispose()
    await cluster?.dispose()
  })

  it('needs a role of its own, and says so; with it, it counts the proxies that have acknowledged the object', async () => {
    const one = await discovery(role)
    await connect(one, 'takes', '10.1.0.1')
    cluster.apply(entry('a'), route('a', '1s'))
    await one.output.says('the role of this service account does not permit "patch" of "')
    cluster.apply(manifest('optional/status.yaml'))
    await says('a', '1 True 1/1 proxies up to date.')
    await says('a', '1 True 1/1 proxies up to date.', 'serviceentries.networking.mesh.io')
    const [condition] = object('a').status?.conditions ?? []
    expect(condition?.lastProbeTime).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    expect(condition?.lastTransitionTime).to.equal(condition?.lastProbeTime)
  })

  it('is false while a proxy does not answer or refuses, with the number of those that have it', async () => {
    const [one] = services as [Service]
    const slow = await connect(one, 'silent', '10.1.0.2')
    slow.silent = true
    cluster.apply(route('a', '2s'))
    await says('a', '2 False 1/2 proxies up to date.')
    cluster.waitFor('jsonpath={.status.observedGeneration}=2', '-n', 'shop', 'virtualservices.networking.mesh.io/a')
    slow.close()
    await says('a', '2 True 1/1 proxies up to date.')
    const refuses = await connect(one, 'refuses', '10.1.0.3')
    refuses.refuseAll = 'no such timeout'
    cluster.apply(route('a', '3s'))
    await says('a', '3 False 1/2 proxies up to date.')
    refuses.refuseAll = undefined
    cluster.apply(route('a', '4s'))
    await says('a', '4 True 2/2 proxies up to date.')
  })

  it('names what is wrong with a generation that is not in use', async () => {
    cluster.apply(route('a', '"soon"'))
    await until('the fault', () => /^5 False 0\/2 proxies up to date\. This generation is not in use: spec\.http/.test(said('a')))
    cluster.apply(route('a', '4s'))
    await says('a', '6 True 2/2 proxies up to date.')
  })

  it('keeps the conditions of others, in both spellings of the group, and causes no push', async () => {
    const [one] = services as [Service]
    cluster.apply(route('b', '1s', 'networking.istio.io'))
    const plural = 'virtualservices.networking.istio.io'
    await says('b', '1 True 2/2 proxies up to date.', plural)
    const [before, count] = [await pushes(one), await writes(one)]
    const other = [{ type: 'Other', status: 'Unknown', weight: 7 }]
    const patch = (value: object) =>
      cluster.kubectl(['patch', plural, '-n', 'shop', 'b', '--subresource=status', '--type=merge', '-p', JSON.stringify(value)])
    patch({ status: { conditions: other, custom: 'kept' } })
    await says('b', '1 True 2/2 proxies up to date.', plural)
    const { status } = object('b', plural)
    expect(status?.conditions?.[0]).to.deep.equal(other[0])
    expect(status).to.have.property('custom', 'kept')
    patch({ status: null })
    await says('b', '1 True 2/2 proxies up to date.', plural)
    patch({ status: { conditions: null, observedGeneration: null } })
    await says('b', '1 True 2/2 proxies up to date.', plural)
    // The answer comes after the write can be seen.
    await until('three writes', async () => (await writes(one)) === count + 3)
    expect(before).to.be.above(0)
    expect(await pushes(one)).to.equal(before)
  })

  it('is written by one of two processes; the next leader writes nothing again that is right, and goes on', async () => {
    const [one] = services as [Service]
    const other = await discovery(cluster.adminConfig)
    await connect(other, 'of-the-other', '10.1.0.4')
    expect([await leads(one), await leads(other)]).to.deep.equal([true, false])
    cluster.apply(route('a', '5s'))
    await says('a', '7 True 2/2 proxies up to date.')
    expect(await writes(other)).to.equal(0)
    const versions = () => [object('a'), object('b', 'virtualservices.networking.istio.io')].map(({ metadata }) => metadata.resourceVersion)
    const before = versions()
    await one.stop()
    await until('the other one to lead', () => leads(other))
    cluster.apply(route('c', '1s', 'networking.mesh.io', 'c.test'))
    await says('c', '1 True 1/1 proxies up to date.')
    // The new object may be seen before its proxy has answered: False, and then True.
    await until('the writes of the new one', async () => (await writes(other)) > 0)
    expect(await writes(other)).to.be.at.most(2)
    expect(versions()).to.deep.equal(before)
    expect(await writes(other, 'lost')).to.equal(0)
  })

  it('takes the configured rate under a storm of changes, and says of each object what is true in the end', async () => {
    const [perSecond, burst, count, edits] = [4, 3, 12, 5]
    const rate = { PILOT_STATUS_QPS: String(perSecond), PILOT_STATUS_BURST: String(burst) }
    for (const each of services) if (each.pid > 0) await each.stop()
    const one = await discovery(cluster.adminConfig, rate)
    await Promise.all(Array.from({ length: 20 }, (_, index) => connect(one, `p${index}`, `10.2.0.${index}`)))
    await until('it to lead', () => leads(one))
    const names = Array.from({ length: count }, (_, index) => `s${index}`)
    const before = await writes(one)
    const began = performance.now()
    for (let edit = 1; edit <= edits; edit++) cluster.apply(...names.map((name) => route(name, `${edit}s`, 'networking.mesh.io', `${name}.test`)))
    const all = () =>
      (
        JSON.parse(cluster.kubectl(['get', 'virtualservices.networking.mesh.io', '-n', 'shop', '-o', 'json'])) as {
          items: ReturnType<typeof object>[]
        }
      ).items
    const isTrue = ({ metadata: { generation }, status }: ReturnType<typeof object>) =>
      status?.observedGeneration === generation && status.conditions?.some(({ type, status: is }) => type === 'Reconciled' && is === 'True')
    await until('all to be true', () => all().length >= count && all().every(isTrue))
    const seconds = (performance.now() - began) / 1000
    expect(all().filter(({ metadata }) => metadata.generation === edits)).to.have.length(count)
    expect((await writes(one)) - before).to.be.within(count, burst + perSecond * seconds + 1)
    expect(await writes(one, 'failed')).to.equal(0)
  })
})
