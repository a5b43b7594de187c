/** Sidecar: the services visible to the sidecars of a namespace, and their listeners. */
import { canonicalAddress, isIp, unixFault } from '../addresses.ts'
import { integer, list, oneOf, type Read, record, reject, required, type Shape, text, unused } from '../shape.ts'
import { connectionPool } from '../shapes/connections.ts'
import { destination, ip, selectorLabels } from '../shapes/hosts.ts'
import { serverTls } from '../shapes/tls.ts'
import { type Kind, networkingVersions } from './kind.ts'

const listenerPort = record({ number: integer(0, 65_535), protocol: text(), name: text(), targetPort: integer(0, 65_535) })
const captureMode = oneOf('DEFAULT', 'IPTABLES', 'NONE')
const egressHost = text({ max: 512, pattern: /^(~|~?(\.|\*|[a-z0-9-]+))\/.+$/, what: 'namespace/host or ~namespace/host' })

const writtenBind = text({
  check: (value) =>
    value === '' || isIp(value) || /^unix:\/\/./.test(value)
      ? unixFault(value)
      : `${JSON.stringify(value.slice(0, 100))} is neither an IP address nor unix://path`,
  examples: ['', '127.0.0.1', 'unix:///tmp/x'],
})
const bind: Shape<string> = {
  form: writtenBind.form,
  read(value, path, report) {
    const given = writtenBind.read(value, path, report)
    return given === undefined ? undefined : canonicalAddress(given)
  },
}

const spec = record(
  {
    workloadSelector: record({ labels: selectorLabels, matchLabels: selectorLabels }),
    ingress: list(
      record({
        port: required(listenerPort),
        bind: ip,
        captureMode,
        defaultEndpoint: text({
          pattern: /^(127\.0\.0\.1:\d+|0\.0\.0\.0:\d+|\[::1?\]:\d+|unix:\/\/.+)$/,
          what: '127.0.0.1:port, 0.0.0.0:port or unix://path',
          check: (value) => (!value.startsWith('unix:') && Number(/\d+$/.exec(value)?.[0]) > 65_535 ? 'the port is above 65535' : unixFault(value)),
          examples: ['127.0.0.1:80', 'unix:///tmp/x', '[::1]:65535', '0.0.0.0:0'],
        }),
        tls: unused(serverTls, 'TLS is accepted as PeerAuthentication says, and not with other certificates'),
        connectionPool,
      }),
    ),
    inboundConnectionPool: connectionPool,
    egress: list(record({ port: listenerPort, bind, captureMode, hosts: required(list(egressHost, { min: 1 })) })),
    outboundTrafficPolicy: record({ mode: oneOf('REGISTRY_ONLY', 'ALLOW_ANY'), egressProxy: destination }),
  },
  (value, path, report) => {
    const { mode = 'REGISTRY_ONLY', egressProxy } = value.outboundTrafficPolicy ?? {}
    if (egressProxy && mode !== 'ALLOW_ANY') reject(report, `${path}.outboundTrafficPolicy.egressProxy`, 'needs mode ALLOW_ANY')
    const sockets = new Set<string>()
    for (const [index, entry] of (value.egress ?? []).entries()) {
      if (entry.bind?.startsWith('unix://') && sockets.has(entry.bind)) reject(report, `${path}.egress[${index}].bind`, `${entry.bind} is used twice`)
      sockets.add(entry.bind ?? '')
      if (!entry.port && index !== (value.egress?.length ?? 0) - 1)
        reject(report, `${path}.egress[${index}]`, 'the entry without a port must be the last')
    }
    for (const [index, entry] of (value.ingress ?? []).entries()) {
      if (!entry.port.number) reject(report, `${path}.ingress[${index}].port.number`, 'required, but missing')
    }
  },
)

/** The kind Sidecar. */
export const sidecar = {
  name: 'Sidecar',
  plural: 'sidecars',
  group: 'networking',
  versions: networkingVersions,
  spec,
  scope: 'namespace or mesh',
  selects: { proxies: 'sidecars', labels: ({ workloadSelector }) => workloadSelector?.labels ?? workloadSelector?.matchLabels },
} satisfies Kind<'Sidecar', SidecarSpec>

export type SidecarSpec = Read<typeof spec>
