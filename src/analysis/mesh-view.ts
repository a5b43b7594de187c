/** What analyzers look at in the settings of the mesh. */
import type { Resource } from '../../protocols/messages/analysis.ts'
import { defaultMeshConfig, type MeshConfig, type MeshNetworks, readMeshConfig, readMeshNetworks } from '../config/mesh-config.ts'
import { mapping } from '../config/shape.ts'
import { readDocuments } from '../config/yaml-documents.ts'
import { proxyImageOf } from '../inject/proxy-image.ts'
import { injectorNames } from '../orchestrator/injector-object.ts'
import { settingsNames } from '../orchestrator/settings-object.ts'
import type { MeshView } from './world.ts'

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
    providers: given && (given.extensionProviders ?? []).map(({ name }) => name),
    exportTo: { services: mesh.defaultServiceExportTo, virtualServices: mesh.defaultVirtualServiceExportTo },
    registries: Object.entries(networks?.networks ?? {}).flatMap(([network, { endpoints = [] }]) =>
      endpoints.flatMap(({ fromRegistry }, index) =>
        fromRegistry ? { name: fromRegistry, path: `networks.${network}.endpoints[${index}].fromRegistry` } : [],
      ),
    ),
    proxyImage,
  }
}

/** Collects the settings of ConfigMaps among the objects of a cluster. A text that cannot be used leaves the defaults. */
export class GivenMesh {
  mesh: MeshConfig | undefined
  networks: MeshNetworks | undefined
  proxyImage: string | undefined

  /** Takes the settings that a ConfigMap has, in the namespace of the control plane. */
  add({ namespace, name }: Resource, value: Readonly<Record<string, unknown>>, ownNamespace: string, revision: string): void {
    const data = mapping(value.data)
    if (namespace !== ownNamespace && namespace !== 'istio-system') return
    if (settingsNames(revision).includes(name)) {
      const mesh = typeof data.mesh === 'string' ? readMeshConfig(data.mesh) : undefined
      if (mesh && 'value' in mesh) this.mesh = mesh.value
      const networks = typeof data.meshNetworks === 'string' ? readMeshNetworks(data.meshNetworks) : undefined
      if (networks && 'value' in networks) this.networks = networks.value
    }
    if (!injectorNames(revision).includes(name) || typeof data.values !== 'string') return
    this.proxyImage = proxyImageIn(data.values) ?? this.proxyImage
  }
}

/** The image of sidecars that the values of injection give; undefined: they cannot be read. */
export function proxyImageIn(text: string): string | undefined {
  const [values] = readDocuments(text)
  return values && 'value' in values ? proxyImageOf(values.value) : undefined
}
