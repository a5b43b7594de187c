/** Meshes in which proxies see different configuration. Each shape adds documents to those of the plain mesh. */

/** The size of a mesh. Service `n` is in the namespace `n % namespaces`. */
export interface Size {
  readonly namespaces: number
  readonly services: number
}

/** The differences from the plain mesh. */
export interface Shape {
  readonly about: string
  /** Returns the documents of a namespace, given its number. */
  readonly documents?: (namespace: number, size: Size) => readonly string[]
  /** The text of the mesh configuration. */
  readonly mesh?: string
  /** Whether proxies of the namespace `viewer` see a service. By default all proxies see all services. */
  readonly sees?: (viewer: number, service: number, size: Size) => boolean
  /** What the figures of its changes are compared with: the plain mesh of its size, its own smallest size, or only its own goals. */
  readonly heldTo: 'plain' | 'smallest' | 'itself'
}

const hostOf = (service: number, { namespaces }: Size): string => `svc-${service}.ns-${service % namespaces}.svc.cluster.local`

const document = (kind: string, name: string, namespace: number, spec: string): string =>
  `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ns-${namespace}}\nspec: ${spec}\n`

interface Own {
  readonly name?: string
  readonly host?: string
  readonly exportTo?: string
  readonly ports?: string
  readonly resolution?: string
  /** Whether the service has a virtual address. */
  readonly address?: boolean
  readonly endpoints?: string
}

/**
 * Returns a service of a namespace in addition to the ten that each namespace has. By default it uses HTTP and only its own namespace sees
 * it.
 */
function own(namespace: number, options: Own = {}): string {
  const { name = 'private', exportTo = '["."]', ports = '[{number: 80, name: http, protocol: HTTP}]', resolution = 'STATIC' } = options
  const { host = `${name}.ns-${namespace}.svc.cluster.local`, address = true } = options
  const place = `${namespace >> 8}.${namespace & 255}`
  const endpoints = options.endpoints ?? `[{address: 10.200.${place}}]`
  const addresses = address ? `addresses: [241.0.${place}], ` : ''
  const rest = `location: MESH_INTERNAL, resolution: ${resolution}, ports: ${ports}, endpoints: ${endpoints}`
  return document('ServiceEntry', name, namespace, `{hosts: [${host}], ${addresses}exportTo: ${exportTo}, ${rest}}`)
}

/** Returns a service of another namespace that is never changed (mesh.change changes services whose numbers end in 0 or 1). */
const other = (namespace: number, { services }: Size): number => (namespace * 10 + 7) % services

const sidecar = (namespace: number, hosts: readonly string[]): string =>
  document('Sidecar', 'default', namespace, `{egress: [{hosts: [${hosts.map((host) => `"${host}"`).join(', ')}]}]}`)

/** Returns a Sidecar with which a namespace sees itself and the next two. */
const threeNamespaces = (namespace: number, { namespaces }: Size): string =>
  sidecar(namespace, ['./*', `ns-${(namespace + 1) % namespaces}/*`, `ns-${(namespace + 2) % namespaces}/*`])
const seesThree = (viewer: number, service: number, { namespaces }: Size): boolean => ((service % namespaces) - viewer + namespaces) % namespaces <= 2

const lua = 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua'
const httpFilter = (namespace: number): string => {
  const manager = '{name: envoy.filters.network.http_connection_manager, subFilter: {name: envoy.filters.http.router}}'
  const match = `{context: SIDECAR_OUTBOUND, listener: {filterChain: {filter: ${manager}}}}`
  const code = `function envoy_on_response(handle) handle:headers():add('x-namespace', '${namespace}') end`
  const value = `{name: envoy.filters.http.lua, typed_config: {'@type': ${lua}, default_source_code: {inline_string: "${code}"}}}`
  const patch = `{operation: INSERT_BEFORE, value: ${value}}`
  return document('EnvoyFilter', 'filter', namespace, `{configPatches: [{applyTo: HTTP_FILTER, match: ${match}, patch: ${patch}}]}`).replace(
    'mesh.io/v1\n',
    'mesh.io/v1alpha3\n',
  )
}

/** Returns one mesh-wide route that only some callers match. */
const callerRoute = (caller: string) => (namespace: number, size: Size) => {
  const host = hostOf(7, size)
  const http = `[{match: [{uri: {prefix: /caller}, ${caller}}], timeout: 1s, route: [{destination: {host: ${host}}}]}, {route: [{destination: {host: ${host}}}]}]`
  return namespace === 7 % size.namespaces ? [document('VirtualService', 'caller', namespace, `{hosts: [${host}], http: ${http}}`)] : []
}

