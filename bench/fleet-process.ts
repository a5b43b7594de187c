/** Simulates one replica in a process of its own, started with --expose-gc. Driven by bench/scenarios/fleet.ts. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Work } from './fleet-model.ts'
import type { FleetKind, Warming } from './fleet-run.ts'
import { type ReplicaSize, SimulatedReplica } from './simulated-replica.ts'

/**
 * What to simulate, after the same warming as that of a real process. Each number in `joining` is of proxies that come from a lost replica with what
 * they hold.
 */
export interface FleetCommand extends ReplicaSize {
  readonly warming: Warming
  /** All proxies, with those that stay from the warming. */
  readonly proxies: number
  readonly rounds: number
  readonly joining: readonly number[]
  /** Whether a restart and a rate of changes are simulated too. */
  readonly isWhole: boolean
}

/** What was done, by what happened. */
export interface FleetReport {
  readonly type: 'simulated'
  readonly start: number
  /** The first proxies of the process. */
  readonly first: Work
  readonly connect: Work
  /** Each round of each change. */
  readonly changes: Readonly<Record<FleetKind, readonly Work[]>>
  /** Ten seconds with ten endpoint changes each. */
  readonly busy: Work | undefined
  /** A new process: its proxies that come again with what they hold. */
  readonly again: Work | undefined
  readonly joins: readonly Work[]
  /** KiB of objects and buffers in use, for each proxy. */
  readonly kib: number
}

async function simulate(command: FleetCommand): Promise<FleetReport> {
  const { warming, proxies, rounds } = command
  const began = process.cpuUsage()
  const replica = new SimulatedReplica(command)
  const { user, system } = process.cpuUsage(began)
  let round = 0
  const changes = (kind: FleetKind, count: number) => Array.from({ length: count }, () => replica.change([{ at: 2000, kind, round: round++ }]))
  replica.connect(warming.staying)
  const first = replica.connect(warming.leaving)
  for (const kind of ['endpoint change', 'route change', 'nothing visible'] as const) changes(kind, warming.rounds)
  replica.disconnect(warming.leaving)
  const before = await inUse()
  const connect = replica.connect(proxies - warming.staying)
  const kib = ((await inUse()) - before) / 1024 / connect.connections
  const held = structuredClone(replica.held())
  const made = {
    'endpoint change': changes('endpoint change', rounds),
    'route change': changes('route change', rounds),
    'nothing visible': changes('nothing visible', rounds),
  }
  const churn = () => replica.change(Array.from({ length: 100 }, (_, index) => ({ at: index * 100, kind: 'endpoint change', round: round++ })))
  const busy = command.isWhole ? churn() : undefined
  const joins = command.joining.map((count) => {
    const work = replica.connect(count, replica.held())
    replica.disconnect(count)
    return work
  })
  // The proxies of a replica that has ended come to a new one with the same content.
  const again = command.isWhole ? new SimulatedReplica(command).connect(proxies, held) : undefined
  return { type: 'simulated', start: (user + system) / 1e6, first, connect, changes: made, busy, again, joins, kib }
}

/** Bytes of objects and buffers in use. */
async function inUse(): Promise<number> {
  for (let turn = 0; turn < 4; turn++) {
    globalThis.gc?.()
    await pause(20)
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

process.on('message', async (command: FleetCommand) => {
  process.send?.(await simulate(command))
})
// The driver has exited.
process.on('disconnect', () => process.exit(0))
