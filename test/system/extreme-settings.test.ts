import { expect } from 'chai'
import { discoveryFlags, loggingFlags, rootFlags } from '../../src/cli/discovery-flags.ts'
import type { FlagTable } from '../../src/cli/flag-table.ts'
import { variables } from '../../src/config/features.ts'
import { unbuiltVariables } from '../../src/config/unbuilt-variables.ts'
import { longest, type Variable } from '../../src/config/variable.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { Issuer } from '../harness/issuer.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const entry = (name: string) => `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec: {hosts: [${name}.example], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}
`

const authentication = (issuer: string, jwksUri: string) => `apiVersion: security.mesh.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: shop}
spec: {jwtRules: [{issuer: '${issuer}', jwksUri: '${jwksUri}'}]}
`

describe('the longest durations that flags and variables may have', function () {
  this.timeout(60_000)
  const durations = Object.entries<Variable>({ ...variables, ...unbuiltVariables }).filter(([, variable]) => variable.type === 'duration')
  // A change waits for these; everything else is a limit.
  const waits = { PILOT_DEBOUNCE_AFTER: '10ms', PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1' }
  const env = { ...Object.fromEntries(durations.map(([name]) => [name, longest])), ...waits, PILOT_ENABLE_FLOW_CONTROL: 'true' }
  const table: FlagTable = { ...rootFlags, ...loggingFlags, ...discoveryFlags }
  const flags = Object.entries(table).flatMap(([name, spec]) => (spec.type === 'duration' ? [`--${name}=${longest}`] : []))
  const service = new Service({ env, flags })
  const issuer = new Issuer('https://issuer.example')
  before(async () => {
    await issuer.start()
    service.write('tokens.yaml', authentication(issuer.name, issuer.jwksUri))
    await service.start()
  })
  after(async () => {
    await service.dispose()
    await issuer.stop()
  })

  it('cut no proxy, hold back no change, and keep nothing busy', async () => {
    const clients = [false, true].map(
      (delta) => new XdsClient(service.grpcPort, sidecarNode(`10.0.0.${delta ? 2 : 1}`, `p${delta ? 2 : 1}`, 'shop'), delta),
    )
    try {
      await Promise.all(clients.map((client) => client.connect().ready()))
      for (const name of ['one', 'two', 'three']) {
        service.write(`${name}.yaml`, entry(name))
        await until(`the cluster of ${name}`, () => clients.every((client) => client.resources.get(clusterType)?.has(`outbound|80||${name}.example`)))
      }
      expect(clients.map((client) => client.closed)).to.deep.equal([undefined, undefined])
      const metrics = await service.metrics()
      expect(metrics).not.to.match(/^pilot_xds_write_timeout(_total)? [1-9]/m)
      const busy = [...metrics.matchAll(/^actor_event_loop_utilisation\{actor="([^"]+)"\} (\S+)$/gm)].filter(([, , share]) => Number(share) > 0.9)
      expect(issuer.fetches, 'fetches of keys').to.equal(1)
      expect(busy.map(([, actor]) => actor)).to.deep.equal([])
    } finally {
      for (const client of clients) client.close()
    }
  })
})
