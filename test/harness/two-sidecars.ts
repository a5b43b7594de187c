/** Two workloads, each with a sidecar and an agent, with the real command as their control plane and certificate authority. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { actor } from '../../actors/agent/sds/secret-agent.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { freePort } from '../../bench/ports.ts'
import type { SecretState } from '../../protocols/messages/agent.ts'
import type { AuthorityStatus } from '../../protocols/messages/authority-status.ts'
import type { TrustBundleChanged } from '../../protocols/messages/trust-bundle.ts'
import { certificatesOf } from '../../src/identity/pem.ts'
import { startActor } from './actor.ts'
import { call, HttpBackend } from './backend.ts'
import { Envoy } from './envoy.ts'
import { runCommand, Service } from './service.ts'
import { ServingCertificates } from './serving-certificates.ts'

const serverName = 'meshd.mesh-system.svc'
const host = 'server.shop.svc.cluster.local'

type Role = 'server' | 'client'
/** Bytes of a secret in the admin page. */
type Inline = { readonly inline_bytes: string }
const addresses = { server: '127.0.0.7', client: '127.0.0.8' }

/** The agent and sidecar of a workload. */
interface Member {
  readonly agent: Behaviour<TrustBundleChanged>
  readonly state: () => SecretState
  readonly envoy: Envoy
}

/** The outcome of a series of requests. */
export interface Traffic {
  readonly statuses: Record<string, number>
  readonly answered: number
}

/** The settings of the pair. */
export interface PairOptions {
  readonly binary: string
  readonly delta: boolean
  /** The lifetime of workload certificates, in seconds. */
  readonly ttlSeconds: number
  /**
   * Whether the control plane's serving certificate is from its own authority, whose roots all clients use; otherwise it is from an
   * unrelated authority.
   */
  readonly servesOwn?: boolean
  readonly env?: Record<string, string>
}

/** A pair of workloads. The client's sidecar calls the server's, with a new connection for every request. */
export class TwoSidecars {
  readonly service: Service
  readonly backend = new HttpBackend('app')
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-pair-'))
  readonly members = {} as Record<Role, Member>
  /** The ports of the service, of the server's sidecar, and of the control plane over TLS. */
  readonly ports = { http: 0, inbound: 0, secure: 0 }
  readonly #options: PairOptions
  readonly #made: ServingCertificates
  readonly #agents: Behaviour<TrustBundleChanged>[] = []

  constructor(options: PairOptions) {
    this.#options = options
    this.service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms', ...options.env } })
    this.#made = new ServingCertificates(this.dir)
  }

