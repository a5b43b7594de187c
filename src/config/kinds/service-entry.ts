/** ServiceEntry: services and their endpoints (docs/resources.md, S1 to S4). */
import { isIp, isIpOrCidr } from '../addresses.ts'
import { integer, list, oneOf, type Read, record, reject, required, text } from '../shape.ts'
import { exportList } from '../shapes/export-list.ts'
import { port, selectorLabels } from '../shapes/hosts.ts'
import { workload, workloadAddress } from '../shapes/workload.ts'
import { type Kind, networkingVersions } from './kind.ts'

const spec = record(
  {
    hosts: required(list(text({ max: 253, pattern: /^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$/, what: 'a host name' }), { min: 1 })),
    addresses: list(workloadAddress),
    ports: list(record({ number: required(port), protocol: text(), name: required(text({ max: 256 })), targetPort: integer(0, 65_535) }), {
      max: 4096,
    }),
    location: oneOf('MESH_EXTERNAL', 'MESH_INTERNAL'),
    resolution: oneOf('NONE', 'STATIC', 'DNS', 'DNS_ROUND_ROBIN'),
    endpoints: list(workload),
    workloadSelector: record({ labels: selectorLabels }),
    exportTo: exportList,
    subjectAltNames: list(text()),
  },
  (value, path, report) => {
    const numbers = new Set<number>()
    const names = new Set<string>()
    for (const [index, { number, name }] of (value.ports ?? []).entries()) {
      if (numbers.has(number)) reject(report, `${path}.ports[${index}].number`, `${number} is used twice`)
      if (names.has(name)) reject(report, `${path}.ports[${index}].name`, `${name} is used twice`)
      numbers.add(number)
      names.add(name)
    }
    // Without an address, connections are told apart by the name that their client asks for.
    const nameless =
      value.hosts.length > 1 && !value.addresses?.length ? (value.ports ?? []).findIndex(({ protocol = '' }) => isNameless(protocol)) : -1
    if (nameless >= 0)
      report.warnings.push({
        path: `${path}.ports[${nameless}].protocol`,
        reason: 'several hosts without addresses need ports of HTTP or TLS: others cannot be told apart',
      })
    if (value.workloadSelector && value.endpoints?.length) reject(report, `${path}.endpoints`, 'excluded by workloadSelector')
    const resolution = value.resolution ?? 'NONE'
    if (resolution === 'NONE' && value.endpoints?.length) reject(report, `${path}.endpoints`, 'not allowed with resolution NONE')
    for (const [index, entry] of (value.addresses ?? []).entries()) {
      if (!isIpOrCidr(entry)) reject(report, `${path}.addresses[${index}]`, `${JSON.stringify(entry)} is not an IP address or CIDR`)
      else if (entry.includes('/') && resolution.startsWith('DNS'))
        reject(report, `${path}.addresses[${index}]`, 'a CIDR needs resolution NONE or STATIC')
    }
    for (const [index, endpoint] of (value.endpoints ?? []).entries()) {
      const at = `${path}.endpoints[${index}].address`
      if (!endpoint.address) {
        if (!endpoint.network) reject(report, at, 'required, but missing')
      } else if (resolution === 'STATIC' && !endpoint.address.startsWith('unix://') && !isIp(endpoint.address)) {
        reject(report, at, `${JSON.stringify(endpoint.address)} is not an IP address (resolution STATIC)`)
      } else if (resolution.startsWith('DNS') && !/^[A-Za-z0-9_.:-]+$/.test(endpoint.address)) {
        reject(report, at, `${JSON.stringify(endpoint.address)} is not a host name or IP address`)
      }
    }
    if (resolution.startsWith('DNS') && !value.endpoints?.length && !value.workloadSelector && value.hosts.some((name) => name.startsWith('*'))) {
      reject(report, `${path}.hosts`, 'a wildcard host needs endpoints when resolution is DNS')
    }
  },
)

/** Whether connections of a declared protocol do not say which host they are for. */
const isNameless = (protocol: string): boolean => /^(tcp|udp|mongo|redis|mysql|thrift)$/i.test(protocol)

/** The kind ServiceEntry. */
export const serviceEntry = {
  name: 'ServiceEntry',
  plural: 'serviceentries',
  group: 'networking',
  versions: networkingVersions,
  spec,
  scope: 'exported',
  selects: undefined,
} satisfies Kind<'ServiceEntry', ServiceEntrySpec>

export type ServiceEntrySpec = Read<typeof spec>
