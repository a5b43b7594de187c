/** The mesh that is measured, and the changes made to it. */

const entry = (index: number, namespaces: number, name = `svc-${index}`, extra = '') => `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: ns-${index % namespaces}}
spec:
  hosts: [${name}.ns-${index % namespaces}.svc.cluster.local]
  addresses: [240.${(index >> 16) & 15}.${(index >> 8) & 255}.${index & 255}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 9090, name: grpc, protocol: GRPC}]
  endpoints:
${[0, 1, 2, 3, 4].map((slot) => `  - {address: 10.${10 + slot}.${(index >> 8) & 255}.${index & 255}, labels: {app: ${name}, version: v${(slot % 2) + 1}}}`).join('\n')}
${extra}`

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

/** Configuration files by name: services, and for every tenth one routes and subsets. */
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

/** A change: the file to write, and text that will be found in what proxies are sent because of it. */
export function change(
  scenario: 'endpoint change' | 'route change' | 'service added',
  round: number,
  services: number,
  namespaces: number,
): { file: string; text: string; marker: string } {
  const index = (round * 10) % services
  if (scenario === 'endpoint change') {
    const marker = `10.2${String(round % 50).padStart(2, '0')}.99.${100 + (round % 100)}`
    return {
      file: `se-${index + 1}.yaml`,
      text: entry(index + 1, namespaces, undefined, `  - {address: ${marker}, labels: {app: svc-${index + 1}, version: v1}}\n`),
      marker,
    }
  }
  if (scenario === 'route change') {
    const marker = `mark-${round}-${Date.now()}`
    return { file: `vs-${index}.yaml`, text: virtualService(index, namespaces, marker), marker }
  }
  const marker = `new-${round}-${Date.now()}`
  return { file: `new-${round}.yaml`, text: entry(services + round, namespaces, marker), marker }
}
