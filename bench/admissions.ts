/** Reviews as an API server sends them: pods of usual Deployments as they are before they are stored, and mesh objects. */

/** A review and the path that it is sent to. */
export interface Admission {
  readonly path: string
  /** JSON. */
  readonly body: string
}

const user = {
  username: 'system:serviceaccount:kube-system:replicaset-controller',
  uid: '5f8a3c1e-2a4b-4c6d-8e9f-0a1b2c3d4e5f',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
}

/** One in so many reviews is of a mesh object. */
const meshEvery = 10

/** Returns so many reviews, each of another object. */
export function admissions(count: number): Admission[] {
  return Array.from({ length: count }, (_, index) => (index % meshEvery === meshEvery - 1 ? route(index) : pod(index)))
}

function review(path: string, index: number, object: { kind: string; apiVersion: string; metadata: object }, plural: string): Admission {
  const [group = '', version = ''] = object.apiVersion.includes('/') ? object.apiVersion.split('/') : ['', object.apiVersion]
  const kind = { group, version, kind: object.kind }
  const resource = { group, version, resource: plural }
  const request = {
    uid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    ...{ kind, resource, requestKind: kind, requestResource: resource, namespace: 'shop', operation: 'CREATE', userInfo: user },
    ...{ object, oldObject: null, dryRun: false, options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' } },
  }
  return { path, body: JSON.stringify({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', request }) }
}

function route(index: number): Admission {
  const to = (subset: string, weight: number) => ({ destination: { host: `web-${index}`, subset }, weight })
  const http = Array.from({ length: 5 }, (_, rule) => ({
    match: [{ uri: { prefix: `/v${rule}/` }, headers: { 'x-canary': { regex: `(a|b)+[0-9]{1,${rule + 1}}` } } }],
    route: [to('v1', 90), to('v2', 10)],
    ...{ timeout: '5s', retries: { attempts: 3, retryOn: '5xx' } },
  }))
  const metadata = { name: `web-${index}`, namespace: 'shop' }
  return review(
    '/validate?timeout=10s',
    index,
    { apiVersion: 'networking.mesh.io/v1', kind: 'VirtualService', metadata, ...{ spec: { hosts: [`web-${index}`], http } } } as never,
    'virtualservices',
  )
}

/** A pod of one to three containers, with probes, variables and volumes, and all that the API server has set before it asks. */
function pod(index: number): Admission {
  const app = `web-${index % 40}`
  const container = (name: string, port: number) => ({
    ...{ name, image: `registry.example.com/shop/${name}:1.${index}`, imagePullPolicy: 'IfNotPresent' },
    ports: [{ name: `http-${name}`.slice(0, 15), containerPort: port, protocol: 'TCP' }],
    env: Array.from({ length: 12 }, (_, at) => ({ name: `SETTING_${at}`, value: `a usual value of setting ${at} for ${app}` })),
    resources: { requests: { cpu: '250m', memory: '256Mi' }, limits: { memory: '512Mi' } },
    ...{ terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File' },
    readinessProbe: {
      ...{ httpGet: { path: '/ready', port, scheme: 'HTTP' }, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 },
    },
    livenessProbe: { ...{ tcpSocket: { port }, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 } },
    volumeMounts: [
      { name: 'config', mountPath: `/etc/${name}`, readOnly: true },
      { name: 'kube-api-access-x7k2p', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true },
    ],
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  })
  const containers = ['app', 'cache', 'logs'].slice(0, 1 + (index % 3)).map((name, at) => container(name, 8080 + at))
  const metadata = {
    generateName: `${app}-5d4f8c7b9-`,
    namespace: 'shop',
    labels: { app, version: `v${index % 2}`, 'app.kubernetes.io/name': app, 'pod-template-hash': '5d4f8c7b9' },
    annotations: { 'checksum/config': 'f'.repeat(64), ...(index % 4 === 0 && { 'proxy.mesh.io/config': 'concurrency: 2' }) },
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${app}-5d4f8c7b9`, uid: '1', controller: true, blockOwnerDeletion: true }],
  }
  const spec = {
    containers,
    volumes: [
      { name: 'config', configMap: { name: app, defaultMode: 420 } },
      {
        name: 'kube-api-access-x7k2p',
        projected: {
          sources: [
            { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
            { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
            { downwardAPI: { items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }] } },
          ],
          defaultMode: 420,
        },
      },
    ],
    ...{ restartPolicy: 'Always', terminationGracePeriodSeconds: 30, dnsPolicy: 'ClusterFirst', serviceAccountName: app, serviceAccount: app },
    ...{ securityContext: {}, schedulerName: 'default-scheduler', priority: 0, enableServiceLinks: true, preemptionPolicy: 'PreemptLowerPriority' },
    tolerations: ['not-ready', 'unreachable'].map((taint) => ({
      ...{ key: `node.kubernetes.io/${taint}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
    })),
  }
  return review('/inject?timeout=10s', index, { apiVersion: 'v1', kind: 'Pod', metadata, ...{ spec, status: {} } } as never, 'pods')
}
