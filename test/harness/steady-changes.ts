/**
 * A process that changes the route of a VirtualService at a steady rate: `steady-changes.ts <kubeconfig> <changes a second>`. Each change gives callers
 * the next number in the header `x-number`, from 1 on. Told `stop`, it waits for what is under way, makes a last change until the server takes it, reports
 * {@link SteadyChanges} and ends.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import { ClusterObjects } from '../../bench/cluster-objects.ts'

/** What was written. A server without time for a change refuses it, which says nothing of those who follow the changes. */
export interface SteadyChanges {
  /** The number of the last change, which was written, and how many were in all. */
  readonly last: number
  readonly written: number
  /** Why others were not. */
  readonly refusals: readonly string[]
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
  const refusals: string[] = []
  const underWay = new Set<Promise<unknown>>()
  let isDone = false
  process.on('message', () => (isDone = true))
  process.on('disconnect', () => process.exit(0))
  const began = performance.now()
  let [last, written] = [0, 0]
  /** Makes the next change. Returns whether it was written. */
  const change = () =>
    objects.patch(path, { spec: numberedRoute(++last) }).then(
      () => {
        written++
        return true
      },
      (error: Error) => {
        refusals.push(error.message)
        return false
      },
    )
  while (!isDone) {
    await pause(Math.max(0, began + (last * 1000) / perSecond - performance.now()))
    if (underWay.size >= mostUnderWay) await Promise.race(underWay)
    const made = change().finally(() => underWay.delete(made))
    underWay.add(made)
  }
  await Promise.all(underWay)
  // The one that counts comes after all others have been written.
  while (!(await change())) await pause(1000 / perSecond)
  process.send?.({ last, written, refusals } satisfies SteadyChanges, () => process.exit(0))
}

const [, script = '', kubeconfig, perSecond] = process.argv
if (script.endsWith('steady-changes.ts') && kubeconfig !== undefined) void run(kubeconfig, Number(perSecond))
