/**
 * Runs attacks on policies against stock proxies: a sidecar and a gateway in front of one workload, with the oldest and the newest
 * supported release of Envoy.
 */
import { connect as connectHttp2 } from 'node:http2'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { type Answer, call, HttpBackend } from './backend.ts'
import { Envoy, envoyBinaries } from './envoy.ts'
import { enforce } from './policies.ts'
import { type RawAnswer, sendBytes } from './raw-http.ts'
import { Service } from './service.ts'
import { until } from './until.ts'

/** The namespace of the attacked workload. Its labels are `app: app` and `place: <id>`. */
export const namespace = 'shop'

/** A proxy in front of the workload, and clients for it. */
export interface Place {
  readonly version: string
  readonly side: 'sidecar' | 'gateway'
  /** `<side>-<version with dashes>`: the value of the proxy's label `place`, and the first part of its name in `proxyID`. */
  readonly id: string
  /** The plaintext address on which the proxy listens. */
  readonly address: string
  readonly port: number
  readonly service: Service
  readonly envoy: Envoy
  /** The workload. `seen` contains the requests that reached it. */
  readonly backend: HttpBackend
  /** Replaces all policies (YAML documents) and waits until the proxy has them. */
  enforce(...documents: string[]): Promise<void>
  /** Sends parts as they are, one after another, on a connection of their own, and reads the response. */
  raw(...parts: (string | Buffer)[]): Promise<RawAnswer>
  /** Sends an HTTP/1.1 request with an ordinary client. */
  call(path: string, options?: { method?: string; host?: string; headers?: Record<string, string> }): Promise<Answer>
  /** Sends an HTTP/2 request without TLS. Pseudo headers default to `:method` GET, `:scheme` http and `:path` /. */
  http2(headers: Record<string, string | string[]>): Promise<RawAnswer>
}

/** Additional settings of an attack. */
export interface AttackOptions {
  readonly env?: Record<string, string>
  readonly flags?: readonly string[]
  /** The mesh configuration as YAML. */
  readonly mesh?: string
  /** Additional configuration files, by name. */
  readonly files?: Record<string, string>
  /** Restricts the attack to one side. The default is both. */
  readonly side?: 'sidecar' | 'gateway'
  /** Whether proxies are expected to reject configuration. */
  readonly refuses?: boolean
}

const places = envoyBinaries().flatMap(({ version, path }, index) =>
  (['sidecar', 'gateway'] as const).map((side, of) => ({ version, path, side, address: `127.0.7.${1 + 2 * index + of}` })),
)

/**
 * Runs the tests that `body` declares at each place: every release of Envoy, as a sidecar and as a gateway. All places share one service
 * process and one workload; each has a proxy of its own, which runs during its tests. Afterwards no proxy may have rejected any
 * configuration.
 */
export function describeAttacks(topic: string, body: (place: Place) => void, options: AttackOptions = {}): void {
  describePlaces(`attacks: ${topic}`, body, options)
}

/** Like {@link describeAttacks}, for tests that are not attacks. */
export function describePlaces(title: string, body: (place: Place) => void, options: AttackOptions = {}): void {
  describe(title, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms', ...options.env }, flags: options.flags ?? [] })
    const backend = new HttpBackend('app')
    before(async () => {
      await backend.start()
      service.write('mesh-config', options.mesh ?? '')
      service.write('backend.yaml', backendDocument(backend.port))
      for (const [name, text] of Object.entries(options.files ?? {})) service.write(name, text)
      await service.start()
    })
    after(async () => {
      await Promise.all([service.dispose(), backend.stop()])
    })
    for (const { version, path, side, address } of places.filter((place) => !options.side || place.side === options.side))
      describe(`Envoy ${version} as ${side}`, () => {
        const place = new RunningPlace({ version, side, address, service, backend }, path, options.refuses ?? false)
        before(() => place.start())
        after(() => place.dispose())
        body(place)
      })
  })
}

class RunningPlace implements Place {
  readonly version: string
  readonly side: 'sidecar' | 'gateway'
  readonly id: string
  readonly address: string
  port = 0
  readonly service: Service
  readonly backend: HttpBackend
  readonly #binary: string
  readonly #refuses: boolean
  #envoy: Envoy | undefined

