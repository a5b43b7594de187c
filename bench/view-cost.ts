/**
 * Measures the cost of a view in the push queue, as the mean over all views of a mesh: the cost of one view is less than the difference
 * between two runs of a server.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { once } from './load.ts'
import type { PlanCommand, PlanReport } from './view-planner.ts'

/** The push queue's CPU milliseconds and KiB of memory per class of a namespace, with its view. */
export type ViewCost = Pick<PlanReport, 'ms' | 'kib'>

/** Measures the cost in a process of its own. */
export async function viewCost(command: PlanCommand): Promise<ViewCost> {
  const child = fork(fileURLToPath(new URL('./view-planner.ts', import.meta.url)), { execArgv: ['--expose-gc', '--max-old-space-size=8192'] })
  try {
    child.send(command)
    return await once<PlanReport>(child, 'planned')
  } finally {
    child.kill()
  }
}
