/** Makes `manifests/injection.yaml`: the configuration of injection and the webhooks that lead to it (docs/injection.md, N15). */
import { stringify } from 'yaml'
import { defaultConfig, defaultValues } from '../src/inject/default-template.ts'
import { meshNames } from '../src/names/mesh-names.ts'

const namespace = 'mesh-system'
const name = 'mesh-sidecar-injector'
const names = meshNames('mesh.io')
const revision = 'default'

type Expression = { readonly key: string; readonly operator: string; readonly values?: readonly string[] }

const spellings = [
  { part: '', injection: 'mesh-injection', rev: 'mesh.io/rev', inject: 'sidecar.mesh.io/inject' },
  { part: 'alias.', injection: 'istio-injection', rev: 'istio.io/rev', inject: 'sidecar.istio.io/inject' },
]
const is = (key: string, value: string): Expression => ({ key, operator: 'In', values: [value] })
const isNot = (key: string, value: string): Expression => ({ key, operator: 'NotIn', values: [value] })
const absent = (key: string): Expression => ({ key, operator: 'DoesNotExist' })

/** Namespaces of the orchestrator are never asked about: their pods must start while discovery does not run. */
const others: Expression = {
  ...{ key: 'kubernetes.io/metadata.name', operator: 'NotIn' },
  values: ['kube-system', 'kube-public', 'kube-node-lease', 'local-path-storage'],
}
const notRefused = spellings.map(({ inject }) => isNot(inject, 'false'))
const unlabelled = spellings.flatMap(({ injection, rev }) => [absent(injection), absent(rev)])

function webhook(prefix: string, namespaces: readonly Expression[], pods: readonly Expression[]): object {
  return {
    name: `${prefix}sidecar-injector.${names.domain}`,
    admissionReviewVersions: ['v1', 'v1beta1'],
    clientConfig: { service: { name: 'meshd', namespace, path: '/inject', port: 443 } },
    failurePolicy: 'Fail',
    sideEffects: 'None',
    timeoutSeconds: 10,
    rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'], scope: 'Namespaced' }],
    namespaceSelector: { matchExpressions: [others, ...namespaces] },
    objectSelector: { matchExpressions: pods },
  }
}

/** The webhooks in both spellings. One that both would select is asked once: the alias counts where the mesh form is absent. */
const webhooks = spellings.flatMap(({ part, injection, rev, inject }, index) => {
  const [mesh] = spellings
  const without = (key: 'injection' | 'rev' | 'inject') => (index === 0 || !mesh ? [] : [absent(mesh[key])])
  return [
    webhook(`namespace.${part}`, [is(injection, 'enabled'), ...without('injection')], notRefused),
    webhook(`object.${part}`, unlabelled, [is(inject, 'true'), ...without('inject'), ...notRefused, ...spellings.map((each) => absent(each.rev))]),
    webhook(`rev.namespace.${part}`, [is(rev, revision), ...without('rev'), ...spellings.map((each) => absent(each.injection))], notRefused),
    webhook(`rev.object.${part}`, unlabelled, [is(rev, revision), ...without('rev'), ...notRefused]),
  ]
})

/** Returns the text of `manifests/injection.yaml`. */
export function injectionManifest(): string {
  const yaml = (value: unknown) => stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })
  const labels = { app: 'meshd', [`${names.domain}/rev`]: revision }
  const documents = [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace, labels },
      data: { config: yaml(defaultConfig), values: yaml(defaultValues) },
    },
    { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration', metadata: { name, labels }, webhooks },
  ]
  return `# Injection: its configuration and webhooks. Made by npm run tables from src/inject/default-template.ts.\n${documents.map(yaml).join('---\n')}`
}
