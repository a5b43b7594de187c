/** PeerAuthentication: whether workloads accept connections with mutual TLS, without it, or both. */
import { map, oneOf, type Read, reject } from '../shape.ts'
import { isPort, selectedLabels, selector, strict } from '../shapes/policies.ts'
import { type Kind, securityVersions } from './kind.ts'

const mtls = strict({ mode: oneOf('UNSET', 'DISABLE', 'PERMISSIVE', 'STRICT') })

const shape = strict({ selector, mtls, portLevelMtls: map(mtls) }, (spec, path, report) => {
  const ports = Object.keys(spec.portLevelMtls ?? {})
  for (const port of ports) if (!isPort(port)) reject(report, `${path}.portLevelMtls[${port}]`, 'not a port number')
  if (new Set(ports.map(Number)).size < ports.length) reject(report, `${path}.portLevelMtls`, 'names a port twice')
  if (spec.portLevelMtls && ports.length === 0) reject(report, `${path}.portLevelMtls`, 'needs at least one port')
  if (ports.length > 0 && Object.keys(spec.selector?.matchLabels ?? {}).length === 0)
    reject(report, `${path}.portLevelMtls`, 'needs a selector: ports belong to workloads')
})

/** The kind PeerAuthentication. */
export const peerAuthentication = {
  name: 'PeerAuthentication',
  plural: 'peerauthentications',
  group: 'security',
  versions: securityVersions,
  spec: shape,
  scope: 'namespace or mesh',
  selects: { proxies: 'all', labels: selectedLabels },
} satisfies Kind<'PeerAuthentication', PeerAuthenticationSpec>

export type PeerAuthenticationSpec = Read<typeof shape>
