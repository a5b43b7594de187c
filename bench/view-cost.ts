/** What a view costs in the push queue, measured over all views of a mesh at once and divided: what one costs is less than what two servers differ by. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { once } from './load.ts'
import type { PlanCommand, PlanReport } from './view-planner.ts'

/** Milliseconds of CPU and KiB of memory that the push queue spends on the class of a namespace, its view included. */
export type ViewCost = Pick<PlanReport, 'ms' | 'kib'>

/** Measures it in a process of its own. */
export async function viewCost(command: PlanCommand): Promise<ViewCost> {
  const child = fork(fileURLToPath(new URL('./view-planner.ts', import.meta.url)), { execArgv: ['--expose-gc', '--max-old-space-size=8192'] })
  try {
    child.send(command)
    return await once<PlanReport>(child, 'planned')
  } finally {
    child.kill()
  }
}