const all = {
  plain: { about: 'all see the same', heldTo: 'plain' },
  private: { about: 'each namespace has a service that only it sees', documents: (namespace) => [own(namespace)], heldTo: 'plain' },
  sidecars: {
    about: 'each namespace sees itself and the next two',
    documents: (namespace, size) => [threeNamespaces(namespace, size)],
    sees: seesThree,
    heldTo: 'smallest',
  },
  'ten-hosts': {
    about: 'each namespace has a Sidecar that names ten hosts of ten namespaces',
    documents: (namespace, size) => [
      sidecar(
        namespace,
        Array.from({ length: 10 }, (_, index) => `*/${hostOf((namespace * 10 + index) % size.services, size)}`),
      ),
    ],
    sees: (viewer, service) => Math.floor(service / 10) === viewer,
    heldTo: 'smallest',
  },
  'own-rules': {
    about: "each namespace has a DestinationRule for a host of another's",
    documents: (namespace, size) => [
      document(
        'DestinationRule',
        'own',
        namespace,
        `{host: ${hostOf(other(namespace, size), size)}, trafficPolicy: {connectionPool: {tcp: {maxConnections: ${100 + namespace}}}}}`,
      ),
    ],
    heldTo: 'plain',
  },
  'same-host': {
    about: 'each namespace has a service under the host name of one of another namespace',
    documents: (namespace, size) => {
      const service = other(namespace, size)
      const host = hostOf(service, size)
      return service % size.namespaces === namespace ? [] : [own(namespace, { name: 'same', host, exportTo: '["*"]' })]
    },
    heldTo: 'plain',
  },
  'named-exports': {
    about: 'each namespace has a service that it and the next one see',
    documents: (namespace, { namespaces }) => [own(namespace, { exportTo: `[".", "ns-${(namespace + 1) % namespaces}"]` })],
    heldTo: 'plain',
  },
  'envoy-filter': {
    about: 'each namespace has an EnvoyFilter that adds an HTTP filter',
    documents: (namespace) => [httpFilter(namespace)],
    heldTo: 'plain',
  },
  'source-namespace': { about: 'one VirtualService matches on sourceNamespace', documents: callerRoute('sourceNamespace: ns-1'), heldTo: 'plain' },
  'source-labels': { about: 'one VirtualService matches on sourceLabels', documents: callerRoute('sourceLabels: {app: client-1}'), heldTo: 'plain' },
  'default-export': {
    about: 'the mesh configuration exports services, routes and rules to their own namespace',
    mesh: 'defaultServiceExportTo: ["."]\ndefaultVirtualServiceExportTo: ["."]\ndefaultDestinationRuleExportTo: ["."]\n',
    sees: (viewer, service, { namespaces }) => service % namespaces === viewer,
    heldTo: 'plain',
  },
  dns: {
    about: 'each namespace has a service that only it sees, resolved by DNS',
    documents: (namespace) => [own(namespace, { resolution: 'DNS', endpoints: `[{address: private-${namespace}.example.com}]` })],
    heldTo: 'plain',
  },
  tcp: {
    about: 'each namespace has two TCP services that only it sees: on a shared port, and at an address of its own',
    documents: (namespace) => [
      own(namespace, { name: 'shared-port', ports: '[{number: 5432, name: tcp, protocol: TCP}]', address: false }),
      own(namespace, { name: 'own-address', ports: '[{number: 6380, name: tcp, protocol: TCP}]' }),
    ],
    heldTo: 'plain',
  },
  headless: {
    about: 'each namespace has a service that only it sees, without an address and resolved by its callers',
    documents: (namespace) => [own(namespace, { resolution: 'NONE', address: false, endpoints: '[]' })],
    heldTo: 'plain',
  },
  sniffed: {
    about: 'each namespace has a service that only it sees, of no declared protocol',
    documents: (namespace) => [own(namespace, { ports: '[{number: 8080, name: any}]' })],
    heldTo: 'plain',
  },
  mixed: {
    about: 'every second namespace has a service that only it sees, the others see themselves and the next two',
    documents: (namespace, size) => [namespace % 2 === 0 ? own(namespace) : threeNamespaces(namespace, size)],
    sees: (viewer, service, size) => viewer % 2 === 0 || seesThree(viewer, service, size),
    heldTo: 'itself',
  },
} as const satisfies Record<string, Shape>

/** The name of a shape. */
export type ShapeName = keyof typeof all

/** All shapes by name. */
export const shapes: Readonly<Record<ShapeName, Shape>> = all

/** Returns the configuration files by name that a shape adds to the plain mesh. */
export function shapeFiles({ documents }: Shape, size: Size): [name: string, text: string][] {
  return Array.from({ length: size.namespaces }, (_, namespace) => namespace).flatMap((namespace): [string, string][] => {
    const texts = documents?.(namespace, size) ?? []
    return texts.length === 0 ? [] : [[`shape-${namespace}.yaml`, texts.join('---\n')]]
  })
}

/** Returns the namespaces whose proxies see a service. */
export const viewersOf = ({ sees }: Shape, service: number, size: Size): number[] =>
  Array.from({ length: size.namespaces }, (_, viewer) => viewer).filter((viewer) => !sees || sees(viewer, service, size))
