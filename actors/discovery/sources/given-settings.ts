/**
 * Mesh configuration and networks as a source gives them, whether in a file or in an object of a cluster: the last good value, why the
 * present text cannot be used, and the gateways of networks that are named by host.
 */
import { resolve } from 'node:path'
import { separateSources } from '../../../src/config/config-sources.ts'
import { defaultMeshConfig, type MeshConfig, type MeshNetworks } from '../../../src/config/mesh-config.ts'
import { faultsOfSetting, type ReadResult, type SettingFaults } from '../../../src/config/mesh-texts.ts'
import type { Logger } from '../../runtime/logger.ts'
import { gatewayResolver } from './resolve-gateways.ts'

/** Is told what is wrong with the text of a setting at a place. */
export type SettingTold = (what: string, place: string, found: SettingFaults) => void

/** The text of a setting, and what came of it. */
export class SettingText<T> {
  readonly #what: string
  readonly #read: (content: string) => ReadResult<T>
  readonly #log: Logger
  /** Why it cannot be used at present, and where it is. */
  #trouble: { readonly path: string; readonly reason: string } | undefined
  #isKnown = false
  /** The warnings about the text in use. */
  warnings: readonly string[] = []

  readonly #told: SettingTold | undefined

  /** `what`: the name of the setting in messages. `told`: called with what is wrong with each text. */
  constructor(what: string, read: (content: string) => ReadResult<T>, log: Logger, told?: SettingTold) {
    this.#what = what
    this.#told = told
    this.#read = read
    this.#log = log
  }

  /** The place of the text that cannot be used at present, and the reason. */
  get trouble(): { readonly path: string; readonly reason: string } | undefined {
    return this.#trouble
  }

  /** Why no text could ever be used. Undefined if one was, or if there is none. */
  get unknown(): string | undefined {
    return this.#isKnown || !this.#trouble ? undefined : `${this.#what} ${this.#trouble.path}: ${this.#trouble.reason}`
  }

  /** Takes the text at a place, or why it cannot be read. Returns its value if it is valid; logs the reason if not. */
  take(place: string, content: { readonly text: string } | { readonly fault: string }): T | undefined {
    const log = this.#log('default')
    const result = 'fault' in content ? { error: content.fault } : this.#read(content.text)
    this.#trouble = 'error' in result ? { path: place, reason: result.error } : undefined
    this.#told?.(this.#what, place, faultsOfSetting(result))
    if ('error' in result) {
      log.error(`${this.#what} ${place}: ${result.error}; the settings in force stay`)
      return undefined
    }
    this.#isKnown = true
    this.warnings = result.warnings
    for (const warning of result.warnings) log.warn(`${this.#what} ${place}: ${warning}`)
    return result.value
  }

  /** There is no text at a place any more: the last good one stays; without one there is nothing to wait for. */
  gone(place: string, reason: string): void {
    this.#trouble = this.#isKnown ? { path: place, reason } : undefined
    const stays = 'the settings in force stay until there are others'
    this.#log('default').error(`${this.#what} ${place}: ${reason}; ${this.#isKnown ? stays : 'it is not waited for any more'}`)
  }
}

/** The settings of the process that bear on a mesh configuration: the directory that is read anyway (empty: none), and `--trust-domain`. */
export interface MeshGivens {
  readonly configDir: string
  readonly trustDomain: string
}

/**
 * Returns a mesh configuration without the sources whose directories are read already, and why these are left out, which is logged; logs a
 * trust domain that `--trust-domain` overrules.
 */
export function usableMesh(
  mesh: MeshConfig,
  place: string,
  { configDir, trustDomain }: MeshGivens,
  log: Logger,
): { readonly mesh: MeshConfig; readonly faults: readonly string[] } {
  if (trustDomain !== '' && mesh.trustDomain !== trustDomain && mesh.trustDomain !== defaultMeshConfig().trustDomain)
    log('default').warn(`mesh configuration ${place}: trustDomain ${mesh.trustDomain} has no effect: --trust-domain=${trustDomain} overrules it`)
  const { usable, faults } = separateSources(mesh.configSources ?? [], configDir === '' ? '' : resolve(configDir))
  for (const fault of faults) log('default').warn(`mesh configuration ${place}: ${fault}`)
  return { mesh: mesh.configSources ? { ...mesh, configSources: usable } : mesh, faults }
}

/** Looks up the gateways of networks that are given by host name. */
export class NetworkLookups {
  readonly #resolve: ReturnType<typeof gatewayResolver>
  readonly #log: Logger
  readonly #found: (networks: MeshNetworks) => void
  /** The networks as given, and whether the host names of their gateways are being looked up. */
  #given: MeshNetworks | undefined
  #isResolving = false
  /** Gateways whose host names were not found, with reason and consequence. */
  #missing: readonly string[] = []
  #isClosed = false

  /** `found` is called with the networks once their gateways have been looked up. */
  constructor(log: Logger, found: (networks: MeshNetworks) => void, resolve = gatewayResolver()) {
    this.#log = log
    this.#found = found
    this.#resolve = resolve
  }

  /** Replaces the networks. A lookup for those before has no effect any more. */
  give(networks: MeshNetworks): void {
    this.#given = networks
    this.#isResolving = false
  }

  /** Looks up the gateways. Never rejects. Resolves when that is done. */
  async lookUp(): Promise<void> {
    const given = this.#given
    if (!given || this.#isResolving || this.#isClosed) return
    this.#isResolving = true
    try {
      const { networks, missing } = await this.#resolve(given)
      // The networks have changed during the lookup.
      if (this.#given !== given || this.#isClosed) return
      this.#isResolving = false
      for (const reason of missing) if (!this.#missing.includes(reason)) this.#log('default').warn(`networks: gateway ${reason}`)
      this.#missing = missing
      this.#found(networks)
    } catch (error) {
      this.#log('default').error(`networks: gateways cannot be looked up: ${(error as Error).message}`)
    }
  }

  /** Looks up again what was not found. */
  retry(): void {
    if (this.#missing.length > 0) void this.lookUp()
  }

  /** What is being looked up is dropped. */
  close(): void {
    this.#isClosed = true
  }
}
