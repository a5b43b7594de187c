/** Agents replace the roots that they serve as soon as the control plane trusts others, through the real commands. */
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import type { AuthorityStatus } from '../../protocols/messages/authority-status.ts'
import { fingerprintOf } from '../../src/identity/pem.ts'
import { listenerType } from '../../src/xds/type-urls.ts'
import { Agent } from '../harness/agent.ts'
import { acknowledge } from '../harness/agent-secrets.ts'
import { delta, RelayClient, sotw } from '../harness/relay.ts'
import { SecretClient, sidecar } from '../harness/secret-client.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const names = ['default', 'ROOTCA']

/** A workload: its agent, and the streams that its proxy would have. */
class Workload {
  readonly agent: Agent
  readonly #isDelta: boolean
  #secrets: SecretClient | undefined
  #configuration: RelayClient | undefined

  constructor(isDelta: boolean, socket: string, port: number) {
    this.#isDelta = isDelta
    this.agent = new Agent({
      env: {
        CREDENTIAL_FETCHER_TYPE: 'meshd',
        MESHD_ADMIN_SOCKET: socket,
        POD_NAMESPACE: 'shop',
        SERVICE_ACCOUNT: 'web',
        TERMINATION_DRAIN_DURATION_SECONDS: '0',
      },
      proxyConfig: { discoveryAddress: `127.0.0.1:${port}` },
    })
  }

  async start(): Promise<void> {
    await this.agent.start()
    const secrets = new SecretClient(join(this.agent.dir, 'etc/mesh/proxy/SDS'))
    this.#secrets = secrets
    secrets.onResponse = () => acknowledge(secrets, names)
    secrets.send({ node: sidecar, resourceNames: names })
    await until('a certificate', () => secrets.last('default') !== undefined)
    this.#configuration = new RelayClient(join(this.agent.dir, 'etc/mesh/proxy/XDS'), { isDelta: this.#isDelta })
    const node = { id: 'sidecar~10.0.0.1~web.shop~shop.svc.cluster.local' }
    this.#configuration.send(this.#isDelta ? delta({ node, typeUrl: listenerType }) : sotw({ node, typeUrl: listenerType }))
    await until('its configuration', () => (this.#configuration?.messages.length ?? 0) > 0)
  }

  /** The roots that the agent serves, as fingerprints. */
  get roots(): string[] {
    return (this.#secrets?.last('ROOTCA')?.roots ?? '').split(/(?=-----BEGIN)/).map((pem) => fingerprintOf(pem))
  }

  get leaf(): X509Certificate {
    return new X509Certificate(this.#secrets?.last('default')?.chain ?? '')
  }

  async dispose(): Promise<void> {
    this.#configuration?.close()
    this.#secrets?.close()
    await this.agent.dispose()
  }
}

describe('the roots that agents serve', function () {
  // Each start of a command takes seconds on a busy machine.
  this.timeout(400_000)
  let service: Service
  let workloads: Workload[]

  before(async () => {
    const port = await freePort()
    service = new Service({ flags: ['--secureGRPCAddr', `127.0.0.1:${port}`] })
    await service.start()
    workloads = [false, true].map((isDelta) => new Workload(isDelta, service.env.MESHD_ADMIN_SOCKET as string, port))
    for (const workload of workloads) await workload.start()
  })
  after(async () => {
    for (const workload of workloads) await workload.dispose()
    await service.dispose()
  })

  const ca = (...args: string[]) => runCommand(['ca', ...args], service.env)
  const sent = async () =>
    (JSON.parse((await ca('show', '-o', 'json')).stdout) as AuthorityStatus).roots
      .filter(({ uses }) => uses.includes('sent to workloads'))
      .map(({ id }) => id)
  const served = (roots: readonly string[]) =>
    until(`${roots.length} roots at all agents`, () => workloads.every((each) => each.roots.toSorted().join() === roots.toSorted().join()))

  it('are those in answers of the authority, hours before a renewal, also when a root is distrusted; what it signed is renewed', async () => {
    const [old = ''] = await sent()
    const first = workloads.map(({ leaf }) => leaf.serialNumber)
    await served([old])
    await ca('rotate')
    expect(await sent()).to.have.length(2)
    await served(await sent())
    for (let stage = 1; stage < 3; stage++) await ca('rotate', '--force')
    expect(
      workloads.map(({ leaf }) => leaf.serialNumber),
      'certificates stay',
    ).to.deep.equal(first)

    const { stdout } = await ca('distrust', old)
    expect(stdout).to.include('as their agents are told')
    const [left = ''] = await sent()
    expect(await sent()).to.deep.equal([left])
    await served([left])
    await until('certificates of the other root', () => workloads.every(({ leaf }, index) => leaf.serialNumber !== first[index]))
    for (const { agent } of workloads) expect(agent.output).to.include('leads to none of the roots, so peers refuse it; renewal in ')
  })
})
