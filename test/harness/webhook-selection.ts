/** Which webhooks the API server would ask about a new pod: selectors of rendered configurations, and the rules that they are to follow. */
import type { RenderedObject } from './charts.ts'

type Labels = Readonly<Record<string, string>>

interface Expression {
  readonly key: string
  readonly operator: string
  readonly values?: readonly string[]
}

const holds =
  (labels: Labels) =>
  (expression: Expression): boolean => {
    const value = labels[expression.key]
    switch (expression.operator) {
      case 'In':
        return value !== undefined && (expression.values ?? []).includes(value)
      case 'NotIn':
        return value === undefined || !(expression.values ?? []).includes(value)
      case 'Exists':
        return value !== undefined
      case 'DoesNotExist':
        return value === undefined
      default:
        throw new Error(`unknown operator ${expression.operator}`)
    }
  }

const selects = (selector: { readonly matchExpressions?: readonly Expression[] } | undefined, labels: Labels): boolean =>
  (selector?.matchExpressions ?? []).every(holds(labels))

/** The Services that would be asked about an object of the mesh with these labels, one for each webhook that selects it. */
export const validatingServices = (configurations: readonly RenderedObject[], object: Labels): string[] =>
  configurations
    .filter(({ kind }) => kind === 'ValidatingWebhookConfiguration')
    .flatMap(({ webhooks }) => webhooks)
    .filter((webhook) => selects(webhook.objectSelector, object))
    .map((webhook) => webhook.clientConfig.service.name as string)

/** The Services that would be asked about a pod, one for each webhook that selects it. */
export function askedServices(configurations: readonly RenderedObject[], namespace: Labels, pod: Labels): string[] {
  return configurations
    .filter(({ kind }) => kind === 'MutatingWebhookConfiguration')
    .flatMap(({ webhooks }) => webhooks)
    .filter((webhook) => selects(webhook.namespaceSelector, namespace) && selects(webhook.objectSelector, pod))
    .map((webhook) => webhook.clientConfig.service.name as string)
}

/** A label in both spellings: the alias counts where the mesh form is absent. */
const inEither = (labels: Labels, mesh: string, alias: string) => labels[mesh] ?? labels[alias]

/**
 * The Services that are to be asked (docs/injection.md, N15; docs/install.md, H2 and H3). `served`: the Services by the revision or tag that they
 * serve. `byDefault`: those that serve pods that name none.
 */
export function wantedServices(served: ReadonlyMap<string, string>, byDefault: readonly string[], namespace: Labels, pod: Labels): string[] {
  if ([pod['sidecar.mesh.io/inject'], pod['sidecar.istio.io/inject']].includes('false')) return []
  const injection = inEither(namespace, 'mesh-injection', 'istio-injection')
  const revision = inEither(namespace, 'mesh.io/rev', 'istio.io/rev')
  const own = inEither(pod, 'mesh.io/rev', 'istio.io/rev')
  const one = (name: string) => [served.get(name)].filter((service) => service !== undefined)
  if (injection !== undefined) return injection === 'enabled' ? [...byDefault] : []
  if (revision !== undefined) return one(revision)
  if (own !== undefined) return one(own)
  return inEither(pod, 'sidecar.mesh.io/inject', 'sidecar.istio.io/inject') === 'true' ? [...byDefault] : []
}