  async start(): Promise<void> {
    for (const name of Object.keys(this.ports) as (keyof typeof this.ports)[]) this.ports[name] = await freePort()
    await this.backend.start()
    this.service.flags.push('--secureGRPCAddr', `127.0.0.1:${this.ports.secure}`)
    if (!this.#options.servesOwn) this.#serveWithFiles()
    this.write()
    await this.service.start()
    if (this.#options.servesOwn) await this.ca('export', '--to', this.dir)
    for (const role of ['server', 'client'] as const) await this.token(role)
    for (const role of ['server', 'client'] as const) await this.join(role)
  }

  #serveWithFiles(): void {
    this.#made.authority('root-cert')
    this.#made.issue('meshd', 'root-cert', 1, `subjectAltName=DNS:${serverName}\n`)
    const files = { tlsCertFile: 'meshd.pem', tlsKeyFile: 'meshd-key.pem' }
    for (const [flag, name] of Object.entries(files)) this.service.flags.push(`--${flag}`, this.#made.file(name))
  }

  /** Runs the command `ca` and returns its output. */
  async ca(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runCommand(['ca', ...args], this.service.env)
    if (code !== 0) throw new Error(`ca ${args.join(' ')}: ${stderr}`)
    return stdout
  }

  /** The stage of the rotation. */
  async stage(): Promise<string> {
    return (JSON.parse(await this.ca('show', '-o', 'json')) as AuthorityStatus).rotation.stage
  }

  /** Writes the configuration. Callers expect the server to have the service account `account`. */
  write(account = 'server'): void {
    const { http, inbound } = this.ports
    const document = (kind: string, name: string, spec: string) =>
      `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}\n`
    const sidecar = (name: Role, rest: string) => document('Sidecar', name, `{workloadSelector: {labels: {app: ${name}}}, ${rest}}`)
    const endpoint = `{address: ${addresses.server}, ports: {http: ${inbound}}, labels: {app: server}, serviceAccount: ${account}}`
    const documents = [
      document(
        'ServiceEntry',
        'server',
        `{hosts: [${host}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${http}, name: http}], endpoints: [${endpoint}]}`,
      ),
      // One request per connection, so that every request needs a TLS handshake.
      document('DestinationRule', 'server', `{host: ${host}, trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}}}`),
      sidecar(
        'server',
        `ingress: [{port: {number: ${inbound}, protocol: HTTP, name: http}, bind: ${addresses.server}, captureMode: NONE, defaultEndpoint: '127.0.0.1:${this.backend.port}'}], egress: [{hosts: ['./*']}]`,
      ),
      sidecar(
        'client',
        `egress: [{port: {number: ${http}, protocol: HTTP, name: http}, bind: ${addresses.client}, captureMode: NONE, hosts: ['./*']}]`,
      ),
    ]
    this.service.write('services.yaml', documents.join('---\n'))
  }

  /** Issues a token for a workload and writes it to the file that its agent reads. */
  async token(role: Role, ttl = '1h'): Promise<string> {
    const flags = ['-n', 'shop', '--service-account', role, '--ttl', ttl, '-o', join(this.dir, `${role}.token`)]
    const { code, stderr } = await runCommand(['token', ...flags], { MESHD_CA_STATE_DIR: this.service.authorityDir })
    if (code !== 0) throw new Error(`no token: ${stderr}`)
    return readFileSync(join(this.dir, `${role}.token`), 'utf8').trim()
  }

  /** Replaces the content of an agent's token file. */
  replaceToken(role: Role, text: string): void {
    writeFileSync(join(this.dir, `${role}.token`), text)
  }

  /** Starts the agent of a workload. */
  async startAgent(role: Role): Promise<() => SecretState> {
    const agent = await startActor(actor, {
      socket: this.#socket(role),
      allowVolumes: false,
      certificate: {
        authority: {
          address: { host: '127.0.0.1', port: this.ports.secure, isPlain: false, serverName },
          credentials: {
            roots: { files: [join(this.dir, 'root-cert.pem')], isPinned: false, learned: undefined },
            tokenFile: join(this.dir, `${role}.token`),
            pair: undefined,
          },
        },
        cloud: undefined,
        clusterId: '',
        identity: `spiffe://cluster.local/ns/shop/sa/${role}`,
        key: { type: role === 'server' ? 'rsa' : 'ec', format: 'traditional' },
        ttlSeconds: this.#options.ttlSeconds,
        // Renewed after a fifth of its life: the rest is left for the restart of a control plane on a busy machine.
        graceRatio: 0.8,
        keptIn: undefined,
      },
      fetcher: undefined,
      notices: [],
      mounted: undefined,
      output: undefined,
      fileQuietMs: 100,
    })
    this.#agents.push(agent)
    return agent.asks?.state as () => SecretState
  }

  /**
   * Starts the agent and sidecar of a workload. The server's sidecar authenticates to the control plane with its certificate, the client's
   * with its token.
   */
  async join(role: Role): Promise<void> {
    const state = await this.startAgent(role)
    const agent = this.#agents.at(-1) as Behaviour<TrustBundleChanged>
    const token = readFileSync(join(this.dir, `${role}.token`), 'utf8').trim()
    const envoy = new Envoy({
      binary: this.#options.binary,
      delta: this.#options.delta,
      grpcPort: this.ports.secure,
      secretsAt: this.#socket(role),
      credentials: {
        root: this.#options.servesOwn ? 'secret' : this.#made.text('root-cert.pem'),
        serverName,
        ...(role === 'server' ? { certificate: 'secret' as const } : { token }),
      },
      nodeId: `sidecar~${addresses[role]}~${role}.shop~shop.svc.cluster.local`,
      metadata: { NAMESPACE: 'shop', SERVICE_ACCOUNT: role, LABELS: { app: role }, INTERCEPTION_MODE: 'NONE', PROXY_CONFIG: {} },
    })
    this.members[role] = { agent, state, envoy }
    await envoy.start()
  }

  #socket(role: Role): string {
    return join(this.dir, role, 'SDS')
  }

  /** Sends one call through both sidecars. Resolves with the status; 0 without a response. */
  async request(): Promise<number> {
    const answer = await call(addresses.client, this.ports.http, '/', { host }).catch(() => undefined)
    return answer?.status ?? 0
  }

  /** The client identity that the server's sidecar reported for the last call that arrived. */
  caller(): string {
    return String(this.backend.seen.at(-1)?.headers['x-forwarded-client-cert'] ?? '')
  }

  /** Sends requests in four concurrent loops until `work` has finished. */
  async during(work: () => Promise<void>): Promise<Traffic> {
    const statuses: Record<string, number> = {}
    let isOver = false
    const caller = async () => {
      while (!isOver) {
        const status = await this.request()
        statuses[status] = (statuses[status] ?? 0) + 1
      }
    }
    const callers = Promise.all(Array.from({ length: 4 }, caller))
    try {
      await work()
    } finally {
      isOver = true
      await callers
    }
    return { statuses, answered: statuses[200] ?? 0 }
  }

  /** Returns the certificates that a sidecar currently has, from its admin page: serial numbers of the leaf and of the roots. */
  async certificates(role: Role): Promise<{ leaf: string; roots: string[] }> {
    const page = JSON.parse(await this.members[role].envoy.admin('/config_dump?resource=dynamic_active_secrets')) as {
      configs?: { name: string; secret: { tls_certificate?: { certificate_chain: Inline }; validation_context?: { trusted_ca: Inline } } }[]
    }
    const serials = (source: Inline | undefined) =>
      source ? certificatesOf(Buffer.from(source.inline_bytes, 'base64').toString()).map(({ serialNumber }) => serialNumber) : []
    const secret = (name: string) => page.configs?.find((one) => one.name === name)?.secret
    return {
      leaf: serials(secret('default')?.tls_certificate?.certificate_chain)[0] ?? '',
      roots: serials(secret('ROOTCA')?.validation_context?.trusted_ca),
    }
  }

  async dispose(): Promise<void> {
    const members = Object.values(this.members)
    for (const { envoy } of members) expect(await envoy.rejected().catch(() => 0)).to.equal(0)
    await Promise.all([...this.#agents.map((agent) => agent.drain?.()), ...members.map(({ envoy }) => envoy.dispose())])
    await Promise.all([this.service.dispose(), this.backend.stop()])
    rmSync(this.dir, { recursive: true, force: true })
  }
}
