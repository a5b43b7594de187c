/**
 * Attacks on the built package, one after another: what 50 sidecars on the secured port, an agent and the readiness of both notice of each
 * while configuration changes every second; and how long a starting agent waits for its first certificate beside 200 addresses that open
 * TLS connections all the time.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { AttackedMesh, backMib, type Noticed } from '../attacked-mesh.ts'
import type { Targets } from '../attackers.ts'
import type { Goal } from '../goals.ts'
import { withPackage } from '../package.ts'
import { freePort } from '../ports.ts'
import type { Measure } from '../report.ts'
import { rowByRow } from '../rows.ts'

const sidecars = 50
/** The duration of an attack, and the maximum duration of the rest after it, in seconds. */
const [attackSeconds, restSeconds] = [20, 60]
/** The goals: times in milliseconds, memory in MiB. */
const most = { change: 2000, ready: 1000, memory: 100, certificate: 5000 }
/** The number of starts of an agent beside the crowd, and of key-set sources. */
const [agentStarts, policies, sources] = [5, 5, 20]

/** The names of the attacks, in their order. */
export const attackNames = [
  'costly chains',
  'costly chains, 60 at once',
  'RSA-16384 chains',
  'key sets behind costly chains',
  'key sets of deep megabytes',
  'key sets of 90,000 keys',
  'pipelined probes (agent)',
  'pipelined readiness (agent)',
  'pipelined pages with forged tokens',
  'pipelined readiness (discovery)',
  'forged tokens (15012)',
  'idle connections to a probe (agent)',
  'unfinished handshakes',
  'idle connections (discovery)',
  'metrics in chunks of a byte (agent)',
  'questions of DNS (agent)',
] as const
type AttackName = (typeof attackNames)[number]

/** What is attacked, and how. */
export interface AttacksOptions {
  readonly writers: number
  readonly names: readonly AttackName[]
  /** The directory of another checkout whose package is attacked. */
  readonly checkout: string | undefined
}

/**
 * Runs the attacks, then the crowd unless some attacks were chosen, each at a mesh of its own where the one before may have left something
 * behind.
 */
export function attacks({ writers, names, checkout }: AttacksOptions): Promise<Measure[]> {
  return withPackage(async (command) => {
    const chosen = names.length > 0 ? (['nothing', ...names] as const) : []
    // Chosen attacks are run without the crowd, which takes longer than one of them.
    const crowds = names.length === 0 || names.length === attackNames.length ? (['crowd', 'crowd with costly chains'] as const) : []
    return rowByRow('attacks', [
      ...chosen.map((name) => ({ scenario: name, measure: () => attacked(command, writers, name) })),
      ...crowds.map((name) => ({ scenario: name, measure: () => crowd(command, writers, name) })),
    ])
  }, checkout)
}

/** Measures what is noticed of one attack. */
async function attacked(command: (name: string) => string, writers: number, name: AttackName | 'nothing'): Promise<Measure> {
  const mesh = await AttackedMesh.start(command, sidecars, writers)
  try {
    // The configuration of the first proxies, and compiling, are over.
    await pause(3000)
    return measureOf(name, await mesh.notice(() => begin(mesh, name), attackSeconds, restSeconds))
  } finally {
    await mesh.stop()
  }
}

