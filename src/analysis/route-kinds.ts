/** Finds routes of VirtualServices that no connection takes, since ports and servers have connections of another protocol (docs/resources.md, G6, R11). */
import type { ConfigObject, Protocol, Service } from '../../protocols/data.ts'
import type { GatewayServer, GatewaySpec } from '../config/kinds/gateway.ts'
import type { VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { gatewayPath, isTlsServer, splitServerHost } from '../model/gateway-ports.ts'
import { completeHost, hostsOverlap } from '../model/match.ts'
import { isHttp, isOpaqueTls, isPlainHttp } from '../model/protocol.ts'
import type { Tell } from './finding.ts'
import { listed, servicesOf } from './references.ts'
import type { World } from './world.ts'

type Routes = ConfigObject<VirtualServiceSpec>
type Gateway = ConfigObject<GatewaySpec>

/** The kinds of routes, by the fields of a VirtualService. */
const routeKinds = ['http', 'tls', 'tcp'] as const
type RouteKind = (typeof routeKinds)[number]

/** The routes that connections take: those to a port of a service, or to a server of a Gateway, and what these are. */
interface Place {
  readonly kinds: readonly RouteKind[]
  readonly port: number
  readonly isServer: boolean
  readonly what: string
}

/** Whether a server of a Gateway serves a host of a VirtualService of a namespace. */
export const serverServes = ({ hosts }: GatewayServer, { namespace: own }: Gateway, host: string, namespace: string): boolean =>
  hosts.some((written) => {
    const server = splitServerHost(written, own)
    return (server.namespace === '*' || server.namespace === namespace) && hostsOverlap(server.host, host.toLowerCase())
  })

/** Tells the routes of a kind that nothing takes, and matches on ports where nothing does. Told only where all services and Gateways are known. */
export function checkRouteKinds(object: Routes, world: World, tell: Tell): void {
  const { spec } = object
  const places = placesOf(object, world)
  if (!places || places.length === 0) return
  const isOutside = spec.gateways?.every((name) => name !== 'mesh') === true && spec.gateways.length > 0
  for (const kind of routeKinds) {
    if (!spec[kind]?.length || (kind === 'http' && startsTls(spec, places))) continue
    const taken = places.filter(({ kinds }) => kinds.includes(kind))
    if (taken.length === 0) {
      const [first] = places as [Place]
      tell(
        'MESH0009',
        `spec.${kind}`,
        `${listed([...new Set(places.map(({ what }) => what))])}, so nothing takes these ${kind} routes: ${adviceOn(kind, first)}`,
      )
      continue
    }
    for (const [index, { match }] of spec[kind].entries())
      for (const [number, { port }] of (match ?? []).entries()) {
        if (port === undefined) continue
        const there = places.filter((place) => place.port === port)
        if (there.length === 0 && isOutside) {
          const ports = [...new Set(places.map((place) => String(place.port)))]
          tell(
            'IST0101',
            `spec.${kind}[${index}].match[${number}].port`,
            `no server of the Gateways for these hosts has the port ${port}, only ${listed(ports)}, so nothing matches`,
          )
        } else if (there.length > 0 && !there.some(({ kinds }) => kinds.includes(kind)))
          tell(
            'MESH0009',
            `spec.${kind}[${index}].match[${number}].port`,
            `${there[0]?.what}, so no ${kind} route applies to it: ${adviceOn(kind, there[0] as Place)}`,
          )
      }
  }
}

/** What to do with routes of a kind at a place that has others. */
function adviceOn(kind: RouteKind, { kinds, isServer }: Place): string {
  const others = kinds.length > 0 ? `write ${kinds.join(' or ')} routes, or ` : ''
  if (!isServer) return `${others}declare ${kind === 'http' ? 'HTTP' : kind === 'tls' ? 'TLS' : 'TCP'} as the protocol of the port`
  const server = { http: 'an HTTP server, or one that terminates TLS for HTTPS', tls: 'a server with the TLS mode PASSTHROUGH', tcp: 'a TCP server' }
  return `${others}bind them to ${server[kind]}`
}

/**
 * Whether requests in plain text may be meant, to which sidecars add TLS: they are routed to a named port, redirected or answered (docs/resources.md,
 * R5).
 */
const startsTls = ({ http = [] }: VirtualServiceSpec, places: readonly Place[]): boolean =>
  places.some(({ kinds, isServer }) => kinds.includes('tls') && !isServer) &&
  http.some(
    ({ route, redirect, directResponse, delegate }) =>
      redirect || directResponse || delegate || route?.some(({ destination }) => destination.port?.number !== undefined),
  )

/** The places where the routes of an object may apply; undefined: some of them are not known. */
function placesOf({ namespace, spec: { hosts = [], gateways = ['mesh'] } }: Routes, world: World): readonly Place[] | undefined {
  const places: Place[] = []
  const full = hosts.map((host) => completeHost(host, namespace, world.domain))
  for (const name of gateways.length > 0 ? gateways : ['mesh']) {
    if (name === 'mesh') {
      for (const host of full) {
        const services = host.startsWith('*') ? [] : servicesOf(host, world)
        if (services.length === 0) return undefined
        places.push(...services.flatMap(portPlaces))
      }
      continue
    }
    const gateway = world.object('Gateway', gatewayPath(name, namespace)) as Gateway | undefined
    if (!gateway) return undefined
    world.spend(full.length * gateway.spec.servers.reduce((sum, server) => sum + server.hosts.length, 0))
    for (const [index, server] of gateway.spec.servers.entries())
      if (full.some((host) => serverServes(server, gateway, host, namespace))) places.push(serverPlace(server, index, gateway))
  }
  return places
}

const portPlaces = ({ hostname, ports }: Service): Place[] =>
  ports.map(({ number, protocol }) => ({
    kinds: kindsOf(protocol),
    port: number,
    isServer: false,
    what: `the port ${number} of ${hostname} is ${protocol}`,
  }))

function kindsOf(protocol: Protocol): readonly RouteKind[] {
  if (isHttp(protocol)) return ['http']
  if (protocol === 'unknown') return ['http', 'tcp']
  if (protocol === 'udp') return []
  return isOpaqueTls(protocol) ? ['tls', 'tcp'] : ['tcp']
}

function serverPlace(server: GatewayServer, index: number, { namespace, name }: Gateway): Place {
  const [does, kinds] = useOf(server)
  return { kinds, port: server.port.number, isServer: true, what: `the server spec.servers[${index}] of the Gateway ${namespace}/${name} ${does}` }
}

/** What a server does with connections, and the kinds of routes that they take. */
function useOf({ port, tls }: GatewayServer): [does: string, kinds: readonly RouteKind[]] {
  const protocol = port.protocol.toUpperCase()
  if (!isTlsServer({ protocol })) return [`is for ${protocol}`, isPlainHttp(protocol) ? ['http'] : ['tcp']]
  const { mode = 'PASSTHROUGH' } = tls ?? {}
  if (mode === 'PASSTHROUGH') return ['passes TLS through', ['tls']]
  if (mode === 'AUTO_PASSTHROUGH') return ['routes by server name', []]
  return [`terminates TLS for ${protocol}`, protocol === 'HTTPS' ? ['http'] : ['tcp']]
}
