/** What analysis says of servers that share a port is what the planner does with them. */
import { expect } from 'chai'
import fc from 'fast-check'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

interface Server {
  readonly number: number
  readonly targetPort: number
  readonly bind: string
  readonly protocol: string
  readonly hosts: readonly string[]
}
interface Gateway {
  readonly namespace: string
  readonly selector: Readonly<Record<string, string>>
  readonly servers: readonly Server[]
}

/** The labels of the pod of a gateway, which some selectors do not have. */
const labels = { app: 'gateway', edge: 'a' }
const server: fc.Arbitrary<Server> = fc.record({
  number: fc.constantFrom(80, 443),
  targetPort: fc.constantFrom(0, 0, 0, 8443),
  bind: fc.constantFrom('', '', '', '0.0.0.0', '10.0.0.9'),
  protocol: fc.constantFrom('HTTP', 'http', 'GRPC', 'HTTPS', 'TLS', 'TCP', 'MONGO'),
  hosts: fc.uniqueArray(fc.constantFrom('a.example', 'b.example', 'B.example', '*.example', './a.example', 'shop/b.example'), {
    minLength: 1,
    maxLength: 2,
  }),
})
const gateway: fc.Arbitrary<Gateway> = fc.record({
  namespace: fc.constantFrom('edge', 'shop'),
  selector: fc.constantFrom<Gateway['selector']>(
    { app: 'gateway' },
    { app: 'gateway', edge: 'a' },
    { edge: 'a' },
    { app: 'gateway', edge: 'b' },
    { app: 'other' },
  ),
  servers: fc.array(server, { minLength: 1, maxLength: 4 }),
})

function documentOf({ namespace, selector, servers }: Gateway, index: number): string {
  const spec = {
    selector,
    servers: servers.map(({ number, targetPort, bind, protocol, hosts }, at) => ({
      port: { number, name: `p${at}`, protocol, ...(targetPort ? { targetPort } : {}) },
      hosts,
      ...(bind === '' ? {} : { bind }),
      ...(protocol === 'HTTPS' ? { tls: { mode: 'SIMPLE', credentialName: 'c' } } : protocol === 'TLS' ? { tls: { mode: 'PASSTHROUGH' } } : {}),
    })),
  }
  const metadata = { name: `g${index}`, namespace, creationTimestamp: `2026-01-0${1 + index}T00:00:00Z` }
  return JSON.stringify({ apiVersion: 'networking.mesh.io/v1', kind: 'Gateway', metadata, spec })
}

/** The servers that the planner leaves out of what a pod with these labels serves, `<namespace>/<name> <index>`. */
function planned(text: string, env: Record<string, string>): string[] {
  const planner = new Planner(testSettings(env))
  for (const object of parseConfigFile('a.yaml', text, names).objects) planner.state.setConfig(configKey(object), object)
  planner.advance()
  const metadata = { LABELS: labels }
  planner.connect('p', readNode({ id: 'router~10.0.0.1~w.edge~edge.svc.cluster.local', metadata, locality: undefined }, names, false))
  planner.takePush()
  const faults = planner.faults.all().filter(({ reason }) => reason.startsWith('server p'))
  return [...new Set(faults.map(({ resource, reason }) => `${resource} ${/^server p(\d+)/.exec(reason)?.[1]}`))].sort()
}

/** The same, as analysis finds it. */
function analyzed(text: string, env: Record<string, string>): string[] {
  const mesh = new OfflineMesh(testSettings(env))
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'w', namespace: 'edge', labels }, spec: { containers: [] } }
  mesh.add('a.yaml', [text, JSON.stringify(pod)].join('\n---\n'))
  const analysis = new Analysis(mesh.facts())
  analysis.refresh()
  const found = analysis.all().filter(({ code }) => code === 'MESH0006')
  return found.map(({ object, path }) => `${object.slice('Gateway/'.length)} ${/\[(\d+)\]/.exec(path)?.[1]}`).sort()
}

describe('servers that share a port', () => {
  it('are found to be left out exactly where the planner leaves them out', () => {
    fc.assert(
      fc.property(fc.array(gateway, { minLength: 1, maxLength: 4 }), fc.boolean(), (gateways, scoped) => {
        const env = { PILOT_SCOPE_GATEWAY_TO_NAMESPACE: String(scoped) }
        // Of Gateways that do not select the pod the planner is not asked.
        const mine = gateways.filter(
          ({ selector, namespace }) =>
            Object.entries(selector).every(([label, value]) => (labels as Record<string, string>)[label] === value) &&
            (!scoped || namespace === 'edge'),
        )
        const text = mine.map(documentOf).join('\n---\n')
        expect(analyzed(text, env)).to.deep.equal(planned(text, env))
      }),
      { numRuns: runs(1000) },
    )
  })

  it('are told with both Gateways, port and protocols, also while no workload is known', () => {
    const at = (name: string, protocol: string, day: number, more = {}) =>
      JSON.stringify({
        apiVersion: 'networking.mesh.io/v1',
        kind: 'Gateway',
        metadata: { name, namespace: 'edge', creationTimestamp: `2026-01-0${day}T00:00:00Z` },
        spec: { selector: { app: 'gateway' }, servers: [{ port: { number: 443, name: 'p', protocol }, hosts: ['a.example'], ...more }] },
      })
    const messages = (...documents: string[]) => {
      const mesh = new OfflineMesh(testSettings())
      mesh.add('a.yaml', documents.join('\n---\n'))
      const analysis = new Analysis(mesh.facts())
      analysis.refresh()
      return analysis.all().map(({ code, object, message }) => `${code} ${object}: ${message}`)
    }
    expect(messages(at('b', 'HTTP', 2), at('a', 'TCP', 1))).to.deep.equal([
      'MESH0006 Gateway/edge/b: spec.servers[0] of the Gateway edge/a, which selects the same workloads and is older, has the port 443 for TCP, and this one is for HTTP, so this one is left out: plain HTTP shares a port with plain HTTP only; give it another port',
    ])
    const tls = { tls: { mode: 'PASSTHROUGH' } }
    expect(messages(at('a', 'TLS', 1, tls), at('b', 'TLS', 2, tls))).to.deep.equal([
      'MESH0006 Gateway/edge/b: spec.servers[0] of the Gateway edge/a, which selects the same workloads and is older, has the port 443 for TLS, and this one is for TLS, so this one is left out: the host a.example is served on the port already; give it another port or host',
    ])
  })
})
