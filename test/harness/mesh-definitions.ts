/** The CustomResourceDefinitions of the mesh's kinds in a test cluster. */
import { readdirSync, readFileSync } from 'node:fs'
import type { TestCluster } from './cluster.ts'

const folder = new URL('../../manifests/crds/', import.meta.url)

/** The definitions as they are in `manifests/crds/`, by the plural of their kind. */
export const meshDefinitions = (): Map<string, string> =>
  new Map(readdirSync(folder).map((name) => [name.slice(0, name.indexOf('.')), readFileSync(new URL(name, folder), 'utf8')]))

/** A definition of the same kind in the group that users of the alias domain have. */
export const aliasDefinition = (definition: string): string => definition.replaceAll('mesh.io', 'istio.io').replaceAll('mesh-io', 'istio-io')

/** Applies definitions, and returns when the server serves their kinds. */
export function establish(cluster: TestCluster, ...definitions: readonly string[]): void {
  cluster.apply(...definitions)
  const names = definitions.map((each) => `crd/${/^ {2}name: (\S+)$/m.exec(each)?.[1]}`)
  cluster.waitFor('condition=Established', ...names)
}
