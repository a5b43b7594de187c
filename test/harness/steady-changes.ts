/**
 * A process that changes the route of a VirtualService at a steady rate: `steady-changes.ts <kubeconfig> <changes a second>`. Each change gives callers
 * the next number in the header `x-number`, from 1 on. Told `stop`, it waits for what is under way, makes a last change, and reports {@link SteadyChanges}.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import { ClusterObjects } from '../../bench/cluster-objects.ts'

/** What was written. */
export interface SteadyChanges {
  /** The number of the last change, and why others failed. */
  readonly last: number
  readonly failed: readonly string[]
}

/** The spec of the route with a number. */
export const numberedRoute = (number: number) => ({
  hosts: ['web'],
  http: [{ retries: { attempts: 0 }, headers: { request: { set: { 'x-number': `${number}` } } }, route: [{ destination: { host: 'web' } }] }],
})

/** More changes than these are not under way: a server that is slower than they come refuses what would be asked for more and more at once. */
const mostUnderWay = 32

async function run(kubeconfig: string, perSecond: number): Promise<void> {
  const objects = new ClusterObjects(await new ClusterConnection({ from: 'file', path: kubeconfig }).access(false), 0)
  const path = '/apis/networking.mesh.io/v1/namespaces/shop/virtualservices/web'
  const failed: string[] = []
  const underWay = new Set<Promise<unknown>>()
  let isDone = false
  process.on('message', () => (isDone = true))
  process.on('disconnect', () => process.exit(0))
  const began = performance.now()
  let last = 0
  const change = () => objects.patch(path, { spec: numberedRoute(++last) }).catch((error: Error) => failed.push(error.message))
  while (!isDone) {
    await pause(Math.max(0, began + (last * 1000) / perSecond - performance.now()))
    if (underWay.size >= mostUnderWay) await Promise.race(underWay)
    const made = change().finally(() => underWay.delete(made))
    underWay.add(made)
  }
  await Promise.all(underWay)
  // The one that counts comes after all others have been written.
  await change()
  process.send?.({ last, failed } satisfies SteadyChanges)
}

const [, script = '', kubeconfig, perSecond] = process.argv
if (script.endsWith('steady-changes.ts') && kubeconfig !== undefined) void run(kubeconfig, Number(perSecond))
