import { expect } from 'chai'
import { keptSecrets } from '../../actors/discovery/own-keys/process-secrets.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { restartPolicy } from '../../actors/runtime/restarts.ts'
import { Supervisor } from '../../actors/runtime/supervisor.ts'
import type { ConfigObject, ObjectReference } from '../../protocols/data.ts'
import { readFeatures } from '../../src/config/features.ts'
import { until } from '../harness/until.ts'
import type { ConfigSourceConfig } from './parts/config-source.ts'

const off = { fallback: 'none', scopes: {} } as const
const { features } = readFeatures({})

/** A Gateway of a source on a port. */
const gateway = (source: string, port: number, name = 'shared'): ConfigObject => ({
  group: 'networking.mesh.io',
  kind: 'Gateway',
  version: 'v1',
  namespace: 'edge',
  name,
  labels: {},
  annotations: {},
  createdAt: 0,
  generation: 1,
  source,
  cluster: `${source}-cluster`,
  uid: `uid-of-${source}`,
  resourceVersion: String(port),
  place: `cluster ${source}-cluster, resource version ${port}`,
  spec: { servers: [{ port: { number: port, protocol: 'HTTP', name: 'http' }, hosts: ['*'] }] },
})

interface ShownObject {
  readonly kind: string
  readonly source: string
  readonly metadata: { readonly name: string }
  readonly spec: { readonly servers: readonly { readonly port: { readonly number: number } }[] }
}
interface ShownFault {
  readonly type: string
  readonly reason: string
  readonly references: readonly ObjectReference[]
}

describe('sources that define the same object', () => {
  const key = 'Gateway/edge/shared'
  const log = createLogger({ output: off, stackTrace: off, callers: [] }, () => {})
  let supervisor: Supervisor
  const start = (name: string, config: ConfigSourceConfig) =>
    supervisor.start({ name, module: new URL('parts/config-source.ts', import.meta.url), config }, ['push-queue'])
  const held = async () =>
    (await supervisor.ask<{ readonly rows: readonly ShownObject[] }>('push-queue', 'configs')).rows
      .map(({ source, metadata, spec }) => `${metadata.name} ${source} ${spec.servers[0]?.port.number}`)
      .sort()
  const faults = () => supervisor.ask<ShownFault[]>('push-queue', 'faults')
  const holds = (what: string, ...objects: string[]) => until(what, async () => (await held()).join() === objects.join())

  beforeEach(async () => {
    // A source that dies is not started again within the test.
    const policy = { ...restartPolicy, firstMs: 3_600_000, longestMs: 3_600_000 }
    supervisor = new Supervisor({
      mode: 'threads',
      log,
      logOptions: { output: off, stackTrace: off, callers: [] },
      logged: () => {},
      answers: {},
      policy,
    })
    supervisor.start({
      name: 'push-queue',
      module: new URL('../../actors/discovery/push-queue/push-queue.ts', import.meta.url),
      config: {
        features,
        secrets: keptSecrets('').secrets,
        trustDomain: '',
        domain: 'cluster.local',
        plugins: [],
        sources: ['source/one', 'source/two'],
      },
    })
    start('source/two', { objects: [gateway('two', 82), gateway('two', 92, 'two')] })
    start('source/one', { objects: [gateway('one', 81), gateway('one', 91, 'one')] })
    await holds('that of the first source in order', 'one one 91', 'shared one 81', 'two two 92')
  })
  afterEach(() => supervisor.drain([], 1000))

  it('have the first in the configured order count, and the other is told with both places', async () => {
    const [fault, ...more] = await faults()
    expect(more).to.deep.equal([])
    expect(fault?.reason).to.equal(
      'defined in cluster one-cluster, resource version 81 of one, and again in cluster two-cluster, resource version 82 of two',
    )
    expect(fault?.references).to.deep.equal([
      {
        ...{ group: 'networking.mesh.io', kind: 'Gateway', namespace: 'edge', name: 'shared', source: 'one', cluster: 'one-cluster' },
        ...{ uid: 'uid-of-one', version: '81', place: 'cluster one-cluster, resource version 81' },
      },
    ])
  })

  it('lose only their own definition: by withdrawal, by the end of an actor, not by its death', async () => {
    await supervisor.ask('source/one', 'remove', key)
    await holds('that of the second', 'one one 91', 'shared two 82', 'two two 92')
    expect(await faults()).to.deep.equal([])
    await supervisor.ask('source/one', 'set', gateway('one', 83))
    await holds('that of the first again', 'one one 91', 'shared one 83', 'two two 92')
    await supervisor.ask('source/two', 'remove', key)
    await until('one definition', async () => (await faults()).length === 0)
    expect(await held()).to.include('shared one 83')
    await supervisor.ask('source/two', 'set', gateway('two', 84))
    await until('two definitions', async () => (await faults()).length === 1)
    supervisor.kill('source/one')
    await until('its death', () => supervisor.states().some(({ name, state }) => name === 'source/one' && state === 'restarting'))
    expect(await held()).to.deep.equal(['one one 91', 'shared one 83', 'two two 92'])
    await supervisor.stop('source/one', 1000)
    await holds('those of the second', 'shared two 84', 'two two 92')
    start('source/one', { objects: [gateway('one', 85)] })
    await holds('that of the first once more', 'shared one 85', 'two two 92')
  })

  it('keep the last good state of the one that counts while it cannot be used', async () => {
    await supervisor.ask('source/one', 'spoil', key)
    await supervisor.ask('source/two', 'set', gateway('two', 86))
    await until('the new definition of the second', async () => (await faults()).some(({ reason }) => reason.includes('resource version 86')))
    expect(await held()).to.include('shared one 81')
  })
}).timeout(120_000)
