/** Injection with the configuration of this release, or another one, for tests. */
import { stringify } from 'yaml'
import { templateLibrary } from '../../actors/discovery/webhooks/template-library.ts'
import { defaultMeshConfig, type MeshConfig } from '../../src/config/mesh-config.ts'
import { type InjectionConfiguration, readInjectionConfiguration } from '../../src/inject/configuration.ts'
import { defaultConfig, defaultValues } from '../../src/inject/default-template.ts'
import { type InjectionRequest, type InjectionSettings, injectPod } from '../../src/inject/inject-pod.ts'
import { type Container, InjectionError, type Pod } from '../../src/inject/pod.ts'
import { meshNames } from '../../src/names/mesh-names.ts'

/** Reads a configuration; the fields and values replace those of this release. */
export function injectionConfiguration(config: object = {}, values: object = defaultValues): InjectionConfiguration {
  const read = readInjectionConfiguration({ config: stringify({ ...defaultConfig, ...config }), values: stringify(values) }, templateLibrary())
  if ('error' in read) throw new Error(read.error)
  return read.configuration
}

const standard = injectionConfiguration()

/** The settings of injection; by default those of this release. */
export const injectionSettings = (
  given: Partial<InjectionSettings> & { readonly defaultConfig?: MeshConfig['defaultConfig'] } = {},
): InjectionSettings => {
  const { defaultConfig: proxies, ...settings } = given
  const mesh = defaultMeshConfig()
  return {
    configuration: standard,
    mesh: { ...mesh, defaultConfig: { ...mesh.defaultConfig, ...proxies } },
    revision: '',
    hasNativeSidecars: false,
    setsFsGroup: true,
    agent: {},
    names: meshNames('mesh.io'),
    slow: 0,
    ...settings,
  }
}

/** A pod with one container, and other metadata and fields. */
export const podWith = (metadata: object = {}, spec: object = {}): Record<string, unknown> => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', labels: { app: 'web' }, ...metadata },
  spec: { containers: [{ name: 'app', image: 'shop/web:1', ports: [{ name: 'http', containerPort: 8080 }] }], ...spec },
})

/** Injects a pod, which must not be skipped. */
export function injected(pod: unknown, settings = injectionSettings(), request: Partial<InjectionRequest> = {}): Pod {
  const result = injectPod({ pod, namespace: 'shop', ...request }, settings)
  if ('skipped' in result) throw new InjectionError(`skipped: ${result.skipped}`)
  return result.pod
}

/** A container of a pod, of whatever kind it is. */
export function containerOf({ spec }: Pod, name: string): Container {
  const found = [...(spec.initContainers ?? []), ...(spec.containers ?? [])].find((container) => container.name === name)
  if (!found) throw new Error(`the pod has no container ${name}`)
  return found
}

/** The variables of a container that have values. */
export const variablesOf = ({ env = [] }: Container): Record<string, string | undefined> =>
  Object.fromEntries(env.map(({ name, value }) => [name, value]))
