import { expect } from 'chai'
import { configKey } from '../../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../../src/config/parse.ts'
import { Faults } from '../../../../src/model/faults.ts'
import { policiesFor } from '../../../../src/snapshot/policies.ts'
import { MeshState } from '../../../../src/snapshot/state.ts'
import { policyFilters } from '../../../../src/xds/security/policy-filters.ts'
import { names, testSettings } from '../../../harness/settings.ts'

const document = (kind: string, name: string, spec: string) =>
  `apiVersion: security.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ns}\nspec: ${spec}\n`

/** Returns the names of the filters that a workload gets with these plugins. */
function filters(plugins: readonly string[], protocol: 'http' | 'tcp' = 'http'): string[] {
  const state = new MeshState(testSettings({}, plugins), new Faults())
  const text = [
    document('AuthorizationPolicy', 'allow', '{rules: [{}]}'),
    document('AuthorizationPolicy', 'deny', '{action: DENY, rules: [{}]}'),
    document('AuthorizationPolicy', 'custom', '{action: CUSTOM, provider: {name: nobody}, rules: [{}]}'),
    document('RequestAuthentication', 'tokens', '{jwtRules: [{issuer: i}]}'),
  ].join('---\n')
  for (const object of parseConfigFile('f.yaml', text, names).objects) state.setConfig(configKey(object), object)
  const { snapshot } = state.take(0)
  return policyFilters(protocol, policiesFor(snapshot.policies, 'mesh-system', { namespace: 'ns', labels: {} }), snapshot, {
    trustsForwarded: true,
  }).map(({ name }) => name.split('.').slice(2).join('.'))
}

describe('policy filters (--plugins)', () => {
  it('are those of the listed plugins, in the order of the list', () => {
    expect(filters(['ext_authz', 'authn', 'authz'])).to.deep.equal(['http.rbac', 'http.jwt_authn', 'http.rbac', 'http.rbac'])
    expect(filters(['authz', 'authn'])).to.deep.equal(['http.rbac', 'http.rbac', 'http.jwt_authn'])
    expect(filters(['metadata_exchange', 'unknown', '__proto__'])).to.deep.equal([])
    expect(filters(['authn', 'authz'], 'tcp')).to.deep.equal(['network.rbac', 'network.rbac'])
  })
})
