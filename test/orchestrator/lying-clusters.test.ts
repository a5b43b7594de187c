/** API servers of remote secrets that lie, flood, stall and lead elsewhere: each is named with the reason, keeps its objects, and harms nobody else (docs/operation.md, J6, J8, J9). */
import { readFileSync } from 'node:fs'
import type { ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { expect } from 'chai'
import { clusterType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { type Asked, answers, floods, type Lie, LyingCluster } from '../harness/lying-cluster.ts'
import { OwnTime } from '../harness/own-time.ts'
import { CostRecorder } from '../harness/process-cost.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const mib = 1024 * 1024
interface ClusterRow {
  readonly name: string
  readonly isComplete: boolean
  readonly trouble?: string
}
const service = (name: string, more = '') => `{"metadata":{"name":"${name}","namespace":"shop","resourceVersion":"30"}${more}}`
/** Begins a list of services with this in front of its first item. */
const begins = '{"kind":"ServiceList","metadata":{"resourceVersion":"20"},"items":['

describe('API servers of other clusters that lie', function () {
  this.timeout(600_000)
  let near: TestCluster
  let running: Service
  let local: XdsClient
  let trap: Server
  let trapped = 0
  const liars = new Map<string, LyingCluster>()

  /** What each does, and what its row says then. */
  const lies: Readonly<Record<string, { readonly lie: (of: LyingCluster) => Lie; readonly said: RegExp }>> = {
    redirects: {
      lie: () => (stream) => {
        answers(stream, 302, { location: `https://127.0.0.1:${(trap.address() as AddressInfo).port}/` })
        stream.end()
      },
      said: /status 302/,
    },
    page: {
      lie: () => (stream) => {
        answers(stream, 200, { 'content-type': 'text/html' })
        stream.end('<html>welcome</html>')
      },
      said: /ended the response before it sent anything|cannot be read/,
    },
    empty: {
      lie: () => (stream) => {
        answers(stream)
        stream.end()
      },
      said: /ended the response before it sent anything/,
    },
    silent: { lie: () => () => undefined, said: /the connection was lost|no answer within/ },
    stalls: {
      lie: () => (stream) => {
        answers(stream)
        stream.write(begins)
      },
      said: /nothing came for 10 s|nothing has been heard|the connection was lost/,
    },
    endless: { lie: (of) => services(of, (at) => `${service(`s${at}`)},`), said: /more than 2000 objects of the cluster are not kept/ },
    unusable: {
      lie: (of) => services(of, (at) => `${service(`u${at}-${'x'.repeat(240)}`, ',"spec":{"type":"ExternalName"}')},`),
      said: /more than 2000 objects of the cluster are not kept/,
    },
    named: {
      lie: (of) => services(of, (at) => `${service(`${'n'.repeat(mib)}${at}`, ',"spec":{"type":"ExternalName"}')},`),
      said: /names have at most 600 characters/,
    },
    pages: {
      lie: (of) => once(of, () => of.list('services', [], 'more')),
      said: /./,
    },
    wide: { lie: (of) => once(of, () => `${begins}{"metadata":${filled('[', '{},', '{}]', 15 * mib)}}]}`), said: /more than 1000000 values/ },
    deep: { lie: (of) => once(of, () => `${begins}{"metadata":${'['.repeat(15 * mib)}`), said: /a page of a list cannot be read/ },
    drips: {
      lie: (of) => (stream, asked) => {
        if (tellsOrExpires(of, stream, asked)) return
        stream.write(`${begins}{"metadata":{"name":"`)
        floods(stream, () => 'd')
      },
      said: /./,
    },
    kinds: {
      lie: (of) => once(of, () => of.list('pods', [{ metadata: { name: 'pod', namespace: 'shop', resourceVersion: '30' } }])),
      said: /the server was asked for ServiceList and sent PodList/,
    },
    odd: {
      lie: (of) => (stream, asked) => {
        if (!asked.isWatch || asked.path.includes('sendInitialEvents')) return of.truth(stream, asked)
        answers(stream)
        stream.write('{"type":"LIE","object":{}}\n')
      },
      said: /something that is no event/,
    },
    expires: {
      lie: (of) => (stream, asked) => {
        if (!asked.isWatch || asked.path.includes('sendInitialEvents')) return of.truth(stream, asked)
        answers(stream)
        stream.write('{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}\n')
      },
      said: /too old/,
    },
    back: {
      lie: (of) => (stream, asked) => {
        if (!asked.isWatch || asked.plural !== 'services' || asked.path.includes('sendInitialEvents')) return of.truth(stream, asked)
        answers(stream)
        for (const version of ['1', '9', '9'.repeat(100_000)])
          stream.write(`{"type":"DELETED","object":{"metadata":{"name":"of-back","namespace":"shop","resourceVersion":"${version}"}}}\n`)
        floods(
          stream,
          (at) => `{"type":"DELETED","object":{"metadata":{"name":"${'g'.repeat(100_000)}${at}","namespace":"shop","resourceVersion":"40"}}}\n`,
        )
      },
      said: /the connection was lost/,
    },
    goes: {
      lie: () => (stream) => stream.session?.goaway(),
      said: /./,
    },
    headers: {
      lie: () => (stream) => {
        answers(stream, 200, { 'x-long': 'h'.repeat(60_000), 'x-longer': 'h'.repeat(60_000) })
        stream.end('{}')
      },
      said: /./,
    },
  }

  const services =
    (of: LyingCluster, item: (at: number) => string): Lie =>
    (stream, asked) => {
      if (tellsOrExpires(of, stream, asked)) return
      floods(stream, (at) => (at === 0 ? begins : item(at)))
    }
  const once =
    (of: LyingCluster, text: () => string): Lie =>
    (stream, asked) => {
      if (!tellsOrExpires(of, stream, asked)) stream.end(text())
    }
  /** Tells the truth about all but lists of services, whose watches expire. False: it is such a list, whose answer has begun. */
  const tellsOrExpires = (of: LyingCluster, stream: ServerHttp2Stream, asked: Asked): boolean => {
    if (asked.plural !== 'services' || asked.path.includes('sendInitialEvents')) of.truth(stream, asked)
    else if (asked.isWatch) {
      answers(stream)
      stream.end('{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}\n')
    } else {
      answers(stream)
      return false
    }
    return true
  }
  const filled = (begin: string, piece: string, end: string, bytes: number) => `${begin}${piece.repeat(Math.floor(bytes / piece.length))}${end}`
  const write = (names: Iterable<string>) => {
    const data = Array.from(names, (name) => [
      name,
      readFileSync(near.userConfig(`lying-${name}`, '{token: t}', (liars.get(name) as LyingCluster).address)).toString('base64'),
    ])
    const metadata = { name: 'remotes', namespace: 'mesh-system', labels: { 'mesh/multiCluster': 'true' } }
    near.kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, data: Object.fromEntries(data) }))
  }
  const rows = () => running.debug<ClusterRow[]>('clusterz')
  const has = (name: string) => local.resources.get(clusterType)?.has(`outbound|80||${name}.shop.svc.cluster.local`) ?? false

  before(async () => {
    near = await TestCluster.start()
    near.stopControllers()
    for (const name of ['mesh-system', 'shop']) near.apply(`apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}`)
    trap = createServer(() => trapped++)
    await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve))
    for (const name of Object.keys(lies)) liars.set(name, await LyingCluster.start(name, near.dir))
    const env = {
      PILOT_DEBOUNCE_AFTER: '10ms',
      PILOT_REMOTE_CLUSTER_MAX_OBJECTS: '2000',
      PILOT_REMOTE_CLUSTER_MAX_BYTES: '64000000',
      MESHD_CA_STATE_DIR: '',
    }
    const flags = ['--registries', 'Orchestrator', '--orchconfig', near.roleConfig(), '--configDir', '', '--writers', '1']
    running = new Service({ env, flags })
    await running.start()
    local = await new XdsClient(running.grpcPort, sidecarNode('10.99.0.1', 'local', 'shop'), false).connect().ready()
  })
  after(async () => {
    for (const each of liars.values()) each.close()
    trap?.close()
    local?.close()
    await running?.dispose()
    await near?.dispose()
  })

  it('are named with what is wrong, keep what was known of them, and delay nobody, whatever they answer', async () => {
    write(liars.keys())
    for (const name of liars.keys()) await until(`the service of ${name}`, () => has(`of-${name}`))
    await until('all of them', async () => (await rows()).every(({ isComplete }) => isComplete))
    const cost = new CostRecorder(running.pid)
    for (const [name, liar] of liars) liar.lies(lies[name]?.lie(liar))
    const told = new Map([...liars.keys()].map((name) => [name, new Set<string>()]))
    const isSaid = (name: string) => [...(told.get(name) ?? [])].some((trouble) => lies[name]?.said.test(trouble))
    let longest = 0
    let rounds = 0
    await until('what is wrong with each', async () => {
      const time = new OwnTime()
      const probe = `probe-${rounds++}`
      near.apply(`apiVersion: v1\nkind: Service\nmetadata: {name: ${probe}, namespace: shop}\nspec: {ports: [{name: http, port: 80}]}`)
      await until(probe, () => has(probe))
      longest = Math.max(longest, time.ms())
      for (const { name, trouble = '' } of await rows()) if (trouble !== '') told.get(name)?.add(trouble)
      return rounds >= 10 && [...liars.keys()].every(isSaid)
    })
    expect(longest, 'a change of the own cluster').to.be.below(10_000)
    expect(cost.stop().mib).to.be.below(300)
    expect([...liars.keys()].filter((name) => !has(`of-${name}`))).to.deep.equal([])
    expect(trapped, 'connections to where a redirection leads').to.equal(0)
    for (const [name, { requests }] of liars) expect(requests, name).to.be.below(1000)
    const actors = await running.debug<{ name: string; restarts: number }[]>('actorsz')
    expect(actors.filter(({ restarts }) => restarts > 0)).to.deep.equal([])
    expect(await running.metrics()).to.match(/^remote_cluster_sync_timeouts_total 0$/m)
  })

  it('leave with the Secret that names them, and take what they had with them', async () => {
    near.kubectl(['delete', 'secret', '-n', 'mesh-system', 'remotes'])
    for (const name of liars.keys()) await until(`${name} to be gone`, () => !has(`of-${name}`))
    expect((await rows()).filter(({ name }) => name !== 'Orchestrator')).to.deep.equal([])
  })

  it('add nothing to namespaces that they were not asked for', async () => {
    const strays = await LyingCluster.start('strays', near.dir)
    liars.set('strays', strays)
    const stray = { metadata: { name: 'stray', namespace: 'bank', resourceVersion: '12' }, spec: { clusterIP: '240.9.0.2', ports: [{ port: 80 }] } }
    strays.lies((stream, asked) => {
      if (asked.plural !== 'services' || asked.isWatch) return strays.truth(stream, asked)
      answers(stream)
      stream.end(strays.list('services', [...strays.items('services'), stray]))
    })
    write(['strays'])
    await running.stop()
    running.flags.push('--appNamespace', 'shop')
    await running.start()
    local.close()
    local = await new XdsClient(running.grpcPort, sidecarNode('10.99.0.1', 'again', 'shop'), false).connect().ready()
    await until('its service', () => has('of-strays'))
    await running.output.says('Service bank/stray of cluster strays: the server was asked for the namespace shop; it is left out')
    expect([...(local.resources.get(clusterType)?.keys() ?? [])].filter((name) => name.includes('stray.bank'))).to.deep.equal([])
  })
})
