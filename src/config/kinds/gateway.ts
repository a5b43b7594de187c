/** Gateway: which hosts the routers with certain labels serve on which ports. */
import { integer, list, type Read, record, reject, required, text } from '../shape.ts'
import { ip, labels, port } from '../shapes/hosts.ts'
import { serverTls } from '../shapes/tls.ts'
import { type Kind, networkingVersions } from './kind.ts'

const gatewayServer = record(
  {
    port: required(record({ number: required(port), protocol: required(text()), name: required(text()), targetPort: integer(0, 65_535) })),
    bind: ip,
    hosts: required(list(text(), { min: 1 })),
    tls: serverTls,
    name: text(),
    defaultEndpoint: text(),
  },
  (value, path, report) => {
    const protocol = value.port.protocol.toUpperCase()
    const secure = protocol === 'HTTPS' || protocol === 'TLS'
    if (secure && !value.tls) reject(report, `${path}.tls`, `required for protocol ${protocol}`)
    if (!secure && value.tls && !(protocol === 'HTTP' && value.tls.httpsRedirect && Object.keys(value.tls).length === 1))
      reject(report, `${path}.tls`, `not allowed for protocol ${protocol}`)
    const mode = value.tls?.mode ?? 'PASSTHROUGH'
    if (secure && (mode === 'SIMPLE' || mode === 'MUTUAL') && !value.tls?.credentialName && !(value.tls?.serverCertificate && value.tls.privateKey)) {
      reject(report, `${path}.tls`, `${mode} needs serverCertificate and privateKey, or credentialName`)
    }
    if (secure && mode === 'MUTUAL' && !value.tls?.credentialName && !value.tls?.caCertificates)
      reject(report, `${path}.tls.caCertificates`, 'required for MUTUAL')
    if (secure && mode === 'ISTIO_MUTUAL' && (value.tls?.serverCertificate || value.tls?.credentialName))
      reject(report, `${path}.tls`, 'ISTIO_MUTUAL takes no certificates')
  },
)

const spec = record({ servers: required(list(gatewayServer, { min: 1 })), selector: labels }, (value, path, report) => {
  const names = new Set<string>()
  for (const [index, server] of value.servers.entries()) {
    if (names.has(server.port.name)) reject(report, `${path}.servers[${index}].port.name`, `${server.port.name} is used twice`)
    names.add(server.port.name)
  }
})

/** The kind Gateway. */
export const gateway = {
  name: 'Gateway',
  plural: 'gateways',
  group: 'networking',
  versions: networkingVersions,
  spec,
  scope: 'mesh',
  selects: { proxies: 'routers', labels: ({ selector }) => selector },
} satisfies Kind<'Gateway', GatewaySpec>

export type GatewaySpec = Read<typeof spec>
export type GatewayServer = Read<typeof gatewayServer>
