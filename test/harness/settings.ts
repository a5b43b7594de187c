/** Settings of a control plane that runs within a test. */
import { readFeatures } from '../../src/config/features.ts'
import { readOptOuts } from '../../src/config/opt-outs.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import type { Settings } from '../../src/snapshot/snapshot.ts'

/** Names of the mesh domain that tests use. */
export const names = meshNames('mesh.io')

/** The defaults, under these environment variables, with these plugins. */
export function testSettings(env: Record<string, string> = {}, plugins: readonly string[] = ['ext_authz', 'authn', 'authz']): Settings {
  const { features } = readFeatures(env)
  const optOuts = readOptOuts(features.MESH_POLICY_OPT_OUTS)
  return { features, names, domain: 'cluster.local', lockedKeys: '{"keys":[]}', versionKey: 'of a test', plugins, optOuts }
}
