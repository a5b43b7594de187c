/** How other clusters are followed, without clusters: what a Secret that changes all the time, and a server that answers too much, can cost (docs/operation.md, J1, J7). */
import { expect } from 'chai'
import { stringify } from 'yaml'
import type { ApiSession } from '../../../actors/discovery/cluster/api-session.ts'
import { type ApiFailure, type ClusterApi, ClusterCalls } from '../../../actors/discovery/cluster/cluster-api.ts'
import { clusterUid } from '../../../actors/discovery/cluster/cluster-uid.ts'
import type { ResourceEvents } from '../../../actors/discovery/cluster/followed-resource.ts'
import { RemoteClusters } from '../../../actors/discovery/cluster/remote-clusters.ts'
import { clusterReviews, remoteReviewBytes, reviewMetrics } from '../../../actors/discovery/cluster/token-reviews.ts'
import type { Logger } from '../../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../../actors/runtime/metrics.ts'
import type { Supervisor } from '../../../actors/runtime/supervisor.ts'
import type { LateActor } from '../../../actors/runtime/wiring.ts'
import type { RemoteSecret } from '../../../src/orchestrator/remote-secrets.ts'
import { rootOf } from '../../harness/authorities.ts'
import { until } from '../../harness/until.ts'

const kubeconfig = (server: string) =>
  stringify({
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user: { token: 'a' } }],
  })

/** Clusters that follow from the events of one Secret, and what they log. */
function following(turnMs = Number.POSITIVE_INFINITY, uidOf: () => Promise<string | undefined> = async () => undefined) {
  const events: ResourceEvents<RemoteSecret>[] = []
  const lines: string[] = []
  const started: string[] = []
  const stopped: string[] = []
  const restarted: string[] = []
  /** What was asked of actors. */
  const told: string[] = []
  const api = {
    followed(_: unknown, each: ResourceEvents<RemoteSecret>) {
      events.push(each)
      return { start() {}, close() {} }
    },
  }
  const say = (line: string) => void lines.push(line)
  const metrics = new MetricRegistry()
  const clusters = new RemoteClusters({
    ...{ namespace: 'mesh-system', own: 'own', api: api as unknown as ClusterApi, timeoutMs: 30_000, heldMs: 0, auditMs: 0, turnMs, uidOf },
    ...{ settings: { perSecond: 10, burst: 10, userAgent: 'test' }, metrics, reviewMetrics: reviewMetrics(metrics) },
    log: (() => ({ debug: say, info: say, warn: say, error: say })) as unknown as Logger,
  })
  const supervisor = {
    changed: () => new Promise(() => {}),
    states: () => [],
    start: ({ name }: { name: string }) => started.push(name),
    restart: (name: string) => void restarted.push(name),
    askAll: async (...asked: string[]) => void told.push(asked.join(' ')),
    stop: async (name: string) => void stopped.push(name),
  }
  clusters.follow(supervisor as unknown as Supervisor, (id) => ({ spec: { name: id }, peers: [] }) as unknown as LateActor)
  const [first] = events as [ResourceEvents<RemoteSecret>]
  for (const each of events) each.complete()
  return {
    ...{ clusters, lines, started, stopped, restarted, told },
    given(texts: Readonly<Record<string, string>>, name = 's') {
      const data = Object.fromEntries(Object.entries(texts).map(([id, text]) => [id, Buffer.from(text).toString('base64')]))
      const read = first.read({ metadata: { namespace: 'mesh-system', name, resourceVersion: '1' }, data }, false)
      first.set(`mesh-system/${name}`, read?.object as RemoteSecret, false)
      first.settled()
    },
  }
}

describe('a remote secret that changes all the time', () => {
  it('fills no log, neither with faults nor with connections that change', () => {
    const { clusters, lines, started, given } = following()
    given({ west: kubeconfig('https://10.0.0.1') })
    expect(started).to.deep.equal(['west'])
    for (let at = 0; at < 300; at++) given({ west: kubeconfig(`https://10.0.0.1/${at}`), east: kubeconfig('https://a').replace('x', `x${at}`) })
    for (let at = 0; at < 300; at++) given({ west: at % 2 ? 'x' : kubeconfig('http://a') })
    expect(lines.length).to.be.lessThan(20)
    expect(clusters.troubles).to.have.length(1)
    clusters.close()
  })
})