  constructor(given: Pick<Place, 'version' | 'side' | 'address' | 'service' | 'backend'>, binary: string, refuses: boolean) {
    this.version = given.version
    this.side = given.side
    this.id = `${given.side}-${given.version.replaceAll(/[^a-z0-9]/gi, '-').toLowerCase()}`
    this.address = given.address
    this.service = given.service
    this.backend = given.backend
    this.#binary = binary
    this.#refuses = refuses
  }

  get envoy(): Envoy {
    if (!this.#envoy) throw new Error('the proxy runs while tests do')
    return this.#envoy
  }

  async start(): Promise<void> {
    const { service, side, id, address, backend } = this
    this.port = await freePort()
    service.write(`${id}.yaml`, (side === 'sidecar' ? sidecarDocument : gatewayDocument)(id, address, this.port, backend.port))
    this.#envoy = new Envoy({
      binary: this.#binary,
      delta: this.version === '1.40',
      grpcPort: service.grpcPort,
      nodeId: `${side === 'gateway' ? 'router' : 'sidecar'}~${address}~${id}.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { NAMESPACE: namespace, LABELS: { app: 'app', place: id }, ...(side === 'sidecar' ? { INTERCEPTION_MODE: 'NONE' } : {}) },
    })
    await this.#envoy.start()
    await until('the workload to answer', async () => (await this.call('/')).status === 200)
  }

  async dispose(): Promise<void> {
    const { service, id } = this
    const refused = [await this.#envoy?.rejected(), (await service.rejections()).filter((text) => text.includes(id))]
    await this.#envoy?.dispose()
    for (const name of ['policies.yaml', `${id}.yaml`]) service.remove(name)
    if (!this.#refuses) expect(refused, 'what the proxy refused').to.deep.equal([0, []])
  }

  enforce(...documents: string[]): Promise<void> {
    return enforce(this.service, this.envoy, documents)
  }

  raw(...parts: (string | Buffer)[]): Promise<RawAnswer> {
    return sendBytes(this.address, this.port, parts)
  }

  call(path: string, options: { method?: string; host?: string; headers?: Record<string, string> } = {}): Promise<Answer> {
    return call(this.address, this.port, path, { host: 'app', ...options })
  }

  http2(headers: Record<string, string | string[]>): Promise<RawAnswer> {
    return new Promise((resolve, reject) => {
      const session = connectHttp2(`http://${this.address}:${this.port}`)
      session.on('error', reject)
      const stream = session.request({ ':method': 'GET', ':path': '/', ':scheme': 'http', ...headers })
      let [status, body] = [0, '']
      stream.on('response', (answer) => (status = Number(answer[':status'])))
      stream.on('data', (bytes) => (body += bytes))
      stream.on('error', () => undefined)
      stream.on('close', () => {
        session.destroy()
        resolve({ status, body })
      })
      stream.end()
    })
  }
}

/** The workload as a service that gateways route to. */
const backendDocument = (port: number) => `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: backend, namespace: ${namespace}}
spec: {hosts: [backend.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: ${port}}}]}
`

const sidecarDocument = (id: string, address: string, port: number, backendPort: number) => `apiVersion: networking.mesh.io/v1
kind: Sidecar
metadata: {name: ${id}, namespace: ${namespace}}
spec: {workloadSelector: {labels: {place: ${id}}}, ingress: [{port: {number: ${port}, protocol: HTTP, name: http}, bind: ${address}, captureMode: NONE, defaultEndpoint: '127.0.0.1:${backendPort}'}], egress: [{hosts: ['./*']}]}
`

const gatewayDocument = (id: string, address: string, port: number) => `apiVersion: networking.mesh.io/v1
kind: Gateway
metadata: {name: ${id}, namespace: ${namespace}}
spec: {selector: {place: ${id}}, servers: [{port: {number: ${port}, name: http, protocol: HTTP}, hosts: ['*'], bind: ${address}}]}
---
apiVersion: networking.mesh.io/v1
kind: VirtualService
metadata: {name: ${id}, namespace: ${namespace}}
spec: {hosts: ['*'], gateways: [${id}], http: [{route: [{destination: {host: backend.example, port: {number: 80}}}]}]}
`
