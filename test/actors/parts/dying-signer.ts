/** A signer that does what its requests say: ends its thread, throws, hangs, or returns without signing. */
import type { JobOutcome, SignerTask } from '../../../actors/discovery/authority/sign-task.ts'

export default function run(task: SignerTask): { outcomes: JobOutcome[] } {
  const jobs = task.type === 'sign' ? task.jobs : []
  for (const { csr } of jobs) {
    if (csr === 'die') process.exit(1)
    if (csr === 'throw') throw new Error('a fault of the signer')
    if (csr === 'hang') for (;;);
    if (csr.startsWith('slow')) for (const end = performance.now() + 20; performance.now() < end; );
  }
  return { outcomes: jobs.map(({ csr }) => ({ certificate: csr, serial: task.type })) }
}
