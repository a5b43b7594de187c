/** Generates the measured mesh and the changes made to it. */

interface EntryOptions {
  readonly name?: string
  /** Additional lines of endpoints. */
  readonly endpoints?: string
  /** Additional metadata. */
  readonly annotations?: string
}

const entry = (
  index: number,
  namespaces: number,
  { name = `svc-${index}`, endpoints = '', annotations = '' }: EntryOptions = {},
) => `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: ns-${index % namespaces}${annotations}}
spec:
  hosts: [${name}.ns-${index % namespaces}.svc.cluster.local]
  addresses: [240.${(index >> 16) & 15}.${(index >> 8) & 255}.${index & 255}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 9090, name: grpc, protocol: GRPC}]
  endpoints:
${[0, 1, 2, 3, 4].map((slot) => `  - {address: 10.${10 + slot}.${(index >> 8) & 255}.${index & 255}, labels: {app: ${name}, version: v${(slot % 2) + 1}}}`).join('\n')}
${endpoints}`

const virtualService = (index: number, namespaces: number, prefix: string) => {
  const host = `svc-${index}.ns-${index % namespaces}.svc.cluster.local`
  return `apiVersion: networking.mesh.io/v1
kind: VirtualService
metadata: {name: vs-${index}, namespace: ns-${index % namespaces}}
spec:
  hosts: [${host}]
  http:
  - match: [{uri: {prefix: /${prefix}}}]
    route: [{destination: {host: ${host}, subset: v1}, weight: 90}, {destination: {host: ${host}, subset: v2}, weight: 10}]
    timeout: 5s
    retries: {attempts: 3, perTryTimeout: 2s}
  - route: [{destination: {host: ${host}}}]
`
}

const destinationRule = (index: number, namespaces: number) => `apiVersion: networking.mesh.io/v1
kind: DestinationRule
metadata: {name: dr-${index}, namespace: ns-${index % namespaces}}
spec:
  host: svc-${index}.ns-${index % namespaces}.svc.cluster.local
  trafficPolicy: {connectionPool: {tcp: {maxConnections: 100}}, outlierDetection: {consecutive5xxErrors: 5, interval: 10s}}
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
`

/** Returns configuration files by name: a service each, and routes and subsets for every tenth service. */
export function files(services: number, namespaces: number): [name: string, text: string][] {
  return Array.from({ length: services }, (_, index) => index).flatMap((index): [string, string][] => [
    [`se-${index}.yaml`, entry(index, namespaces)],
    ...(index % 10 === 0
      ? ([
          [`vs-${index}.yaml`, virtualService(index, namespaces, 'initial')],
          [`dr-${index}.yaml`, destinationRule(index, namespaces)],
        ] as [string, string][])
      : []),
  ])
}

/** The kinds of changes that are measured. */
export const changeKinds = ['endpoint change', 'route change', 'service added', 'service removed', 'policy change', 'nothing visible'] as const
export type ChangeKind = (typeof changeKinds)[number]

/** A change: the file to write or, without text, to remove, and a text that occurs in the responses that the change causes. */
export interface MeshChange {
  readonly file: string
  readonly text: string | undefined
  readonly marker: string | undefined
  /** The number of the changed service, if it is one of the initial ones. */
  readonly service?: number
}

/** Returns the change of a round. */
export function change(kind: ChangeKind, round: number, services: number, namespaces: number): MeshChange {
  const index = (round * 10) % services
  switch (kind) {
    case 'endpoint change': {
      const marker = `10.2${String(round % 50).padStart(2, '0')}.${1 + (Math.floor(round / 50) % 250)}.${100 + (round % 100)}`
      const text = entry(index + 1, namespaces, { endpoints: `  - {address: ${marker}, labels: {app: svc-${index + 1}, version: v1}}\n` })
      return { file: `se-${index + 1}.yaml`, text, marker, service: index + 1 }
    }
    case 'route change': {
      const marker = `mark-${round}-${Date.now()}`
      return { file: `vs-${index}.yaml`, text: virtualService(index, namespaces, marker), marker, service: index }
    }
    case 'service added': {
      const marker = `new-${round}-${Date.now()}`
      return { file: `new-${round}.yaml`, text: entry(services + round, namespaces, { name: marker }), marker }
    }
    case 'service removed':
      return { file: `new-${round}.yaml`, text: undefined, marker: undefined }
    case 'policy change': {
      // In the root namespace a policy selects every workload.
      const marker = `mark-${round}-${Date.now()}`
      const rule = `{from: [{source: {principals: [cluster.local/ns/x/sa/${marker}]}}]}`
      const text = `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: policy, namespace: mesh-system}\nspec: {action: DENY, rules: [${rule}]}\n`
      return { file: 'policy.yaml', text, marker }
    }
    case 'nothing visible':
      return {
        file: `se-${index + 2}.yaml`,
        text: entry(index + 2, namespaces, { annotations: `, annotations: {note: round-${round}}` }),
        marker: undefined,
      }
  }
}

