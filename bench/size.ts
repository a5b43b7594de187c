/** The changes of the set `size`: what one change costs the push queue must not depend on the number of services. */

import { type MockChange, type MockService, type MockSettings, mockRollout, mockServices } from '../src/registry/mock.ts'

/** The size of a mesh. Service `n` is in the namespace `n % namespaces`. */
export interface MeshSize {
  readonly services: number
  readonly namespaces: number
}

/** The YAML documents of objects to set, and of objects to remove; and slices of the services of the scenario's registry. */
export interface SizeChange {
  readonly set?: readonly string[]
  readonly remove?: readonly string[]
  readonly slices?: readonly MockChange[]
}

/** A kind of change. */
export interface SizeScenario {
  readonly name: string
  /** Returns documents that are part of the mesh from the start, in addition to its services. */
  readonly mesh?: (size: MeshSize) => readonly string[]
  /** Returns the services of a registry that are part of the mesh from the start. */
  readonly registry?: () => readonly MockService[]
  /** Whether these documents make other changes cost more, so that the scenario needs a mesh of its own. */
  readonly isApart?: boolean
  /** Returns the changes of a round. Each is a push of its own; the figure is the mean of a round's changes. */
  readonly changes: (round: number, size: MeshSize) => readonly SizeChange[]
}

const document = (kind: string, name: string, namespace: string, spec: object, api = 'networking.mesh.io/v1'): string =>
  JSON.stringify({ apiVersion: api, kind, metadata: { name, namespace }, spec })

const namespaceOf = (service: number, { namespaces }: MeshSize): string => `ns-${service % namespaces}`
const hostOf = (service: number, size: MeshSize): string => `svc-${service}.${namespaceOf(service, size)}.svc.cluster.local`
/** The number of a service that a round changes. Every tenth service has a VirtualService and a DestinationRule. */
const changed = (round: number, { services }: MeshSize): number => (round * 10) % services

interface Options {
  readonly name?: string
  readonly ports?: readonly object[]
}

const http = { number: 80, name: 'http', protocol: 'HTTP' }
const grpc = { number: 9090, name: 'grpc', protocol: 'GRPC' }

function service(index: number, size: MeshSize, { name = `svc-${index}`, ports = [http, grpc] }: Options = {}): string {
  const namespace = namespaceOf(index, size)
  const endpoints = Array.from({ length: 10 }, (_, slot) => ({
    address: `10.${10 + slot}.${(index >> 8) & 255}.${index & 255}`,
    labels: { app: name, version: `v${(slot % 2) + 1}` },
  }))
  const addresses = [`241.${(index >> 16) & 15}.${(index >> 8) & 255}.${index & 255}`]
  const spec = { hosts: [`${name}.${namespace}.svc.cluster.local`], addresses, location: 'MESH_INTERNAL', resolution: 'STATIC', ports, endpoints }
  return document('ServiceEntry', name, namespace, spec)
}

function route(index: number, size: MeshSize, prefix: string): string {
  const destination = { host: hostOf(index, size) }
  const rules = [{ match: [{ uri: { prefix: `/${prefix}` } }], timeout: '5s', route: [{ destination }] }, { route: [{ destination }] }]
  return document('VirtualService', `vs-${index}`, namespaceOf(index, size), { hosts: [destination.host], http: rules })
}

const rule = (index: number, size: MeshSize, maxConnections: number): string =>
  document('DestinationRule', `dr-${index}`, namespaceOf(index, size), {
    host: hostOf(index, size),
    trafficPolicy: { connectionPool: { tcp: { maxConnections } } },
    subsets: [{ name: 'v1', labels: { version: 'v1' } }],
  })

/** Returns the documents of the mesh: services of ten endpoints each, and a route and a rule for every tenth. */
export const meshDocuments = (size: MeshSize): string[] =>
  Array.from({ length: size.services }, (_, index) => [
    service(index, size),
    ...(index % 10 === 0 ? [route(index, size, 'initial'), rule(index, size, 100)] : []),
  ]).flat()

const workloads = 4000
const selecting = 200

const workload = (index: number, version: string): string =>
  document('WorkloadEntry', `workload-${index}`, 'machines', {
    address: `10.50.${index >> 8}.${index & 255}`,
    labels: { app: `machine-${index % selecting}`, version },
  })

const machines = (): string[] => [
  ...Array.from({ length: workloads }, (_, index) => workload(index, 'v1')),
  ...Array.from({ length: selecting }, (_, index) =>
    document('ServiceEntry', `machine-${index}`, 'machines', {
      hosts: [`machine-${index}.machines.svc.cluster.local`],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      ports: [http],
      workloadSelector: { labels: { app: `machine-${index}` } },
    }),
  ),
]

