/** Measures the push queue's CPU time for a policy in a namespace without proxies, with many proxies connected in other namespaces. */
import { setTimeout as pause } from 'node:timers/promises'
import { atRest, type Bounds, within } from '../bounds.ts'
import { quietGoal } from '../goals.ts'
import { Load } from '../load.ts'
import * as mesh from '../mesh.ts'
import { type Measure, progress } from '../report.ts'
import { DiscoveryServer, spent } from '../server.ts'

const proxies = 4000
const services = 100
const namespaces = 10
/** The interval between changes: longer than the debounce of 100 ms and the processing after it. */
const betweenMs = 500

const policy = (round: number): string =>
  `apiVersion: security.mesh.io/v1
kind: AuthorizationPolicy
metadata: {name: quiet, namespace: nobody}
spec: {action: DENY, rules: [{from: [{source: {principals: [cluster.local/ns/x/sa/${round}]}}]}]}
`

/** Connects the proxies, changes the policy `rounds` times, and measures the CPU time of the push queue's thread. */
export async function quietPolicy(writers: number, rounds: number, limits: Bounds): Promise<Measure> {
  const variant = `${proxies} proxies, delta`
  progress(`quiet policy: ${variant}`)
  const server = await DiscoveryServer.start({ writers, files: mesh.files(services, namespaces) })
  const load = new Load()
  try {
    const connected = load.connect(proxies, {
      port: server.port,
      tls: false,
      delta: true,
      hosts: true,
      namespaces,
      reads: 'first',
      own: false,
      misbehaving: 0,
    })
    await within(limits, server, 'connecting', connected)
    await within(limits, server, 'what follows connecting', atRest(server))
    const change = async (round: number) => {
      server.put('quiet.yaml', policy(round))
      await pause(betweenMs)
    }
    // The first change creates the namespace.
    await change(rounds)
    await load.received()
    const then = await server.usage()
    for (let round = 0; round < rounds; round++) await change(round)
    const now = await server.usage()
    const { cpu, threads } = spent(now, then)
    const share = Object.fromEntries(Object.entries(threads).map(([name, seconds]) => [name, seconds / rounds]))
    const sent = (await load.received()) / 1_048_576 / rounds
    const goals = [quietGoal(share['push-queue'] ?? Number.POSITIVE_INFINITY)]
    return { scenario: 'policy for nobody', variant, cpu: cpu / rounds, threads: share, mib: sent, rss: now.rss, goals }
  } finally {
    load.end()
    await server.kill()
  }
}
