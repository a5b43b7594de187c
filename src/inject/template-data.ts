/** What templates read: the pod, the settings of its proxy, and the values of the installation (docs/injection.md, N5). */
import { goConfig } from '../bootstrap/go-config.ts'
import { protoJson } from '../bootstrap/proto-json.ts'
import { type MeshConfig, meshForm } from '../config/mesh-config.ts'
import { type GivenProxyConfig, proxyConfigShape, proxyDefaults } from '../config/proxy-config.ts'
import { isMapping } from '../config/shape.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { fromJson, GoStruct, type Value } from '../template/values.ts'
import { givenIn, meshKey } from './annotations.ts'
import { goMessage, JsonStruct } from './go-pod.ts'
import type { Owner } from './owner.ts'
import type { Pod } from './pod.ts'
import { proxyImageOf } from './proxy-image.ts'

/** What the data is made from. */
export interface TemplateInput {
  readonly pod: Pod
  readonly namespace: string
  readonly owner: Owner
  readonly mesh: MeshConfig
  /** The settings of the proxy of this pod, with those of the mesh. */
  readonly proxyConfig: GivenProxyConfig
  readonly values: Readonly<Record<string, unknown>>
  readonly revision: string
  /** Whether the agent runs as a container that starts before the others and ends after them. */
  readonly hasNativeSidecars: boolean
  readonly names: MeshNames
}

/** Returns the data. */
export function templateData(input: TemplateInput): Value {
  const { pod, namespace, owner, mesh, values, revision, names } = input
  const { kind = 'Pod', apiVersion = 'v1' } = pod
  const metadata = { ...pod.metadata, namespace: pod.metadata.namespace || namespace }
  const interceptionMode = input.proxyConfig.interceptionMode ?? 'REDIRECT'
  const deployment = { name: owner.name, namespace }
  return new GoStruct(
    'inject.SidecarTemplateData',
    new Map<string, Value>([
      [
        'TypeMeta',
        new JsonStruct(
          'v1.TypeMeta',
          new Map([
            ['Kind', owner.kind || String(kind)],
            ['APIVersion', owner.apiVersion || String(apiVersion)],
          ]),
          {},
        ),
      ],
      ['DeploymentMeta', goMessage('ObjectMeta', deployment, names)],
      ['ObjectMeta', goMessage('ObjectMeta', metadata, names)],
      ['Spec', goMessage('PodSpec', pod.spec, names)],
      ['MeshConfig', goConfig(meshForm, mesh, 'MeshConfig')],
      [
        'ProxyConfig',
        new ProxyConfigStruct(goConfig(proxyConfigShape.form, { ...input.proxyConfig, interceptionMode }, 'ProxyConfig'), input.proxyConfig),
      ],
      ['Values', fromJson(values)],
      ['Revision', revision],
      ['EstimatedConcurrency', estimatedConcurrency(input)],
      ['ProxyImage', proxyImage(pod, values, names)],
      ['NativeSidecars', input.hasNativeSidecars],
      ['MeshDomain', names.domain],
      ['ProxyUID', 1337],
      ['ProxyGID', 1337],
    ]),
  )
}

/** The settings of a proxy as a message of Go, whose JSON has those only that differ from the defaults. */
class ProxyConfigStruct extends JsonStruct {
  constructor(message: Value, config: GivenProxyConfig) {
    super('*v1alpha1.ProxyConfig', message instanceof GoStruct ? message.fields : new Map(), givenJson(config))
  }
}

/** The JSON of settings that differ from the defaults. */
function givenJson(config: GivenProxyConfig): unknown {
  const defaults: Readonly<Record<string, unknown>> = { ...proxyDefaults, holdApplicationUntilProxyStarts: false }
  const topology = JSON.stringify(config.gatewayTopology)
  const given = Object.entries(config).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(defaults[name]) && !(name === 'gatewayTopology' && topology === sharedTopology),
  )
  return protoJson(proxyConfigShape.form, Object.fromEntries(given))
}

const sharedTopology = JSON.stringify({ numTrustedProxies: 0, forwardClientCertDetails: 'SANITIZE_SET' })

const at = (values: unknown, ...path: string[]): unknown => path.reduce<unknown>((value, key) => (isMapping(value) ? value[key] : undefined), values)

/** The image of the agent: that of the annotation, else that of the values. */
const proxyImage = ({ metadata }: Pod, values: Readonly<Record<string, unknown>>, names: MeshNames): string =>
  proxyImageOf(values, givenIn(metadata.annotations, meshKey(names, 'sidecar', 'proxyImage'), names))

/**
 * The number of worker threads of the proxy: that of its settings, else the limit and then the request of its processors, of the annotations
 * and then of the values; 0 when none of these is given.
 */
function estimatedConcurrency({ pod: { metadata }, proxyConfig, values, names }: TemplateInput): number {
  const { concurrency } = proxyConfig
  if (concurrency !== undefined && concurrency > 0 && concurrency !== proxyDefaults.concurrency) return concurrency
  const annotated = (name: string) => givenIn(metadata.annotations, meshKey(names, 'sidecar', name), names)
  const resources = at(values, 'global', 'proxy', 'resources')
  for (const quantity of [annotated('proxyCPULimit'), annotated('proxyCPU'), at(resources, 'limits', 'cpu'), at(resources, 'requests', 'cpu')]) {
    const threads = threadsOf(quantity)
    if (threads > 0) return threads
  }
  return concurrency ?? 0
}

/** The processors of a quantity, rounded up; 0 for what is none. */
function threadsOf(quantity: unknown): number {
  const [, number, unit] = /^(\d{1,6}(?:\.\d{1,9})?)(m?)$/.exec(String(quantity ?? '')) ?? []
  if (number === undefined) return 0
  return Math.ceil(Number(number) / (unit === 'm' ? 1000 : 1))
}
