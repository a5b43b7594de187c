/** Simulates one replica in a process of its own, started with --expose-gc. Driven by bench/scenarios/fleet.ts. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Work } from './fleet-model.ts'
import { type ReplicaSize, SimulatedReplica } from './simulated-replica.ts'

/**
 * What to simulate: `warm` proxies connect first and are not counted. Each number in `joining` is of proxies that come from a lost replica with what
 * they hold.
 */
export interface FleetCommand extends ReplicaSize {
  readonly warm: number
  readonly proxies: number
  readonly rounds: number
  readonly joining: readonly number[]
  /** Whether a restart and a rate of changes are simulated too. */
  readonly isWhole: boolean
}

/** What was done, by what happened. Changes are the sum of `rounds`. */
export interface FleetReport {
  readonly type: 'simulated'
  readonly start: number
  readonly connect: Work
  readonly endpoint: Work
  readonly route: Work
  readonly invisible: Work
  /** Ten seconds with ten endpoint changes each. */
  readonly busy: Work | undefined
  /** A new process: the CPU seconds of its start, and its proxies that come again with what they hold. */
  readonly again: Work | undefined
  readonly joins: readonly Work[]
  /** KiB of objects and buffers in use, for each proxy. */
  readonly kib: number
}

async function simulate(command: FleetCommand): Promise<FleetReport> {
  const began = process.cpuUsage()
  const replica = new SimulatedReplica(command)
  const { user, system } = process.cpuUsage(began)
  replica.connect(command.warm)
  const before = await inUse()
  const connect = replica.connect(command.proxies)
  const kib = ((await inUse()) - before) / 1024 / command.proxies
  const held = structuredClone(replica.held())
  // The first change of a kind warms up the code.
  const changes = (kind: 'endpoint change' | 'route change' | 'nothing visible', rounds: number) => {
    replica.change([{ at: 0, kind, round: rounds }])
    return replica.change(Array.from({ length: rounds }, (_, round) => ({ at: round * 2000, kind, round })))
  }
  const endpoint = changes('endpoint change', command.rounds)
  const route = changes('route change', command.rounds)
  const invisible = changes('nothing visible', command.rounds)
  const churn = () => replica.change(Array.from({ length: 100 }, (_, round) => ({ at: round * 100, kind: 'endpoint change', round: round + 500 })))
  const busy = command.isWhole ? churn() : undefined
  const joins = command.joining.map((count) => {
    const work = replica.connect(count, replica.held())
    replica.disconnect(count)
    return work
  })
  const again = command.isWhole ? restarted(command, held) : undefined
  return { type: 'simulated', start: (user + system) / 1e6, connect, endpoint, route, invisible, busy, again, joins, kib }
}

/** The proxies of a replica that has ended come to a new one with the same content. */
function restarted(command: FleetCommand, held: ReturnType<SimulatedReplica['held']>): Work {
  return new SimulatedReplica(command).connect(command.warm + command.proxies, held)
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
