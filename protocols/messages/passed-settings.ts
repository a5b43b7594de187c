/** The settings of a mesh that are passed to a thread which makes a part of the mesh, or all of it, again. */

/** What of the mesh is in no object and no service. */
export interface PassedSettings {
  /** `Features`. */
  readonly features: object
  readonly domain: string
  readonly lockedKeys: string
  readonly plugins: readonly string[]
  readonly optOuts: readonly string[]
  /** `MeshConfig` and `MeshNetworks`. */
  readonly mesh: object
  readonly networks: object
  readonly keySets: readonly (readonly [source: string, keys: string])[]
}
