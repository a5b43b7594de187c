/** Gateway: the hosts and ports that the selected routers serve. */
import { isPlainHttp } from '../../model/protocol.ts'
import { integer, list, type Read, type Report, record, reject, required, text, unused } from '../shape.ts'
import { ip, port, selectorLabels } from '../shapes/hosts.ts'
import { needsAuthorities, serverTls, tellParameters } from '../shapes/tls.ts'
import { type Kind, networkingVersions } from './kind.ts'

/** `<host>` or `<namespace>/<host>`. The namespace may be `.` (that of the Gateway) or `*` (any), the host may be `*` or `*.<suffix>`. */
const serverHost = text({
  max: 320,
  pattern: /^(([.*]|[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)\/)?(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]+)$/,
  what: 'a host, or a namespace and a host',
  examples: ['*', 'a.example', 'ns/*.example', './a.example', '*/a.example'],
})

const gatewayServer = record(
  {
    port: required(record({ number: required(port), protocol: required(text()), name: required(text()), targetPort: integer(0, 65_535) })),
    bind: ip,
    hosts: required(list(serverHost, { min: 1 })),
    tls: serverTls,
    name: text({ max: 1024 }),
    defaultEndpoint: unused(text()),
  },
  (value, path, report) => {
    const protocol = value.port.protocol.toUpperCase()
    const secure = protocol === 'HTTPS' || protocol === 'TLS'
    if (secure && !value.tls) reject(report, `${path}.tls`, `required for protocol ${protocol}`)
    const isRedirect = value.tls?.httpsRedirect && (value.tls.mode ?? 'PASSTHROUGH') === 'PASSTHROUGH' && !hasCertificate(value.tls)
    if (!secure && value.tls && !(isPlainHttp(protocol) && isRedirect)) reject(report, `${path}.tls`, `not allowed for protocol ${protocol}`)
    if (secure && value.tls?.httpsRedirect)
      report.warnings.push({ path: `${path}.tls.httpsRedirect`, reason: `has no effect: it is for servers in plain text, not for ${protocol}` })
    if (!secure || !value.tls) return
    checkMode(value.tls, `${path}.tls`, report)
    tellParameters(value.tls, `${path}.tls`, report)
  },
)

type ServerTls = Read<typeof serverTls>

const hasCertificate = ({ serverCertificate, privateKey, credentialName, credentialNames, tlsCertificates }: ServerTls): boolean =>
  Boolean(serverCertificate || privateKey || credentialName || credentialNames?.length || tlsCertificates?.length)

/** Checks the fields that a TLS mode requires or excludes. */
function checkMode(tls: ServerTls, path: string, report: Report): void {
  const { mode = 'PASSTHROUGH', credentialName, credentialNames, tlsCertificates } = tls
  const isNamed = Boolean(credentialName || credentialNames?.length)
  if (mode === 'SIMPLE' || mode === 'MUTUAL' || mode === 'OPTIONAL_MUTUAL') {
    const pairs = tlsCertificates?.length ? tlsCertificates : [tls]
    if (!isNamed && !pairs.every(({ serverCertificate, privateKey }) => serverCertificate && privateKey))
      reject(report, path, `${mode} needs serverCertificate and privateKey, or credentialName`)
  }
  const authorities = tls.caCertificates || tlsCertificates?.some(({ caCertificates }) => caCertificates)
  if (mode === 'MUTUAL' && !isNamed && !authorities && !tls.caCertCredentialName) reject(report, `${path}.caCertificates`, 'required for MUTUAL')
  if (mode === 'MESH_MUTUAL' && hasCertificate(tls)) reject(report, path, 'MESH_MUTUAL takes no certificates')
}

/** Whether client certificates are verified with authorities from a file. */
function verifiesWithFile({ mode, caCertificates, tlsCertificates = [], credentialName, credentialNames, caCertCredentialName }: ServerTls): boolean {
  const isNamed = Boolean(credentialName || credentialNames?.length || caCertCredentialName)
  const hasFile = Boolean(caCertificates) || tlsCertificates.some((pair) => pair.caCertificates)
  return (mode === 'MUTUAL' || mode === 'OPTIONAL_MUTUAL') && hasFile && !isNamed
}

const spec = record({ servers: required(list(gatewayServer, { min: 1 })), selector: selectorLabels }, (value, path, report) => {
  const names = new Set<string>()
  for (const [index, server] of value.servers.entries()) {
    if (server.port.name === '') reject(report, `${path}.servers[${index}].port.name`, 'required, but empty')
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
  remarks: ({ spec: { servers } }) =>
    servers.flatMap(({ tls }, index) =>
      tls?.caCrl && !verifiesWithFile(tls) ? [{ path: `spec.servers[${index}].tls.caCrl`, reason: needsAuthorities }] : [],
    ),
  selects: { proxies: 'routers', labels: ({ selector }) => selector },
} satisfies Kind<'Gateway', GatewaySpec>

export type GatewaySpec = Read<typeof spec>
export type GatewayServer = Read<typeof gatewayServer>
