import { expect } from 'chai'
import { madeOf } from '../../harness/made.ts'

const manager = 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'
const merge = (routes: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: EnvoyFilter\nmetadata: {name: routes, namespace: ns}\nspec: {configPatches: [{applyTo: NETWORK_FILTER, match: {context: SIDECAR_INBOUND, listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}, patch: {operation: MERGE, value: {name: envoy.filters.network.http_connection_manager, typed_config: {'@type': '${manager}', ${routes}}}}}]}\n`

describe('an EnvoyFilter patch of a connection manager', () => {
  it('is left out with a fault if it names a route configuration that is not served', () => {
    const { reported } = madeOf(merge('rds: {route_config_name: never, config_source: {ads: {}}}'))
    expect(reported.map(({ resource, reason }) => [resource, reason])).to.deep.equal([
      ['EnvoyFilter/ns/routes', 'NETWORK_FILTER MERGE: the route configuration never is not that of the listener'],
    ])
    expect(madeOf(merge('server_name: x')).reported).to.deep.equal([])
  })
})
