/** The bootstrap of an Envoy without an agent, which is that of `examples/bare-envoy` for its proxy. */
import type { JsonObject } from '@bufbuild/protobuf'
import { isIp } from '../config/addresses.ts'

/** A proxy without an agent, and where its control plane is. */
export interface BareProxy {
  readonly role: string
  readonly address: string
  /** `<name>.<namespace>`. */
  readonly name: string
  readonly domain: string
  /** `<key>=<value>` each. */
  readonly labels: readonly string[]
  /** `<host>:<port>` of `--grpcAddr`. */
  readonly discovery: string
  readonly adminPort: number
}

/** Returns the bootstrap. Throws an Error that names what cannot be used. */
export function bareBootstrap({ role, address, name, domain, labels, discovery, adminPort }: BareProxy): JsonObject {
  const [, namespace] = /^[a-z0-9][a-z0-9.-]*?\.([a-z0-9-]+)$/.exec(name) ?? []
  if (namespace === undefined) throw new Error(`${JSON.stringify(name.slice(0, 100))} is not <name>.<namespace>`)
  if (role !== 'router' && role !== 'sidecar') throw new Error('--role: expected router or sidecar')
  if (!isIp(address)) throw new Error(`--ip: ${JSON.stringify(address.slice(0, 100))} is not an IP address`)
  const [, host = '', port = ''] = /^\[?(.+?)\]?:(\d{1,5})$/.exec(discovery) ?? []
  if (host === '') throw new Error(`--discovery: ${JSON.stringify(discovery.slice(0, 100))} is not <host>:<port>`)
  const ads = { ads: {}, resource_api_version: 'V3' }
  const socket = (at: string, number: number) => ({ socket_address: { address: at, port_value: number } })
  return {
    node: {
      id: [role, address, name, `${namespace}.svc.${domain}`].join('~'),
      cluster: name,
      metadata: { LABELS: labelsOf(labels), NAMESPACE: namespace },
    },
    admin: { address: socket('127.0.0.1', adminPort) },
    dynamic_resources: {
      ads_config: { api_type: 'DELTA_GRPC', transport_api_version: 'V3', grpc_services: [{ envoy_grpc: { cluster_name: 'discovery' } }] },
      cds_config: ads,
      lds_config: ads,
    },
    static_resources: {
      clusters: [
        {
          name: 'discovery',
          type: isIp(host) ? 'STATIC' : 'STRICT_DNS',
          connect_timeout: '5s',
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
              '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
              explicit_http_config: { http2_protocol_options: { connection_keepalive: { interval: '30s', timeout: '5s' } } },
            },
          },
          load_assignment: { cluster_name: 'discovery', endpoints: [{ lb_endpoints: [{ endpoint: { address: socket(host, Number(port)) } }] }] },
        },
      ],
    },
  }
}

function labelsOf(labels: readonly string[]): JsonObject {
  return Object.fromEntries(
    labels.map((label) => {
      const at = label.indexOf('=')
      if (at < 1) throw new Error(`--label: ${JSON.stringify(label.slice(0, 100))} is not <key>=<value>`)
      return [label.slice(0, at), label.slice(at + 1)]
    }),
  )
}