/** Starts a process that attacks. Returns what ends it. */
function attack(name: string, targets: Targets): () => Promise<void> {
  const child: ChildProcess = fork(fileURLToPath(new URL('../attackers.ts', import.meta.url)), [name, JSON.stringify(targets)])
  return async () => {
    if (child.exitCode !== null) throw new Error(`the attack ${name} ended by itself`)
    const ended = new Promise((resolve) => child.on('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }
}

function begin(mesh: AttackedMesh, name: AttackName | 'nothing'): () => Promise<void> {
  if (name === 'nothing') return async () => undefined
  const end = attack(name, mesh.targets)
  if (!name.startsWith('key sets')) return end
  const scheme = name === 'key sets behind costly chains' ? 'https' : 'http'
  for (let policy = 0; policy < policies; policy++) mesh.put(`keys-${policy}.yaml`, keySets(policy, `${scheme}://127.0.0.1:${mesh.targets.keySets}`))
  return async () => {
    for (let policy = 0; policy < policies; policy++) mesh.put(`keys-${policy}.yaml`, undefined)
    await end()
  }
}

/** Returns a RequestAuthentication with sources of its own. */
function keySets(policy: number, origin: string): string {
  const rules = Array.from({ length: sources }, (_, source) => `{issuer: i-${policy}-${source}, jwksUri: "${origin}/${policy}/${source}"}`)
  return `apiVersion: security.mesh.io/v1
kind: RequestAuthentication
metadata: {name: keys-${policy}, namespace: tenant-${policy}}
spec: {jwtRules: [${rules.join(', ')}]}
`
}

function measureOf(name: string, { change, dropped, ready, agentReady, memory, ended }: Noticed): Measure {
  const { discovery, agent } = memory
  const of = (value: (memory: Noticed['memory']['agent']) => number) => Math.max(value(discovery), value(agent))
  const goals: Goal[] = [
    { what: 'change', seen: change, most: most.change, unit: 'ms' },
    { what: 'dropped', seen: dropped, most: 0, unit: 'streams' },
    { what: 'readiness of discovery', seen: ready, most: most.ready, unit: 'ms' },
    { what: 'readiness of the agent', seen: agentReady, most: most.ready, unit: 'ms' },
    { what: 'memory during the attack', seen: of((one) => one.most - one.before), most: most.memory, unit: 'MB' },
    { what: 'memory a minute after', seen: of((one) => one.after - one.before), most: backMib, unit: 'MB' },
  ]
  const memoryOf = ({ before, most: peak, after }: Noticed['memory']['agent']) => [before, peak, after].map(Math.round).join(', ')
  const figures = {
    'change ms': Math.round(change),
    'streams dropped': dropped,
    '/ready ms': Math.round(ready),
    'agent ready ms': Math.round(agentReady),
    'discovery MiB before, during, after': memoryOf(discovery),
    'agent MiB before, during, after': memoryOf(agent),
    'actors ended': ended,
  }
  return { ...empty, scenario: name, variant: 'attack', figures, goals }
}

/** The fields of a measure that attacks do not have. */
const empty = { cpu: Number.NaN, mib: 0, rss: Number.NaN, threads: {} }

/** Measures how long starting agents wait for their first certificate. */
async function crowd(command: (name: string) => string, writers: number, name: 'crowd' | 'crowd with costly chains'): Promise<Measure> {
  const mesh = await AttackedMesh.start(command, 1, writers)
  try {
    const [quiet, beside]: [number[], number[]] = [[], []]
    for (let count = 0; count < agentStarts; count++) quiet.push(await firstCertificate(mesh))
    const end = attack(name, mesh.targets)
    // Each address is seen once before.
    await pause(5000)
    for (let count = 0; count < agentStarts; count++) beside.push(await firstCertificate(mesh))
    await end()
    const worst = Math.max(...beside)
    const [listed, alone] = [beside, quiet].map((waits) => waits.map(Math.round).join(', '))
    const figures = { 'first certificate ms': listed ?? '', 'without the crowd ms': alone ?? '' }
    const goals: Goal[] = [{ what: 'first certificate of an agent', seen: worst, most: most.certificate, unit: 'ms' }]
    return { ...empty, scenario: name, variant: 'crowd', figures, goals }
  } finally {
    await mesh.stop()
  }
}

/**
 * Starts an agent whose connections come from the network of the crowd. Returns the milliseconds from its first connection to its first
 * certificate; infinite after a minute.
 */
async function firstCertificate(mesh: AttackedMesh): Promise<number> {
  let connected: number | undefined
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    connected ??= performance.now()
    const onward = connect({ host: '127.0.0.1', port: mesh.targets.secure, localAddress: '127.66.0.254' })
    for (const [from, to] of [[socket, onward] as const, [onward, socket] as const]) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
      from.pipe(to)
    }
  })
  const port = await freePort()
  server.listen(port, '127.0.0.1')
  const home = join(mesh.dir, 'late-agent')
  rmSync(home, { recursive: true, force: true })
  mkdirSync(home)
  const proxy = join(home, 'sleeps')
  writeFileSync(proxy, '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 })
  const child = mesh.startAgent(
    home,
    port,
    { binaryPath: proxy, proxyAdminPort: await freePort(), statusPort: await freePort() },
    { PROXY_STATUS_PORT: String(await freePort()), PROXY_PROMETHEUS_PORT: String(await freePort()), OUTPUT_CERTS: join(home, 'certs') },
  )
  try {
    const until = performance.now() + 60_000
    while (!existsSync(join(home, 'certs/cert-chain.pem'))) {
      if (performance.now() > until) return Number.POSITIVE_INFINITY
      if (child.exitCode !== null) throw new Error(`an agent ended: ${readFileSync(join(home, 'agent.log'), 'utf8')}`)
      await pause(5)
    }
    return performance.now() - (connected as number)
  } finally {
    if (child.exitCode === null) {
      const ended = new Promise((resolve) => child.on('exit', resolve))
      child.kill('SIGKILL')
      await ended
    }
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}
