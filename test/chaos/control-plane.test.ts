/** What another control plane can cost the one that reads from it (docs/limits.md): it is silent, or sends what it must not. */
import { createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer, type Server } from 'node:tls'
import { expect } from 'chai'
import type { Kind } from '../../src/config/kinds/kind.ts'
import { kinds } from '../../src/config/kinds.ts'
import { parseConfigFile } from '../../src/config/parse.ts'
import { configTypeOf, elementOf, resourceTypes, writeConfigResource } from '../../src/xds/config-objects/config-resource.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { encodeResponse } from '../../src/xds/stream/response.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { OwnTime } from '../harness/own-time.ts'
import { CostRecorder } from '../harness/process-cost.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { names } from '../harness/settings.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

/** Writes for as long as the other side reads. */
function flood(stream: ServerHttp2Stream, bytes: Buffer): void {
  const more = () => {
    while (!stream.destroyed && stream.write(bytes)) {}
  }
  stream.on('drain', more)
  more()
}

const kind = kinds.get('ServiceEntry') as Kind
/** A response with an object that is another one each time. */
function changing(round: number): Buffer {
  const [entry] = parseConfigFile('f', serviceEntry('flood', `10.1.${(round >> 8) & 255}.${round & 255}`), names).objects
  const served = writeConfigResource(entry as NonNullable<typeof entry>, kind)
  const resources = [{ name: served.name, version: served.version, element: elementOf(served, resourceTypes.mesh) }]
  return messageFrame(encodeResponse(true, { typeUrl: configTypeOf(kind, 'mesh.io'), version: 'v', nonce: `${round}`, resources, removed: [] }))
}

/** What a server does with a stream, and what is said of it. */
const attacks: Record<string, { readonly serves: (stream: ServerHttp2Stream) => void; readonly says: RegExp }> = {
  'a message without an end': {
    serves: (stream) => flood(stream, Buffer.concat([Buffer.of(0, 0x7f, 0xff, 0xff, 0xff), Buffer.alloc(65_536)])),
    says: /larger than|maximum|too large|more than|exceeds/i,
  },
  'objects of a type that nobody asked for': {
    serves: (stream) => flood(stream, messageFrame(encodeResponse(true, { typeUrl: 'a/v1/B', version: '', nonce: 'n', resources: [], removed: [] }))),
    says: /which nobody asked for/,
  },
  'bytes that are no response': { serves: (stream) => flood(stream, messageFrame(Buffer.alloc(1000, 0xff))), says: /./ },
  'the same object, changed all the time': {
    serves: (stream) => {
      let round = 0
      const more = () => {
        while (!stream.destroyed && stream.write(changing(++round))) {}
      }
      stream.on('drain', more)
      more()
    },
    says: /not connected yet/,
  },
}

describe('another control plane that misbehaves', () => {
  const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '20ms' } })
  const made = new ServingCertificates(service.authorityDir)
  const servers: (Http2SecureServer | Server)[] = []
  let witness: XdsClient
  let changes = 0

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca', 1, 'subjectAltName=DNS:localhost')
    made.workload('root', 'ca', ['spiffe://cluster.local/ns/mesh-system/sa/meshd'])
    await service.start()
    witness = await new XdsClient(service.grpcPort, sidecarNode('10.0.0.9', 'p', 'ns'), true).connect().ready()
  })
  after(async () => {
    witness?.close()
    for (const server of servers) server.close()
    await service.dispose()
  })

  const given = () => ({ key: made.text('server-key.pem'), cert: made.text('server.pem'), ca: made.text('ca.pem'), requestCert: true })
  const readFrom = async (server: Http2SecureServer | Server) => {
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
    const tls = { clientCertificate: made.file('root.pem'), privateKey: made.file('root-key.pem'), caCertificates: made.file('ca.pem') }
    const address = `xds://localhost:${(server.address() as AddressInfo).port}`
    service.write('mesh-config', JSON.stringify({ configSources: [{ address, tlsSettings: { mode: 'MUTUAL', ...tls } }] }))
    return address
  }
  const reasons = async (address: string) =>
    (await service.debug<{ unreadable: { path: string; reason: string }[] }>('filez')).unreadable.flatMap(({ path, reason }) =>
      path === address ? reason : [],
    )
  /** The time until the witness has a change, in milliseconds. */
  const change = async () => {
    const name = `s${changes++}`
    const watch = new OwnTime()
    service.write('own.yaml', serviceEntry(name))
    await until('the change', () => witness.resources.get(clusterType)?.has(`outbound|80||${name}.ns.svc.cluster.local`) === true)
    return watch.ms()
  }

  for (const [what, { serves, says }] of Object.entries(attacks))
    it(`and sends ${what} keeps no change from a proxy, and costs no memory`, async () => {
      const server = createSecureServer(given())
      const streams: ServerHttp2Stream[] = []
      let served = 0
      server.on('session', (session) => session.on('error', () => undefined))
      server.on('stream', (stream) => {
        streams.push(stream)
        stream.on('error', () => undefined)
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
        served++
        serves(stream)
      })
      const cost = new CostRecorder(service.pid)
      const address = await readFrom(server)
      await until('that it is said', async () => served > 0 && (await reasons(address)).some((reason) => says.test(reason)))
      const times = [await change(), await change(), await change()]
      const { mib } = cost.stop()
      expect(Math.max(...times), 'the longest time to a change in milliseconds').to.be.below(2000)
      expect(mib, 'memory in MiB').to.be.below(150)
      service.write('mesh-config', '{}')
      await until('the end of the source', async () => (await reasons(address)).length === 0)
      for (const stream of streams) stream.destroy()
    })

  it('and is silent is given up, and is asked again', async () => {
    const address = await readFrom(createTlsServer({ ...given(), ALPNProtocols: ['h2'] }, (socket) => socket.on('error', () => undefined)))
    await until('that it is given up', async () => (await reasons(address)).some((reason) => /no connection within 10 s/.test(reason)))
    expect(await change()).to.be.below(2000)
  })
})