describe('a remote secret whose certificate authority cannot be read', () => {
  it('is told with the field, and the last good state stays', () => {
    const { clusters, started, stopped, given } = following()
    const broken = Buffer.from('-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----').toString('base64')
    const good = kubeconfig('https://10.0.0.1')
    given({ west: good })
    for (const authority of [broken, Buffer.from('none').toString('base64')]) {
      given({ west: good.replace('server:', `certificate-authority-data: ${authority}\n      server:`) })
      expect(clusters.troubles).to.have.length(1)
      expect(clusters.troubles[0]).to.match(/^Secret mesh-system\/s, cluster west: .*certificate-authority-data: .*; its last good state stays$/)
    }
    expect([started, stopped]).to.deep.equal([['west'], []])
    clusters.close()
  })
})

describe('one id in two remote secrets', () => {
  it('has a row for each, which the Secret tells apart: the key is the id', () => {
    const { clusters, given } = following()
    given({ west: kubeconfig('https://10.0.0.1') }, 'first')
    given({ west: kubeconfig('https://10.0.0.2') }, 'second')
    expect(clusters.keys.map(({ name, secret, actor, trouble }) => ({ name, secret, actor, trouble }))).to.deep.equal([
      { name: 'west', secret: 'mesh-system/first', actor: 'west', trouble: '' },
      { name: 'west', secret: 'mesh-system/second', actor: '', trouble: 'Secret mesh-system/first names it too and is older; the key is left out' },
    ])
    clusters.close()
  })
})

describe('one cluster under two ids', () => {
  /** Answers with the uids in the order in which clusters are followed: the own one first. */
  const uids = (given: readonly string[]) => {
    const left = [...given]
    return async () => left.shift()
  }

  it('is followed by the first one; the second is refused by name, and taken up when the first goes', async () => {
    const { clusters, started, stopped, given } = following(undefined, uids(['own uid', 'uid', 'uid', 'uid']))
    const [east, west] = [kubeconfig('https://10.0.0.1'), kubeconfig('https://10.0.0.2')]
    given({ east, west })
    await until('the second to be refused', () => stopped.length === 1)
    expect([started, stopped]).to.deep.equal([['east', 'west'], ['west']])
    expect(clusters.troubles).to.deep.equal([
      'Secret mesh-system/s, cluster west: it is the cluster east, by the uid of its namespace kube-system; it is not followed by a second id',
    ])
    given({ east, west })
    expect(started).to.have.length(2)
    given({ west })
    await until('the second to be taken up', () => started.length === 3)
    expect([started[2], stopped]).to.deep.equal(['west', ['west', 'east']])
    expect(clusters.troubles).to.deep.equal([])
    clusters.close()
  })

  it('stays followed by its id where another one comes to stand before it', async () => {
    const { clusters, started, stopped, given } = following(undefined, uids(['own uid', 'uid', 'uid']))
    const [west, east] = [kubeconfig('https://10.0.0.2'), kubeconfig('https://10.0.0.1')]
    given({ west })
    given({ east, west })
    await until('the other one to be refused', () => stopped.length === 1)
    expect([started, stopped]).to.deep.equal([['west', 'east'], ['east']])
    expect(clusters.troubles[0]).to.contain('cluster east: it is the cluster west, by the uid')
    clusters.close()
  })

  it('whose id leads to another one now ends the streams of its proxies, and says so once; one that is only reached otherwise does not', async () => {
    const { clusters, lines, restarted, told, given } = following(undefined, uids(['own uid', 'uid', 'other uid']))
    given({ west: kubeconfig('https://10.0.0.1') })
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    given({ west: kubeconfig('https://10.0.0.2') })
    await until('the writers to be told', () => told.length > 0)
    expect([restarted, told]).to.deep.equal([['west'], ['xds-writer clusterReplaced west']])
    expect(lines.filter((line) => line.includes('is another one'))).to.deep.equal([
      'the cluster west is another one than before: the uid of its namespace kube-system is other uid, it was uid; the streams of the proxies of the former one end',
    ])
    clusters.close()
    const same = following(undefined, uids(['own uid', 'uid', 'uid']))
    same.given({ west: kubeconfig('https://10.0.0.1') })
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    same.given({ west: kubeconfig('https://10.0.0.2') })
    await until('it to be read again', () => same.restarted.length > 0)
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(same.told).to.deep.equal([])
    same.clusters.close()
  })

  it('is refused where it is the own one', async () => {
    const { clusters, started, stopped, given } = following(undefined, uids(['own uid', 'own uid']))
    given({ east: kubeconfig('https://10.0.0.1') })
    await until('it to be refused', () => stopped.length === 1)
    expect([started, stopped]).to.deep.equal([['east'], ['east']])
    expect(clusters.troubles[0]).to.contain('cluster east: it is the cluster own, by the uid')
    clusters.close()
  })

  it('is not kept out by a server that claims to be it and has other authorities', async () => {
    const { clusters, started, stopped, lines, given } = following(undefined, uids(['own uid', 'uid', 'uid']))
    const authority = Buffer.from(rootOf('root 1').record.root).toString('base64')
    const other = kubeconfig('https://10.0.0.2').replace('server:', `certificate-authority-data: ${authority}\n      server:`)
    given({ east: kubeconfig('https://10.0.0.1'), west: other })
    await until('both', () => started.length === 2)
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect([started, stopped, clusters.troubles], lines.join('\n')).to.deep.equal([['east', 'west'], [], []])
    clusters.close()
  })
})

