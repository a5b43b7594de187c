/**
 * The explanation of a resource of a proxy. The push queue gathers the part of the mesh that may concern the resource; a thread of a pool makes
 * the resource from that part, with and without each object.
 */
import type { ConfigObject, EndpointSlice, ProxyNode, RegistryId, Service } from '../data.ts'
import type { DescribedRequest, SentRequest } from './described-request.ts'
import type { PassedSettings } from './passed-settings.ts'

/** A service of a registry without objects of its own. */
export interface RegistryService {
  readonly registry: RegistryId
  /** `<namespace>/<hostname>`. */
  readonly key: string
  readonly service: Service
  readonly slices: readonly EndpointSlice[]
}

/** A fault or loss of the present configuration. */
export interface ToldFault {
  readonly resource: string
  readonly objects: readonly string[]
  readonly reason: string
  readonly consequence: string
}

/** The part of the mesh that may concern a resource of a proxy. */
export interface ExplainInput extends PassedSettings {
  readonly node: ProxyNode
  readonly typeUrl: string
  readonly name: string
  /** Whether the proxy has a resource of this name, and a digest of it; undefined for a large one. */
  readonly exists: boolean
  readonly digest: string | undefined
  readonly objects: readonly ConfigObject[]
  /** Definitions of these objects by other sources, which do not count. */
  readonly leftOut: readonly { readonly object: ConfigObject; readonly reason: string }[]
  readonly services: readonly RegistryService[]
  /** The number of hosts and VirtualServices that may concern the resource too and were left out, because there are too many. */
  readonly otherHosts: number
  /** Faults and losses that name one of the objects. */
  readonly told: readonly ToldFault[]
}

/** An object and what it has to do with the resource. */
export interface ExplainedObject {
  /** The key of a configuration object, or of a service of a registry that of a kind `Service`, with its host as the name. */
  readonly key: string
  readonly namespace: string
  readonly source: string
  readonly cluster: string
  readonly uid: string
  readonly version: string
  readonly place: string
  /**
   * What would become of the resource without the object: `removed`, `changed`; `added`: it has no resource of this name because of the
   * object; `same`: it was considered and left out.
   */
  readonly without: 'removed' | 'changed' | 'added' | 'same'
  /** Why it was left out; empty for the others. */
  readonly reason: string
}

/** The reason where no decision left an object out: others have the same effect, or it says nothing about the resource. */
export const noEffect = 'the resource is the same without it'

/** How the reason of a VirtualService ends that has no part in routes of a gateway, since its Gateways have other ports. */
export const ofAnotherPort = 'is of another'

/** The explanation of a resource. */
export interface Explained {
  readonly exists: boolean
  /**
   * Whether what was made from the gathered objects is what the proxy has. Otherwise something else of the mesh has a part in it, or the proxy
   * refused something.
   */
  readonly isComplete: boolean
  readonly objects: readonly ExplainedObject[]
  /** The number of objects that were not tried for lack of time. */
  readonly untried: number
  readonly otherHosts: number
}

/** What a proxy has been sent, and a request that it is to route. */
export interface RoutingInput {
  readonly request: SentRequest
  /** The namespace of the proxy, and the DNS domain of the mesh: short names of hosts are completed by them. */
  readonly namespace: string
  readonly domain: string
  /** Whether the proxy is a gateway, whose policies are judged by themselves. */
  readonly isGateway: boolean
  /** Its release of Envoy, `[major, minor]`; undefined: it is not known, and the newest is taken. */
  readonly envoy: readonly [number, number] | undefined
  /** The secrets that the proxy asks for and that do not exist for it. */
  readonly missingSecrets: readonly string[]
  /** By type URL; elements of responses in base64. */
  readonly resources: Readonly<Record<string, readonly { readonly name: string; readonly element: string }[]>>
}

/** A route that was tried for a request. */
export interface TriedRoute {
  readonly name: string
  /** The VirtualService that it was made from, `<namespace>/<name>`; empty: none. */
  readonly virtualService: string
  /** The match of the route as JSON, by which its rule is found. */
  readonly match: string
  /** Whether it takes the request. */
  readonly matched: boolean
  /** The first condition that does not hold, the route that takes the request before it, or what is not known. */
  readonly because: string
}

/** A cluster that a request is sent to. */
export interface RoutedCluster {
  readonly name: string
  readonly weight: number
  /** What the connection to an endpoint is: `plain text`, `TLS` or `mutual TLS of the mesh`, with the numbers of endpoints where they differ. */
  readonly tls: string
  readonly endpoints: number
  /** Those that are not said to be unhealthy or draining. What the proxy finds out by itself is not known. */
  readonly healthy: number
  /** Why nothing can be sent to it; empty: it can. */
  readonly because: string
}

/** What arrives at the endpoints of a cluster. */
export interface Arrival {
  readonly cluster: string
  /** Those of which it is known where they are: at most some hundreds. */
  readonly endpoints: readonly {
    readonly address: string
    readonly port: number
    /** Whether the connection is mutual TLS of the mesh, by which the destination knows the identity of the caller. */
    readonly isIdentified: boolean
    /** The server name of the TLS connection to it; empty: in plain text, or without a name. */
    readonly sni: string
  }[]
  /** The request as it is sent, or the connection without requests (`protocol`). Who is the peer there, and at which address, is not known yet. */
  readonly request: DescribedRequest
  /** Whose TLS the workload is to read. Mutual TLS of the mesh ends at its proxy. */
  readonly tlsOf: readonly ('client' | 'proxy')[]
}

/** Where a proxy sends a request. */
export interface Routing {
  /** The status that the client receives: 200 stands for any answer of the destination, 0 for a closed connection. */
  readonly status: number
  /** What decides the status: `listener`, `virtual host`, `route`, `cluster` or `destination`; `unknown` where what happens is not known here. */
  readonly decidedBy: string
  readonly reason: string
  /** Empty: none takes the connection. */
  readonly listener: string
  readonly filterChain: string
  readonly routes: string
  readonly virtualHost: string
  /** The domain of the virtual host by which it has the host of the request. */
  readonly domain: string
  /** The routes of the virtual host in order, and the number of further ones. */
  readonly tried: readonly TriedRoute[]
  readonly untold: number
  readonly clusters: readonly RoutedCluster[]
  /** What arrives at the clusters that can take the request. */
  readonly arrivals: readonly Arrival[]
  /** What the proxy does with the request, and with the answer of the destination. */
  readonly changes: readonly string[]
  /** The filters on the way that may answer or change the request, and whose work is not known. */
  readonly unjudged: readonly string[]
  /** Whether a service or a VirtualService that the proxy sees has the host. */
  readonly isKnown: boolean
  /** The names that the host may stand for: itself, and full names. */
  readonly hosts: readonly string[]
  /** What the listener reads from the connection: requests, or bytes. Its policies judge the one or the other. */
  readonly protocol: DescribedRequest['protocol']
  /** What is taken for granted of the client. */
  readonly assumed: readonly string[]
}
