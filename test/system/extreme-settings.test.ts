import { expect } from 'chai'
import { discoveryFlags, discoveryLogging, rootFlags } from '../../src/cli/discovery-flags.ts'
import { variables } from '../../src/config/features.ts'
import { unbuiltVariables } from '../../src/config/unbuilt-variables.ts'
import type { Variable } from '../../src/config/variable.ts'
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

const table = { ...rootFlags, ...discoveryLogging, ...discoveryFlags }
const numbered = Object.entries<Variable>({ ...variables, ...unbuiltVariables }).flatMap(([name, variable]) =>
  'range' in variable ? [{ name, type: variable.type, range: variable.range }] : [],
)
/** The minimum values of these flags end connections, as intended. */
const cutting = ['keepaliveTimeout', 'keepaliveMaxServerConnectionAge']
const numberedFlags = Object.entries(table).flatMap(([name, flag]) =>
  'range' in flag ? [{ name, type: String(flag.helpValue), range: flag.range }] : [],
)
type Ends = readonly [least: string | number, most: string | number]

/** Sets every number and duration to one end of its range, except the given ones. */
function settings(end: 'least' | 'most', types: readonly string[], except: Readonly<Record<string, string>>) {
  const value = ([least, most]: Ends) => String(end === 'least' ? least : most)
  const chosen = numbered.filter(({ type }) => types.includes(type))
  return {
    env: { ...Object.fromEntries(chosen.map(({ name, range }) => [name, value(range)])), ...except },
    flags: numberedFlags
      .filter(({ name, type }) => types.includes(type) && !(end === 'least' && cutting.includes(name)))
      .map(({ name, range }) => `--${name}=${value(range)}`),
  }
}

for (const [title, { env, flags }] of [
  [
    'the longest durations that flags and variables may have',
    settings('most', ['duration'], { PILOT_DEBOUNCE_AFTER: '10ms', PILOT_ENABLE_FLOW_CONTROL: 'true' }),
  ],
  [
    'the least values that flags and variables may have',
    settings('least', ['duration', 'integer', 'number', 'int', 'float32'], {
      MESH_GPRC_MAXRECVMSGSIZE: '100000',
      PILOT_ENABLE_FLOW_CONTROL: 'true',
    }),
  ],
] as const)
  describe(title, () => {
    const service = new Service({ env: { ...env, PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1' }, flags })
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

    it('end no connection, delay no change, and keep no thread busy', async () => {
      const clients = [1, 2].map((one) => new XdsClient(service.grpcPort, sidecarNode(`10.0.0.${one}`, `p${one}`, 'shop'), one === 2))
      try {
        await Promise.all(clients.map((client) => client.connect().ready()))
        for (const name of ['one', 'two', 'three']) {
          service.write(`${name}.yaml`, entry(name))
          const cluster = `outbound|80||${name}.example`
          await until(`the cluster of ${name}`, () => clients.every((client) => client.resources.get(clusterType)?.has(cluster)))
        }
        expect(clients.map((client) => client.closed)).to.deep.equal([undefined, undefined])
        expect(issuer.fetches, 'fetches of keys').to.be.within(1, 100)
        const metrics = await service.metrics()
        expect(metrics).not.to.match(/^pilot_xds_write_timeout(_total)? [1-9]/m)
        // What is busy with its start, or waits for a processor, is not busy for ever.
        await until('nothing to be busy', async () => {
          const shares = [...(await service.metrics()).matchAll(/^actor_event_loop_utilisation\{actor="([^"]+)"\} (\S+)$/gm)]
          expect(shares).not.to.deep.equal([])
          expect(shares.filter(([, , share]) => Number(share) > 0.9).map(([, actor]) => actor)).to.deep.equal([])
          return true
        })
      } finally {
        for (const client of clients) client.close()
      }
    })
  })
