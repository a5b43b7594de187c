/** What analyzers look at in the settings of the mesh. */
import type { Resource } from '../../protocols/messages/analysis.ts'
import { defaultMeshConfig, type MeshConfig, type MeshNetworks } from '../config/mesh-config.ts'
import {
  type CheckedSetting,
  checkMeshConfig,
  checkMeshNetworks,
  faultsOfSetting,
  type ReadResult,
  readMeshConfig,
  readMeshNetworks,
  type SettingFaults,
} from '../config/mesh-texts.ts'
import { mapping } from '../config/shape.ts'
import { readDocuments } from '../config/yaml-documents.ts'
import { proxyImageOf } from '../inject/proxy-image.ts'
import { injectorNames } from '../orchestrator/injector-object.ts'
import { settingsNames } from '../orchestrator/settings-object.ts'
import type { MeshView, ProviderView } from './world.ts'

/** What the view takes from the variables of the process. */
export interface ViewFeatures {
  /** The root namespace where the settings name none. */
  readonly POD_NAMESPACE: string
  readonly PILOT_SCOPE_GATEWAY_TO_NAMESPACE: boolean
  readonly PILOT_JWKS_ALLOWED_ADDRESSES: string
}

/** Returns the view of settings; undefined ones are not known. */
export function viewOf(
  given: MeshConfig | undefined,
  networks: MeshNetworks | undefined,
  proxyImage: string | undefined,
  features: ViewFeatures,
): MeshView {
  const mesh = given ?? defaultMeshConfig()
  return {
    scopesGateways: features.PILOT_SCOPE_GATEWAY_TO_NAMESPACE,
    trustDomains: [mesh.trustDomain, ...mesh.trustDomainAliases],
    allowedKeyAddresses: features.PILOT_JWKS_ALLOWED_ADDRESSES,
    rootNamespace: mesh.rootNamespace || features.POD_NAMESPACE,
    providers: given && (given.extensionProviders ?? []).map(providerView),
    exportTo: { services: mesh.defaultServiceExportTo, virtualServices: mesh.defaultVirtualServiceExportTo },
    registries: Object.entries(networks?.networks ?? {}).flatMap(([network, { endpoints = [] }]) =>
      endpoints.flatMap(({ fromRegistry }, index) =>
        fromRegistry ? { name: fromRegistry, path: `networks.${network}.endpoints[${index}].fromRegistry` } : [],
      ),
    ),
    gatewayHosts: Object.entries(networks?.networks ?? {}).flatMap(([network, { gateways = [] }]) =>
      gateways.flatMap(({ registryServiceName: host, port }, index) =>
        host ? { host, network, port, path: `networks.${network}.gateways[${index}].registryServiceName` } : [],
      ),
    ),
    networks: Object.keys(networks?.networks ?? {}),
    config: mesh,
    proxyImage,
  }
}

function providerView({ name, envoyExtAuthzHttp, envoyExtAuthzGrpc }: NonNullable<MeshConfig['extensionProviders']>[number]): ProviderView {
  const { service, port } = envoyExtAuthzHttp ?? envoyExtAuthzGrpc ?? {}
  return { name, service, port }
}

/** What is wrong with the text of a field. */
interface TextFaults extends SettingFaults {
  readonly path: string
}

/** A setting that a file of its own may have. */
export type Setting = 'mesh' | 'networks'

/** Where the networks are. */
export interface NetworksIn {
  /** `<file>, document <n>`. */
  readonly place: string
  /** The ConfigMap that has their text; undefined: the place has nothing else. */
  readonly resource: Resource | undefined
}

/**
 * Collects the settings of the mesh: those of files of their own, which come first as they do in a service, and those of ConfigMaps among the objects of
 * a cluster. A text that cannot be used leaves the defaults.
 */
export class GivenMesh {
  mesh: MeshConfig | undefined
  networks: MeshNetworks | undefined
  networksIn: NetworksIn | undefined
  proxyImage: string | undefined
  readonly #ofFiles = new Set<Setting>()

  /** Takes a setting of a file of its own. `place`: that of the text. Returns what is wrong with it. */
  addFile(setting: Setting, text: string, place: string): CheckedSetting<unknown> {
    const read = setting === 'mesh' ? checkMeshConfig(text) : checkMeshNetworks(text)
    if (!read.value) return read
    this.#ofFiles.add(setting)
    if (setting === 'mesh') this.mesh = read.value as MeshConfig
    else [this.networks, this.networksIn] = [read.value as MeshNetworks, { place, resource: undefined }]
    return read
  }

  /** Takes the settings that a ConfigMap has, in the namespace of the control plane. Returns what is wrong with them. */
  add(resource: Resource, value: Readonly<Record<string, unknown>>, ownNamespace: string, revision: string): TextFaults[] {
    const { namespace, name } = resource
    const data = mapping(value.data)
    if (namespace !== ownNamespace && namespace !== 'istio-system') return []
    if (injectorNames(revision).includes(name) && typeof data.values === 'string') this.proxyImage = proxyImageIn(data.values) ?? this.proxyImage
    if (!settingsNames(revision).includes(name)) return []
    const found: TextFaults[] = []
    const read = <T>(field: string, reader: (text: string) => ReadResult<T>): T | undefined => {
      const text = data[field]
      if (typeof text !== 'string') return undefined
      const result = reader(text)
      found.push({ path: `data.${field}`, ...faultsOfSetting(result) })
      return 'value' in result ? result.value : undefined
    }
    const mesh = read('mesh', readMeshConfig)
    const networks = read('meshNetworks', readMeshNetworks)
    if (mesh && !this.#ofFiles.has('mesh')) this.mesh = mesh
    if (networks && !this.#ofFiles.has('networks')) [this.networks, this.networksIn] = [networks, { place: resource.place, resource }]
    return found
  }
}

/** The image of sidecars that the values of injection give; undefined: they cannot be read. */
export function proxyImageIn(text: string): string | undefined {
  const [values] = readDocuments(text)
  return values && 'value' in values ? proxyImageOf(values.value) : undefined
}
