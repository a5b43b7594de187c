/** A real Envoy under test. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../bench/ports.ts'
import { until } from './until.ts'

const cache = fileURLToPath(new URL('../../.cache/envoy', import.meta.url))

/** The available Envoy binaries: the oldest and the newest supported release, or the one that `ENVOY_BIN` names. */
export function envoyBinaries(): { version: string; path: string }[] {
  if (process.env.ENVOY_BIN) return [{ version: 'ENVOY_BIN', path: process.env.ENVOY_BIN }]
  return ['1.36', '1.40'].map((version) => ({ version, path: join(cache, version, 'envoy') })).filter(({ path }) => existsSync(path))
}

/**
 * Pairs variants with binaries round-robin, so that every variant and every binary occurs. For behaviour of a variant that does not depend
 * on the release, where testing every combination would prove nothing more.
 */
export function envoysWith<Variant extends object>(...variants: readonly Variant[]): (Variant & { version: string; path: string })[] {
  const binaries = envoyBinaries()
  const pairs = binaries.length === 0 ? 0 : Math.max(binaries.length, variants.length)
  return Array.from({ length: pairs }, (_, index) => ({
    ...(variants[index % variants.length] as Variant),
    ...(binaries[index % binaries.length] as { version: string; path: string }),
  }))
}

/** The identity and connections of a proxy. */
export interface EnvoyOptions {
  readonly binary: string
  readonly nodeId: string
  readonly metadata: object
  /** The control plane: a port of this machine, or the path of a Unix socket. */
  readonly grpcPort: number | string
  readonly delta?: boolean
  /** An SDS server such as an agent: its port, or the path of its Unix socket. */
  readonly secretsAt?: number | string
  /** TLS to the control plane: the root that verifies it, and the proxy's credentials. */
  readonly credentials?: {
    /** PEM, or `secret` for the roots from the SDS server. */
    readonly root: string
    readonly serverName: string
    readonly token?: string
    /** PEM, or `secret` for the certificate from the SDS server. */
    readonly certificate?: { readonly cert: string; readonly key: string } | 'secret'
  }
}

/** A running Envoy. Its bootstrap has no runtime keys. */
export class Envoy {
  readonly #options: EnvoyOptions
  readonly #dir = mkdtempSync(join(tmpdir(), 'mesh-envoy-'))
  #child: ChildProcess | undefined
  #admin = 0
  log = ''

  constructor(options: EnvoyOptions) {
    this.#options = options
  }

  /** Starts Envoy and waits until it has its first configuration. */
  async start(): Promise<void> {
    const child = await this.launch()
    await until('Envoy to be live', async () => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`Envoy ended: ${this.log}`)
      return (await this.admin('/ready')).startsWith('LIVE')
    })
  }

  /** Starts Envoy without waiting. */
  async launch(): Promise<ChildProcess> {
    this.#admin ||= await freePort()
    const config = join(this.#dir, 'bootstrap.json')
    writeFileSync(config, JSON.stringify(this.#bootstrap()))
    const base = String(this.#admin % 30_000)
    const child = spawn(this.#options.binary, [
      '-c',
      config,
      '--base-id',
      base,
      '--concurrency',
      '1',
      '-l',
      process.env.ENVOY_LOG ?? 'warning',
      '--drain-time-s',
      '1',
      '--parent-shutdown-time-s',
      '2',
    ])
    this.#child = child
    child.stderr.on('data', (bytes) => (this.log += bytes))
    return child
  }

  /** The address of the admin interface. */
  get adminAddress(): string {
    return `127.0.0.1:${this.#admin}`
  }

  /** Fetches a page of the admin interface. */
  async admin(path: string): Promise<string> {
    return (await fetch(`http://${this.adminAddress}${path}`)).text()
  }

  /** The sum of all counters and gauges whose names end with `suffix`. */
  async stat(suffix: string): Promise<number> {
    const lines = (await this.admin('/stats')).split('\n')
    return lines.filter((line) => line.split(':')[0]?.endsWith(suffix)).reduce((sum, line) => sum + Number(line.split(':')[1] ?? 0), 0)
  }

  /** The number of updates that Envoy rejected. */
  rejected(): Promise<number> {
    return this.stat('update_rejected')
  }

  async stop(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const closed = new Promise((resolve) => child.on('exit', resolve))
    child.kill('SIGKILL')
    await closed
  }

  async dispose(): Promise<void> {
    await this.stop()
    rmSync(this.#dir, { recursive: true, force: true })
  }

  #bootstrap(): object {
    const { nodeId, metadata, grpcPort, secretsAt, delta, credentials } = this.#options
    const shown = credentials?.token === undefined ? {} : { initial_metadata: [{ key: 'authorization', value: `Bearer ${credentials.token}` }] }
    const ads = { ads: {}, resource_api_version: 'V3' }
    return {
      node: { id: nodeId, cluster: 'test', metadata },
      admin: { address: { socket_address: { address: '127.0.0.1', port_value: this.#admin } } },
      dynamic_resources: {
        ads_config: {
          api_type: delta ? 'DELTA_GRPC' : 'GRPC',
          transport_api_version: 'V3',
          set_node_on_first_message_only: true,
          grpc_services: [{ envoy_grpc: { cluster_name: 'xds-grpc' }, ...shown }],
        },
        cds_config: ads,
        lds_config: ads,
      },
      static_resources: {
        clusters: [
          { ...grpcCluster('xds-grpc', grpcPort), ...(credentials ? { transport_socket: tlsSocket(credentials) } : {}) },
          ...(secretsAt === undefined ? [] : [grpcCluster('sds-grpc', secretsAt)]),
        ],
      },
    }
  }
}

/** TLS to the control plane, with a client certificate if there is one. */
function tlsSocket({ root, serverName, certificate }: NonNullable<EnvoyOptions['credentials']>): object {
  const text = (inline_string: string) => ({ inline_string })
  const named = { match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: serverName } }] }
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      sni: serverName,
      common_tls_context: {
        alpn_protocols: ['h2'],
        ...(certificate === 'secret' ? { tls_certificate_sds_secret_configs: [agentSecret('default')] } : {}),
        ...(typeof certificate === 'object'
          ? { tls_certificates: [{ certificate_chain: text(certificate.cert), private_key: text(certificate.key) }] }
          : {}),
        ...(root === 'secret'
          ? { combined_validation_context: { default_validation_context: named, validation_context_sds_secret_config: agentSecret('ROOTCA') } }
          : { validation_context: { trusted_ca: text(root), ...named } }),
      },
    },
  }
}

/** A secret from the SDS server. */
export const agentSecret = (name: string) => ({
  name,
  sds_config: {
    resource_api_version: 'V3',
    api_config_source: { api_type: 'GRPC', transport_api_version: 'V3', grpc_services: [{ envoy_grpc: { cluster_name: 'sds-grpc' } }] },
  },
})

const addressOf = (at: number | string) =>
  typeof at === 'string' ? { pipe: { path: at } } : { socket_address: { address: '127.0.0.1', port_value: at } }

/** A cluster with one gRPC server on this machine. */
const grpcCluster = (name: string, at: number | string) => ({
  name,
  type: 'STATIC',
  connect_timeout: '1s',
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: { connection_keepalive: { interval: '30s', timeout: '5s' } } },
    },
  },
  load_assignment: {
    cluster_name: name,
    endpoints: [{ lb_endpoints: [{ endpoint: { address: addressOf(at) } }] }],
  },
})