describe('the uid of a cluster', () => {
  it('is that of the namespace kube-system, and unknown where nobody may read it', async () => {
    const answering = (answer: string | ApiFailure) => ({ request: async () => (typeof answer === 'string' ? answer : Promise.reject(answer)) })
    expect(await clusterUid(answering('{"items":[{"metadata":{"name":"kube-system","uid":"u"}}]}'))).to.equal('u')
    for (const answer of ['{"items":[]}', '{"items":[{"metadata":{"uid":7}}]}', '[]', 'null'])
      expect(await clusterUid(answering(answer)), answer).to.equal(undefined)
    const failing = (code: number) => answering(Object.assign(new Error('no'), { code }) as ApiFailure)
    expect(await clusterUid(failing(403))).to.equal(undefined)
    expect(await clusterUid(failing(500)).catch((error: Error) => error.message)).to.equal('no')
  })
})

describe('remote secrets with much text', () => {
  it('are read in turns, between which the main thread does other work', async () => {
    const { clusters, started, given } = following(5)
    const padding = '# padding\n'.repeat(2000)
    const nested = Array.from({ length: 500 }, (_, at) => `{name: extension-${at}, extension: {a: [1, 2, 3], b: text}}`).join(', ')
    const text = kubeconfig('https://10.0.0.1').replace('users:', `extensions: [${nested}]\nusers:`)
    given(Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`c${at}`, `${text}${padding}`])))
    expect(started.length, 'nothing counts before all of them are read').to.equal(0)
    let turns = 0
    const count = () => {
      turns++
      if (started.length === 0) setImmediate(count)
    }
    count()
    await until('all of them', () => started.length === 60)
    expect(turns).to.be.greaterThan(5)
    clusters.close()
  })
})

describe('a server of another cluster', () => {
  it('answers a review with a megabyte at most', async () => {
    const send: ApiSession['send'] = (_, { answered, received, broken }) => {
      setImmediate(() => {
        answered(201, { 'content-type': 'application/json' })
        try {
          for (let at = 0; at < 3; at++) received(Buffer.alloc(remoteReviewBytes / 2, ' '))
        } catch (error) {
          broken((error as Error).message)
        }
      })
      return { abandon: () => {} } as ReturnType<ApiSession['send']>
    }
    const calls = new ClusterCalls({ send } as unknown as ApiSession, 10_000, undefined, remoteReviewBytes)
    const failure = await clusterReviews(calls as ClusterApi)('token', undefined).catch((error: Error) => error)
    expect((failure as Error).message).to.contain('the answer has more than 1048576 bytes')
  })
})