const policy = (round: number): string =>
  document(
    'AuthorizationPolicy',
    'changing',
    'ns-0',
    { selector: { matchLabels: { app: 'client-0' } }, rules: [{ to: [{ operation: { paths: [`/${round}`] } }] }] },
    'security.mesh.io/v1',
  )

const gateway = (round: number): string =>
  document('Gateway', 'edge', 'ns-0', {
    selector: { istio: 'edge' },
    servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: [`edge-${round % 2}.example.com`, 'edge.example.com'] }],
  })

const edgeRoute = (index: number): string =>
  document('VirtualService', `edge-${index}`, 'ns-0', {
    hosts: ['edge.example.com'],
    gateways: ['edge'],
    http: [{ match: [{ uri: { prefix: `/${index}` } }], route: [{ destination: { host: 'svc-0.ns-0.svc.cluster.local' } }] }],
  })

const sidecar = (round: number): string =>
  document('Sidecar', 'scoped', 'ns-1', {
    workloadSelector: { labels: { app: 'client-1' } },
    egress: [{ hosts: ['./*', `ns-${2 + (round % 2)}/*`] }],
  })

const envoyFilter = (round: number): string =>
  document(
    'EnvoyFilter',
    'changing',
    'ns-2',
    {
      workloadSelector: { labels: { app: 'client-2' } },
      configPatches: [
        {
          applyTo: 'CLUSTER',
          match: { context: 'SIDECAR_OUTBOUND', cluster: { service: 'svc-2.ns-2.svc.cluster.local' } },
          patch: { operation: 'MERGE', value: { connect_timeout: `${1 + (round % 5)}s` } },
        },
      ],
    },
    'networking.mesh.io/v1alpha3',
  )

/** Rollouts of large services, of which each round takes some steps at once: as many workloads are replaced. */
function rollout(name: string, largeServices: number, largeEndpoints: number, steps: number): SizeScenario {
  const none = { services: 0, endpoints: 0, proxiesPerService: 0, churnPerSecond: 0 }
  const settings: MockSettings = {
    ...none,
    namespaces: 3,
    largeServices,
    largeEndpoints,
    seed: 1,
    domain: `${largeEndpoints}-${steps}.local`,
    cluster: '',
  }
  const services = mockServices(settings)
  const changes = (round: number) => [
    { slices: Array.from({ length: steps }, (_, step) => mockRollout(settings, services, round * steps + step)).flat() },
  ]
  return { name, registry: () => services, changes }
}

/** All scenarios. */
export const sizeScenarios: readonly SizeScenario[] = [
  rollout('one pod of 50 replaced', 1, 50, 1),
  rollout('one pod of 500 replaced', 1, 500, 1),
  rollout('one pod of 2,000 replaced', 1, 2000, 1),
  rollout('one pod of 8,000 replaced', 1, 8000, 1),
  rollout('ten of 8,000 pods of one service replaced', 1, 8000, 10),
  rollout('ten of 8,000 pods in services of 50 replaced', 160, 50, 10),
  {
    name: 'port added and removed',
    changes: (round, size) => {
      const index = changed(round, size) + 1
      const ports = [http, grpc, { number: 8000, name: 'tcp', protocol: 'TCP' }]
      return [{ set: [service(index, size, { ports })] }, { set: [service(index, size)] }]
    },
  },
  {
    name: 'service added and removed',
    changes: (round, size) => {
      const added = service(size.services + round, size, { name: `new-${round}` })
      return [{ set: [added] }, { remove: [added] }]
    },
  },
  { name: 'VirtualService changed', changes: (round, size) => [{ set: [route(changed(round, size), size, `round-${round}`)] }] },
  {
    name: 'VirtualService added and removed',
    changes: (round, size) => {
      const added = route(changed(round, size) + 3, size, 'added')
      return [{ set: [added] }, { remove: [added] }]
    },
  },
  { name: 'DestinationRule changed', changes: (round, size) => [{ set: [rule(changed(round, size), size, 200 + round)] }] },
  { name: 'AuthorizationPolicy changed', mesh: () => [policy(0)], changes: (round) => [{ set: [policy(round + 1)] }] },
  {
    name: 'Gateway changed',
    mesh: () => [gateway(0), ...Array.from({ length: 10 }, (_, index) => edgeRoute(index))],
    changes: (round) => [{ set: [gateway(round + 1)] }],
  },
  { name: 'Sidecar changed', isApart: true, mesh: () => [sidecar(0)], changes: (round) => [{ set: [sidecar(round + 1)] }] },
  { name: 'EnvoyFilter changed', isApart: true, mesh: () => [envoyFilter(0)], changes: (round) => [{ set: [envoyFilter(round + 1)] }] },
  {
    name: 'one WorkloadEntry of 4,000 replaced',
    mesh: machines,
    changes: (round) => [{ set: [workload(round % workloads, `v${2 + round}`)] }],
  },
]