/** Returns a large mesh, of which the namespace `scoped` sees ten services. */
export function scopedFiles(services: number, endpoints: number): [name: string, text: string][] {
  const list = (index: number) =>
    Array.from({ length: endpoints }, (_, slot) => `{address: 10.${slot}.${(index >> 8) & 255}.${index & 255}}`).join(', ')
  const service = (index: number) => `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: svc-${index}, namespace: ns-${index % 10}}
spec:
  hosts: [svc-${index}.ns-${index % 10}.svc.cluster.local]
  addresses: [240.${(index >> 16) & 15}.${(index >> 8) & 255}.${index & 255}]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 9090, name: grpc, protocol: GRPC}]
  endpoints: [${list(index)}]
`
  const seen = Array.from({ length: 10 }, (_, index) => `"*/svc-${index}.ns-${index}.svc.cluster.local"`)
  const sidecar = `apiVersion: networking.mesh.io/v1
kind: Sidecar
metadata: {name: default, namespace: scoped}
spec: {egress: [{hosts: [${seen.join(', ')}]}]}
`
  const files: [string, string][] = Array.from({ length: services }, (_, index) => [`svc-${index}.yaml`, service(index)])
  return [['scope.yaml', sidecar], ...files]
}

/**
 * Returns one file with `count` objects of all kinds, all different from those of the previous round, and the marker of the last object.
 */
export function manyChanges(round: number, count: number, namespaces: number): { marker: string; text: string } {
  const marker = `soak-${round}-${Date.now()}`
  const documents = Array.from({ length: count }, (_, index) => changing(round, index, namespaces))
  return { marker, text: [...documents, entry(count, namespaces, { name: marker })].join('---\n') }
}

/**
 * Returns an object of a round: services with varying exports, rules, routes, Sidecars and policies, under names that appear and disappear.
 */
function changing(round: number, index: number, namespaces: number): string {
  const namespace = `ns-${index % namespaces}`
  const name = `changing-${index}-${(round + index) % 7}`
  const service = `changing-${index - (index % 5)}-${(round + index - (index % 5)) % 7}`
  const host = `${service}.ns-${(index - (index % 5)) % namespaces}.svc.cluster.local`
  const document = (kind: string, spec: string, group = 'networking') =>
    `apiVersion: ${group}.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}, labels: {round: "${round}"}}\nspec: ${spec}\n`
  const exportTo = ['["*"]', '["."]', `["ns-${round % namespaces}"]`, '["."]'][round % 4]
  switch (index % 5) {
    case 0: {
      const address = `10.${50 + (index % 50)}.${(round >> 8) & 255}.${round & 255}`
      const ports = `[{number: ${8000 + (index % 40)}, name: http, protocol: HTTP}]`
      return document(
        'ServiceEntry',
        `{hosts: [${host}], exportTo: ${exportTo}, location: MESH_INTERNAL, resolution: STATIC, ports: ${ports}, endpoints: [{address: ${address}, labels: {version: v${round % 3}}}]}`,
      )
    }
    case 1:
      return document('DestinationRule', `{host: ${host}, exportTo: ${exportTo}, subsets: [{name: s${round % 3}, labels: {version: v${round % 3}}}]}`)
    case 2:
      return document(
        'VirtualService',
        `{hosts: [${host}], exportTo: ${exportTo}, http: [{match: [{uri: {prefix: /${round}}}], route: [{destination: {host: ${host}}}]}]}`,
      )
    case 3:
      return document('Sidecar', `{workloadSelector: {labels: {app: app-${round % 40}}}, egress: [{hosts: ["./*", "*/${host}"]}]}`)
    default:
      return document(
        'AuthorizationPolicy',
        `{selector: {matchLabels: {version: v${round % 3}}}, rules: [{to: [{operation: {paths: ["/${round}"]}}]}]}`,
        'security',
      )
  }
}
