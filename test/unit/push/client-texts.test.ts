/** Ids contain texts that clients choose: a proxy gets the same resources whichever other proxies connected before it. */
import { expect } from 'chai'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { resourcesOf } from '../../harness/held.ts'
import { names, testSettings } from '../../harness/settings.ts'

const documents = `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: db, namespace: n2}
spec:
  hosts: [db.example.com]
  resolution: STATIC
  ports: [{number: 3306, name: tcp, protocol: TCP}]
  endpoints: [{address: 10.0.0.1, network: far}]
`

/** Returns name and version of all resources of the proxy that connects last, by type. */
function resources(...metadata: readonly object[]): Record<string, string[]> {
  const planner = new Planner(testSettings())
  const { objects } = parseConfigFile('f.yaml', documents, names)
  for (const object of objects) planner.state.setConfig(configKey(object), object)
  planner.advance()
  for (const [index, given] of metadata.entries()) {
    const id = `sidecar~10.1.0.${index + 1}~p.n1~n1.svc.cluster.local`
    planner.connect(`c${index}`, readNode({ id, metadata: { ...given }, locality: undefined }, names, false))
  }
  const held = resourcesOf(planner, `c${metadata.length - 1}`)
  return Object.fromEntries([...held].map(([type, list]) => [type, list.map(({ name, version }) => `${name}@${version}`).sort()]))
}

describe('texts that clients choose', () => {
  const captures = { DNS_CAPTURE: 'true' }
  const cases: readonly (readonly [string, object, object])[] = [
    [
      'a cluster id that starts with the family of addresses of another view',
      { ...captures, CLUSTER_ID: 'ipv4|a' },
      { ...captures, DNS_AUTO_ALLOCATE: 'true', CLUSTER_ID: 'a' },
    ],
    ['a network that contains the network view of another proxy', { NETWORK: 'n', REQUESTED_NETWORK_VIEW: 'a|*' }, { NETWORK: 'n|,a' }],
  ]
  for (const [what, other, proxy] of cases)
    it(`do not make ids equal: ${what}`, () => expect(resources(other, proxy)).to.deep.equal(resources(proxy)))
})
