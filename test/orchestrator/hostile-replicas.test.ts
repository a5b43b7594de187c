/** What answers at the addresses of replicas is hostile, with and without the key of the replicas: it is bounded and named, and nobody else waits (docs/operation.md, A2, A4). */
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { expect } from 'chai'
import { replicaKey } from '../../actors/discovery/admin/replica-port.ts'
import { TestCluster } from '../harness/cluster.ts'
import { OwnTime } from '../harness/own-time.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const namespace = 'mesh-system'
const mib = 1024 * 1024
/** Bytes without end. */
const endless = () => {
  const noise = Buffer.alloc(65_536, 0x15)
  return new Readable({
    read() {
      this.push(noise)
    },
  })
}

interface Row {
  readonly name?: string
  readonly proxy?: string
  readonly answered?: boolean
  readonly reason?: string
}

/** Text of this length, made of pieces between a beginning and an end. */
const filled = (begin: string, piece: string, end: string, bytes: number) =>
  `${begin}${piece.repeat(Math.floor((bytes - begin.length - end.length) / piece.length))}${end}`

/** What is said by those that have the key. */
const bodies: Readonly<Record<string, Buffer>> = {
  huge: Buffer.from(filled('[', '{},', '{}]', 40 * mib)),
  wide: Buffer.from(filled('[', '{},', '{}]', 31 * mib)),
  deep: Buffer.from('['.repeat(31 * mib)),
  form: Buffer.from('{"proxy": 1}'),
}

