/** A replica that starts while the API server of another cluster hangs, which replicas that run have (docs/operation.md, J5). */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const namespaces = ['mesh-system', 'registries', 'shop'].map((name) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}`)
const web = 'apiVersion: v1\nkind: Service\nmetadata: {name: only-far, namespace: shop}\nspec: {ports: [{name: http, port: 80}]}'

describe('a replica that cannot read a cluster at its start', function () {
  this.timeout(400_000)
  let near: TestCluster
  let far: TestCluster
  let kubeconfig: string
  let text: string
  const services: Service[] = []

  const start = async (env: Readonly<Record<string, string>> = {}, more: readonly string[] = []): Promise<Service> => {
    const flags = ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, '--configDir', '', '--writers', '1', ...more]
    const made = new Service({
      env: {
        ...{ ENABLE_DEBUG_ON_LOOPBACK: 'true', MESHD_CA_STATE_DIR: '', MESHD_REPLICA_ADDRESS: '127.0.0.1:0', PILOT_REMOTE_CLUSTER_TIMEOUT: '3s' },
        ...{ POD_NAME: `replica-${services.length}`, ...env },
      },
      flags,
    })
    services.push(made)
    return made
  }
  const ready = async (service: Service) => {
    const answer = await fetch(`http://127.0.0.1:${service.httpPort}/ready`).catch(() => undefined)
    return { status: answer?.status, text: (await answer?.text()) ?? '' }
  }
  const hasFar = async (service: Service) => JSON.stringify(await service.debug('registryz').catch(() => '')).includes('only-far.shop')
  /** Writes the remote secret: how the other cluster is reached. */
  const write = (text: string, namespace = 'mesh-system') => {
    const metadata = { name: 'remotes', namespace, labels: { 'mesh/multiCluster': 'true' } }
    near.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, data: { far: Buffer.from(text).toString('base64') } }))
  }
  const lacks = (why: string, who: string) =>
    new RegExp(
      `^this replica lacks clusters, since ${why}, and ${who}: this one is not ready before it has, for \\d+ s at most \\(MESHD_HELD_CLUSTER_TIMEOUT\\)$`,
      'm',
    )
  const waits =
    /^cluster far has not been read whole yet \(Secret mesh-system\/remotes\), and ready replicas have it: this one is not ready before it has, for \d+ s at most \(MESHD_HELD_CLUSTER_TIMEOUT\)$/m

  before(async () => {
    ;[near, far] = await Promise.all([TestCluster.start(), TestCluster.start()])
    for (const cluster of [near, far]) {
      cluster.stopControllers()
      cluster.apply(...namespaces)
    }
    far.apply(web)
    kubeconfig = near.roleConfig()
    text = readFileSync(far.roleConfig(), 'utf8')
    write(text)
    write(text, 'registries')
    const first = await start()
    await first.start()
    await until('the other cluster', () => hasFar(first))
    far.signalServer('SIGSTOP')
  })
  after(async () => {
    far?.signalServer('SIGCONT')
    for (const each of services) await each.dispose()
    await Promise.all([near?.dispose(), far?.dispose()])
  })

  it('is not ready while a ready one has it, says so, and is ready with it when that can be read again', async () => {
    const [first] = services as [Service]
    const second = await start()
    const started = second.start()
    await until('the body of /ready to name the cluster', async () => waits.test((await ready(second)).text))
    expect((await ready(second)).status).to.equal(503)
    await second.output.says(/warn\s+.*cluster far has not been read whole yet .*, and ready replicas have it/)
    // It is asked again whether they have it.
    const asked = performance.now()
    await until('further questions', () => performance.now() > asked + 12_000)
    expect((await ready(second)).status).to.equal(503)
    expect([(await ready(first)).status, await hasFar(first)]).to.deep.equal([200, true])
    far.signalServer('SIGCONT')
    await started
    expect(await hasFar(second)).to.equal(true)
    expect((await ready(second)).text).not.to.match(waits)
    expect(await second.metrics()).to.match(/^remote_cluster_sync_timeouts_total 0$/m)
    far.signalServer('SIGSTOP')
  })

  it('goes on without it after a bounded time, and counts that', async () => {
    const third = await start({ MESHD_HELD_CLUSTER_TIMEOUT: '8s' })
    await third.start()
    await third.output.says(
      /warn\s+.*the cluster far was not read whole within \d+ s \(MESHD_HELD_CLUSTER_TIMEOUT\): the service goes on without it until it is/,
    )
    expect(await hasFar(third)).to.equal(false)
    expect(await third.metrics()).to.match(/^remote_cluster_sync_timeouts_total 1$/m)
    await third.stop()
  })

  it('is not ready either where its role does not permit to read the Secret, the namespace of Secrets is another one, or the Secret cannot be used any more', async () => {
    const [first] = services as [Service]
    far.signalServer('SIGCONT')
    const forbidden = 'its role does not permit to read remote secrets'
    const held = ['ready replicas have far', 'ready replicas have the clusters far']
    const silent = ['replicas that have not answered may have some', 'replicas that have not answered may have other clusters']
    for (const { why, who, fail, mend, flags } of [
      // The role has the Secrets of the control plane, by which replicas know each other, and not those of another namespace.
      {
        ...{ why: forbidden, who: held, flags: ['--clusterRegistriesNamespace', 'registries'] },
        fail: () => near.forbid('secrets'),
        mend: () => near.roleConfig(),
      },
      {
        ...{ why: 'there is no remote secret in the namespace gone', who: held, flags: ['--clusterRegistriesNamespace', 'gone'] },
        fail: () => {},
        mend: () => {
          near.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: gone}')
          write(text, 'gone')
        },
      },
      {
        ...{ why: forbidden, who: silent, flags: [] },
        fail: () => [near.forbid('secrets'), near.forbid('secrets', 'Role')],
        mend: () => near.roleConfig(),
      },
      {
        ...{ why: 'the key of a remote secret cannot be used', who: held, flags: [] },
        fail: () => write('no configuration'),
        mend: () => write(text),
      },
    ]) {
      const [said = '', told = ''] = who
      fail()
      const late = await start({}, flags)
      const started = late.start()
      await until(`the body of /ready to say that ${why}`, async () => lacks(why, said).test((await ready(late)).text))
      // The others are asked again whether they have it.
      const asked = performance.now()
      await until('further questions', () => performance.now() > asked + 7000)
      expect([(await ready(late)).status, (await ready(first)).status, await hasFar(first)]).to.deep.equal([503, 200, true])
      const bounded = await start({ MESHD_HELD_CLUSTER_TIMEOUT: '8s' }, flags)
      await bounded.start()
      await bounded.output.says(
        new RegExp(`warn\\s+.*${told}, which this one cannot read, since ${why}: after 8 s .* the service goes on without them`),
      )
      expect(await hasFar(bounded)).to.equal(false)
      await bounded.stop()
      mend()
      await started
      await until('the other cluster', () => hasFar(late))
      expect((await ready(late)).text).not.to.match(lacks(why, said))
      await late.stop()
    }
    far.signalServer('SIGSTOP')
  })

  it('goes on without it when no ready one has it any more', async () => {
    const fourth = await start()
    const started = fourth.start()
    await until('the body of /ready to name the cluster', async () => waits.test((await ready(fourth)).text))
    for (const each of services.slice(0, 2)) await each.stop('SIGKILL')
    await started
    await fourth.output.says(
      /warn\s+.*the cluster far was not read whole within \d+ s \(PILOT_REMOTE_CLUSTER_TIMEOUT\): the service goes on without it/,
    )
    expect((await ready(fourth)).text).to.contain(
      'cluster far has not been read whole yet (Secret mesh-system/remotes); the service goes on without it',
    )
  })
})
