/** Writes objects to an API server in parallel over one HTTP/2 connection: namespaces, Services, Pods with their status, and EndpointSlices. */
import { type ClientHttp2Session, connect } from 'node:http2'
import type { ClusterAccess } from '../protocols/messages/orchestrator.ts'
import { meshObjects } from './cluster-config.ts'

/** The requests under way at a time. */
const parallel = 64
/** The workloads of a service. */
export const podsPerService = 5

/** A workload: the number of its service, its own, how often it has moved to another address, and the number of its cluster, 0 to 2. */
export interface PodPlace {
  readonly service: number
  readonly pod: number
  readonly moves: number
  readonly cluster?: number
}

/** Services with five pods each, in some namespaces, on some nodes that have no kubelet. */
export class ClusterObjects {
  #session: ClientHttp2Session | undefined
  readonly #access: ClusterAccess
  readonly #namespaces: number
  readonly #cluster: number

  constructor(access: ClusterAccess, namespaces: number, cluster = 0) {
    this.#access = access
    this.#namespaces = namespaces
    this.#cluster = cluster
  }

  close(): void {
    this.#session?.destroy()
  }

  namespaceOf = (service: number): string => `ns-${service % this.#namespaces}`

  /** Writes nodes, namespaces and their service accounts. */
  async prepare(nodes: number): Promise<void> {
    await this.#all(nodes, async (node) => {
      const labels = { 'topology.kubernetes.io/region': 'region1', 'topology.kubernetes.io/zone': `zone${node % 3}` }
      await this.#send('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: `made-${node}`, labels } })
    })
    await this.#all(this.#namespaces, async (index) => {
      await this.addNamespace(`ns-${index}`)
      await this.#send('POST', `/api/v1/namespaces/ns-${index}/serviceaccounts`, {
        ...{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } },
      })
    })
  }

  /** Makes objects at a path, in parallel. */
  create(path: string, objects: readonly object[]): Promise<void> {
    return this.#all(objects.length, (index) => this.#send('POST', path, objects[index] as object))
  }

  addNamespace(name: string): Promise<void> {
    return this.#send('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  }

  /** Writes the services from number `first` on, with their pods and slices. */
  async addServices(first: number, count: number, nodes: number): Promise<void> {
    await this.#all(count, async (index) => {
      const service = first + index
      const namespace = this.namespaceOf(service)
      const name = `service-${service}`
      await this.#send('POST', `/api/v1/namespaces/${namespace}/services`, {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { name } },
        spec: { ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
      })
      const pods = Array.from({ length: podsPerService }, (_, pod) => ({ service, pod, moves: 0, cluster: this.#cluster }))
      for (const pod of pods) await this.#addPod(pod, nodes)
      await this.#send('POST', `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, this.#slice(service, pods))
    })
  }

  /** Writes about so many mesh objects, for as many services. */
  async addMeshObjects(count: number, services: number): Promise<number> {
    const objects = meshObjects(count, { services, namespaces: this.#namespaces })
    await this.#all(objects.length, async (index) => {
      const { path, body } = objects[index] as (typeof objects)[number]
      await this.#send('POST', path, body)
    })
    return objects.length
  }

  /** Moves a workload to another address: its pod, then the slice of its service. `pods`: all of the service. */
  async move(place: PodPlace, pods: readonly PodPlace[]): Promise<void> {
    const namespace = this.namespaceOf(place.service)
    await this.#send('PATCH', `/api/v1/namespaces/${namespace}/pods/${nameOf(place)}/status`, { status: statusOf(place) })
    const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices/service-${place.service}`
    await this.#send('PATCH', path, { endpoints: this.#slice(place.service, pods).endpoints })
  }

  /** Changes an object: the fields that are given. `path` is that of the API. */
  patch(path: string, fields: object): Promise<void> {
    return this.#send('PATCH', path, fields)
  }

  async #addPod(place: PodPlace, nodes: number): Promise<void> {
    const path = `/api/v1/namespaces/${this.namespaceOf(place.service)}/pods`
    const owner = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      name: `service-${place.service}-5d4f8c7b9`,
      uid: `0-${place.service}`,
      controller: true,
    }
    await this.#send('POST', path, {
      ...{ apiVersion: 'v1', kind: 'Pod' },
      metadata: {
        name: nameOf(place),
        labels: { app: `service-${place.service}`, version: `v${place.pod % 2}`, 'pod-template-hash': '5d4f8c7b9' },
        ownerReferences: [owner],
      },
      spec: {
        nodeName: `made-${(place.service * podsPerService + place.pod) % nodes}`,
        automountServiceAccountToken: false,
        tolerations: [{ operator: 'Exists' }],
        containers: [
          {
            ...{ name: 'app', image: 'registry.example.com/shop/app:1.2.3', ports: [{ name: 'http', containerPort: 8080 }] },
            env: [{ name: 'LOG_LEVEL', value: 'info' }],
            resources: { requests: { cpu: '100m', memory: '64Mi' } },
            readinessProbe: { httpGet: { path: '/', port: 'http' } },
          },
        ],
      },
    })
    await this.#send('PATCH', `${path}/${nameOf(place)}/status`, { status: statusOf(place) })
  }

  #slice(service: number, pods: readonly PodPlace[]) {
    const namespace = this.namespaceOf(service)
    return {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
      metadata: { name: `service-${service}`, labels: { 'kubernetes.io/service-name': `service-${service}` } },
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints: pods.map((pod) => ({
        addresses: [addressOf(pod)],
        conditions: { ready: true, serving: true, terminating: false },
        targetRef: { kind: 'Pod', name: nameOf(pod), namespace },
      })),
    }
  }

  /** The connection; another one where the server has closed it, which it does after a while without requests. */
  #connected(): ClientHttp2Session {
    const known = this.#session
    if (known && !known.closed && !known.destroyed) return known
    const { server, ca, cert, key } = this.#access
    const session = connect(server, { ...(ca ? { ca } : {}), ...(cert ? { cert, key } : {}) })
    // Its requests are told of the error.
    session.on('error', () => undefined)
    this.#session = session
    return session
  }

  async #all(count: number, work: (index: number) => Promise<void>): Promise<void> {
    let next = 0
    const worker = async () => {
      while (next < count) await work(next++)
    }
    await Promise.all(Array.from({ length: parallel }, worker))
  }

  #send(method: 'POST' | 'PATCH', path: string, body: object): Promise<void> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    return new Promise((resolve, reject) => {
      const stream = this.#connected().request({ ':method': method, ':path': path, 'content-type': type, ...this.#access.headers })
      let [status, text] = [0, '']
      stream.on('response', (headers) => (status = Number(headers[':status'])))
      stream.setEncoding('utf8').on('data', (part: string) => (text = text.length > 1000 ? text : text + part))
      stream.on('error', reject)
      stream.on('end', () => (status < 300 ? resolve() : reject(new Error(`${method} ${path}: ${status} ${text}`))))
      stream.end(JSON.stringify(body))
    })
  }
}

const nameOf = ({ service, pod }: PodPlace): string => `service-${service}-5d4f8c7b9-${pod}`

/** The address of a workload, another one after each move. All have the same length, so that none is a part of another. */
export function addressOf({ service, pod, moves, cluster = 0 }: PodPlace): string {
  const number = service * podsPerService + pod
  const digit = (place: number) => 100 + (Math.floor(number / 150 ** place) % 150)
  return `${130 + (moves % 38)}.${digit(2) + 50 * cluster}.${digit(1)}.${digit(0)}`
}

function statusOf(place: PodPlace) {
  const address = addressOf(place)
  return {
    ...{ phase: 'Running', podIP: address, podIPs: [{ ip: address }], hostIP: '172.30.0.1', startTime: '2026-01-01T00:00:00Z' },
    conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({ type, status: 'True' })),
    containerStatuses: [
      {
        ...{ name: 'app', ready: true, restartCount: 0, image: 'registry.example.com/shop/app:1.2.3', imageID: 'sha256:0' },
        ...{ containerID: `made://${nameOf(place)}`, started: true, state: { running: { startedAt: '2026-01-01T00:00:00Z' } } },
      },
    ],
  }
}