describe('what answers at the addresses of other replicas', function () {
  this.timeout(400_000)
  let cluster: TestCluster
  const services: Service[] = []
  const clients: XdsClient[] = []
  const servers: Server[] = []
  const timers: NodeJS.Timeout[] = []
  /** Ports by the names of the replicas that claim to be there. */
  const hostile = new Map<string, number>()

  const start = async (kubeconfig: string) => {
    const flags = ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, '--configDir', '', '--writers', '1']
    const env = {
      ENABLE_DEBUG_ON_LOOPBACK: 'true',
      MESHD_CA_STATE_DIR: '',
      MESHD_REPLICA_ADDRESS: '127.0.0.1:0',
      POD_NAME: `replica-${services.length}`,
    }
    const made = new Service({ env, flags })
    services.push(made)
    await made.start()
    const node = sidecarNode(`10.1.0.${services.length}`, `pod${services.length}`, 'shop')
    clients.push(await new XdsClient(made.grpcPort, node, true).connect().ready())
  }
  const listen = async (name: string, server: Server) => {
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    hostile.set(name, (server.address() as AddressInfo).port)
  }
  /** One that knows nothing of TLS. */
  const raw = (name: string, serve: (socket: Socket) => void) =>
    listen(
      name,
      createServer((socket) => serve(socket.on('error', () => undefined))),
    )
  /** A replica that has the key. */
  const keyed = (name: string, key: Buffer, answer: (response: ServerResponse) => void, status = 200) => {
    const tls = { ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2', pskCallback: () => key } as const
    return listen(
      name,
      createSecureServer(tls, (_, response) =>
        answer(response.on('error', () => undefined).writeHead(status, { 'content-type': 'application/json' })),
      ),
    )
  }
  const leases = () =>
    JSON.parse(cluster.kubectl(['get', 'leases', '-n', namespace, '-o', 'json'])) as {
      items: { metadata: { name: string; labels: Record<string, string>; annotations: Record<string, string> } }[]
    }
  const rows = (of: Service, page = 'syncz') => of.debug<Row[]>(page)
  const memory = (of: Service) => Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync(`/proc/${of.pid}/status`, 'utf8'))?.[1]) / 1024

  before(async () => {
    cluster = await TestCluster.start()
    cluster.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}')
    const kubeconfig = cluster.roleConfig()
    for (let each = 0; each < 3; each++) await start(kubeconfig)
    const { data } = JSON.parse(cluster.kubectl(['get', 'secret', '-n', namespace, 'mesh-version-secrets', '-o', 'json'])) as {
      data: Record<string, string>
    }
    const texts = Object.values(data).map((text) => Buffer.from(text, 'base64').toString())
    const versionKey = /[0-9a-f]{64}/.exec(texts.find((text) => text.includes('versionKey')) ?? '')?.[0] ?? ''
    expect(versionKey).not.to.equal('')
    const key = replicaKey({ versionKey } as never, namespace, '')
    await raw('garbage', (socket) => endless().pipe(socket))
    await raw('silent', () => undefined)
    const made = new ServingCertificates(services[0]?.dir ?? '')
    made.authority('foreign')
    made.issue('other', 'foreign')
    await listen(
      'certificate',
      createSecureServer({ key: made.text('other-key.pem'), cert: made.text('other.pem') }, (_, response) => response.end('[]')),
    )
    await keyed('stranger', Buffer.alloc(32, 7), (response) => response.end('[]'))
    await keyed('endless', key, (response) => endless().pipe(response))
    await keyed('drips', key, (response) => timers.push(setInterval(() => response.write(' '), 50)))
    for (const [name, body] of Object.entries(bodies)) await keyed(name, key, (response) => response.end(body))
    await keyed('refuses', key, (response) => response.end(`no\u001b[2J ${'x'.repeat(mib)}`), 503)
    const [own] = leases().items.filter(({ metadata }) => metadata.name.startsWith('mesh-replica-'))
    const { labels, annotations } = own?.metadata ?? { labels: {}, annotations: {} }
    for (const [name, port] of hostile) {
      const places = Object.entries(annotations).map(([at, value]) => [at, at.endsWith('/address') ? `127.0.0.1:${port}` : value])
      const metadata = { name: `mesh-replica-${name}`, namespace, labels, annotations: Object.fromEntries(places) }
      const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: { holderIdentity: name } }
      cluster.kubectl(['apply', '-f', '-'], JSON.stringify(lease))
    }
  })
  after(async () => {
    for (const timer of timers) clearInterval(timer)
    for (const client of clients) client.close()
    for (const each of services) await each.dispose()
    for (const server of servers) {
      ;(server as { closeAllConnections?: () => void }).closeAllConnections?.()
      server.close()
      server.unref()
    }
    await cluster?.dispose()
  })

  it('is named with the reason, within the bounds, and keeps neither pages, readiness nor streams waiting', async () => {
    const [one] = services as [Service]
    let last: readonly Row[] = []
    await until('the hostile ones to be asked', async () => {
      last = await rows(one)
      return last.filter(({ answered }) => answered === false).length === hostile.size
    })
    const before = memory(one)
    let longest = 0
    let isOver = false
    const ready = (async () => {
      while (!isOver) {
        const asking = new OwnTime()
        await (await fetch(`http://127.0.0.1:${one.httpPort}/ready`)).text()
        longest = Math.max(longest, asking.ms())
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    })()
    const asking = new OwnTime()
    last = await rows(one)
    const took = asking.ms()
    const together = await Promise.all([rows(one), rows(one)])
    isOver = true
    await ready
    expect(took, 'the bound of an answer, and a start on a busy machine').to.be.below(5000)
    expect(longest).to.be.below(2000)
    expect(memory(one) - before).to.be.below(1000)
    for (const list of [last, ...together]) {
      expect(list.flatMap(({ proxy }) => proxy ?? []).sort()).to.deep.equal(['pod1.shop', 'pod2.shop', 'pod3.shop'])
      expect(list.flatMap(({ name, answered }) => (answered === false ? name : [])).sort()).to.deep.equal([...hostile.keys()].sort())
    }
    const keyless = 'it has not the key of the replicas (Secret mesh-version-secrets), or is none: '
    // These servers share a process with the test, so that on a busy machine each may be slower than the bound of time.
    const slow = 'no answer within 2000 ms'
    const allowed: Readonly<Record<string, readonly string[]>> = {
      garbage: [`${keyless}wrong version number`],
      certificate: [`${keyless}ssl/tls alert handshake failure`],
      stranger: [`${keyless}ssl/tls alert bad record mac`],
      silent: [slow],
      drips: [slow],
      endless: [slow, 'the answer is longer than 33554432 bytes'],
      huge: [slow, 'the answer is longer than 33554432 bytes'],
      wide: [slow, 'its answer is not read: it has more than 2000000 values'],
      deep: [slow, 'its answer is not read: its values are nested more than 64 deep'],
      form: ['its answer has another form than it should: it may be another version'],
      refuses: [`it answers with status 503: no\\u001b[2J ${'x'.repeat(300)}`],
    }
    for (const list of [last, ...together])
      for (const { name = '', reason = '' } of list.filter(({ answered }) => answered === false))
        expect(
          [slow, ...(allowed[name] ?? [])].some((text) => text.startsWith(reason) && reason !== ''),
          `${name}: ${reason}`,
        ).to.equal(true)
  })

  it('is asked whether it is loaded, and moves no proxy', async () => {
    const [one] = services as [Service]
    expect(await one.metrics()).to.match(/^pilot_xds_spread_connections_total(\{[^}]*\})? 0$/m)
    expect(clients.map(({ closed }) => closed)).to.deep.equal([undefined, undefined, undefined])
  })
})
