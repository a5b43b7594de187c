import { expect } from 'chai'
import { tagVariables } from '../../../src/bootstrap/tag-variables.ts'
import { prepareTestProxy } from '../../harness/prepared-proxy.ts'
import { names } from '../../harness/settings.ts'

const variables = (labels: Record<string, string>, env: Record<string, string> = {}) =>
  tagVariables(prepareTestProxy({ pod: { labels }, env: { POD_NAMESPACE: 'shop', POD_NAME: 'web-1', ...env } }).prepared.node, names)

describe('variables for tags of spans', () => {
  it('are the canonical labels in either form, else the usual ones, else the name of the workload', () => {
    const canonical = { 'service.istio.io/canonical-name': 'web', 'service.mesh.io/canonical-revision': 'v2', app: 'a', version: 'v1' }
    expect(variables(canonical)).to.deep.equal({ CANONICAL_SERVICE: 'web', CANONICAL_REVISION: 'v2', POD_NAMESPACE: 'shop' })
    expect(variables({ app: 'a', version: 'v1' })).to.include({ CANONICAL_SERVICE: 'a', CANONICAL_REVISION: 'v1' })
    expect(variables({}, { MESH_META_WORKLOAD_NAME: 'w' })).to.deep.equal({ CANONICAL_SERVICE: 'w', POD_NAMESPACE: 'shop' })
    expect(variables({})).to.deep.equal({ CANONICAL_SERVICE: 'web-1', POD_NAMESPACE: 'shop' })
  })
})
