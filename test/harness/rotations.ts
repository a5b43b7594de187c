/** Rotations of the root by command. */
import { expect } from 'chai'
import type { CommandResult } from './service.ts'
import { until } from './until.ts'

/**
 * Begins a rotation. The command answers before the new key is there when generating it takes longer than a few seconds, as it does on a
 * busy machine; then this waits for the stage.
 */
export async function beginRotation(ca: (...args: string[]) => Promise<CommandResult>): Promise<void> {
  const { stdout, stderr } = await ca('rotate')
  if (stderr.includes('has not been reached yet'))
    await until('the announced root', async () => (await ca('show')).stdout.includes('Rotation stage: announce '))
  else expect(stdout).to.equal('The rotation went from stable to announce.\n')
}
