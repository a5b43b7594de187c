/** Applies policies and waits until a proxy's listeners contain them. */
import { Envoy } from './envoy.ts'
import type { Service } from './service.ts'
import { until } from './until.ts'

const namespace = 'shop'

/** Formats a policy document. */
export function policyDocument(kind: string, name: string, spec: string, metadata: { namespace?: string; annotations?: string } = {}): string {
  const annotations = metadata.annotations ? `, annotations: ${metadata.annotations}` : ''
  return `apiVersion: security.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${metadata.namespace ?? namespace}${annotations}}\nspec: ${spec}\n`
}

/** The configuration of a workload behind a sidecar without traffic redirection. */
export function workloadSidecar(address: string, port: number, backendPort: number): string {
  return `apiVersion: networking.mesh.io/v1
kind: Sidecar
metadata: {name: app, namespace: ${namespace}}
spec: {workloadSelector: {labels: {app: app}}, ingress: [{port: {number: ${port}, protocol: HTTP, name: http}, bind: ${address}, captureMode: NONE, defaultEndpoint: '127.0.0.1:${backendPort}'}], egress: [{hosts: ['./*']}]}
`
}

/** The proxy of that workload. */
export function workloadEnvoy(service: Service, binary: string, delta: boolean, address: string): Envoy {
  const nodeId = `sidecar~${address}~app.${namespace}~${namespace}.svc.cluster.local`
  return new Envoy({
    binary,
    delta,
    grpcPort: service.grpcPort,
    nodeId,
    metadata: { NAMESPACE: namespace, LABELS: { app: 'app' }, INTERCEPTION_MODE: 'NONE' },
  })
}

let markers = 0

/**
 * Replaces all policies and waits until the proxy has them. An additional marker policy that matches no request identifies the new version;
 * `selector` selects the workload of the marker.
 */
export async function enforce(service: Service, envoy: Envoy, documents: readonly string[], selector = ''): Promise<void> {
  const name = `marker-${++markers}`
  const marker = policyDocument('AuthorizationPolicy', name, `{${selector}action: DENY, rules: [{to: [{operation: {ports: ['1']}}]}]}`)
  service.write('policies.yaml', [...documents, marker].join('\n---\n'))
  await until('the policies to be in force', async () => {
    const { configs } = JSON.parse(await envoy.admin('/config_dump?resource=dynamic_listeners')) as { configs?: { active_state?: object }[] }
    // The withdrawal of a file's old policies follows its new ones after a moment, because another file may contain them now. So old
    // markers must have disappeared as well.
    const states = JSON.stringify((configs ?? []).map(({ active_state }) => active_state))
    const found = new Set([...states.matchAll(/policy\[(marker-\d+)\]/g)].map(([, marker]) => marker))
    return found.has(name) && found.size === 1
  })
}
