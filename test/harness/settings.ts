/** Settings of a control plane inside a test. */
import { readFeatures } from '../../src/config/features.ts'
import { readOptOuts } from '../../src/config/opt-outs.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import type { Settings } from '../../src/snapshot/snapshot.ts'

/** The names of the mesh domain in tests. */
export const names = meshNames('mesh.io')

/** The default settings with the given environment variables and plugins. */
export function testSettings(env: Record<string, string> = {}, plugins: readonly string[] = ['ext_authz', 'authn', 'authz']): Settings {
  const { features } = readFeatures(env)
  const optOuts = readOptOuts(features.MESH_POLICY_OPT_OUTS)
  return { features, names, domain: 'cluster.local', lockedKeys: '{"keys":[]}', versionKey: 'of a test', plugins, optOuts }
}
