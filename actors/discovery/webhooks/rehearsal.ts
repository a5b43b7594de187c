/**
 * Reviews of nobody's objects. On a thread that is there before somebody asks, each handler decides on one of them first: code that runs for the first time
 * takes many times longer, and the reviews that wait for it meanwhile do so too (bench/RESULTS.md, "--set webhooks").
 */
import type { AdmissionAnswer, AdmissionRequest } from '../../../protocols/messages/admission.ts'
import { readReview, reviewText } from '../../../src/orchestrator/admission-review.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'

const namespace = 'default'

function review(group: string, version: string, kind: string, metadata: object, spec: object): Uint8Array {
  const object = { apiVersion: group === '' ? version : `${group}/${version}`, kind, metadata: { namespace, ...metadata }, spec }
  const request = { uid: 'rehearsal', kind: { group, version, kind }, operation: 'CREATE', namespace, object }
  return Buffer.from(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }))
}

const probe = (port: number) => ({ httpGet: { path: '/', port }, periodSeconds: 10 })

/** The review of a pod with what usual ones have. */
export const podReview = review(
  '',
  'v1',
  'Pod',
  {
    generateName: 'rehearsal-5d4f8c7b9-',
    labels: { app: 'rehearsal', 'pod-template-hash': '5d4f8c7b9' },
    annotations: { 'proxy.mesh.io/config': 'concurrency: 2', 'prometheus.io/port': '8080' },
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rehearsal-5d4f8c7b9', uid: '1', controller: true }],
  },
  {
    containers: [
      {
        ...{ name: 'app', image: 'rehearsal', env: [{ name: 'A', value: 'a' }], resources: { requests: { cpu: '1' }, limits: { memory: '1Gi' } } },
        ...{
          ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
          readinessProbe: probe(8080),
          livenessProbe: { tcpSocket: { port: 8080 } },
        },
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      },
    ],
    volumes: [{ name: 'data', emptyDir: {} }],
    securityContext: {},
  },
)

/** The review of a VirtualService with what usual ones have. */
export const routeReview = review(
  'networking.mesh.io',
  'v1',
  'VirtualService',
  { name: 'rehearsal' },
  {
    hosts: ['rehearsal'],
    http: [
      {
        match: [{ uri: { prefix: '/v1/' }, headers: { 'x-user': { regex: '(a|b)+[0-9]{1,2}' } } }],
        route: [20, 80].map((weight) => ({ destination: { host: 'rehearsal', subset: `v${weight}` }, weight })),
        ...{ timeout: '5s', retries: { attempts: 3, retryOn: '5xx' } },
      },
    ],
  },
)

/** Decides on a review as on others, and counts and tells nothing of it. */
export function rehearse(body: Uint8Array, log: ScopedLogger, decide: (request: AdmissionRequest) => AdmissionAnswer): void {
  const began = monotonicMs()
  const read = readReview(body)
  if ('fault' in read) throw new Error(read.fault)
  try {
    reviewText(read.apiVersion, read.request.uid, decide(read.request))
  } catch {
    // A template that refuses this pod may suit others.
  }
  log.debug(`a review of nobody's ${read.request.kind.kind} was rehearsed in ${Math.round(monotonicMs() - began)} ms`)
}
