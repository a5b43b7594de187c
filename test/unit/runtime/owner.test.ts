import { spawnSync } from 'node:child_process'
import { expect } from 'chai'
import { Owner } from '../../../actors/runtime/owner.ts'
import { after as runAfter } from '../../../actors/runtime/timers.ts'

const file = new URL('../../../actors/runtime/owner.ts', import.meta.url).href

/** Runs code that has `Owner` and `catchErrorsOfOwners` in a process of its own. */
function run(code: string): { status: number | null; stdout: string; stderr: string } {
  const script = `import { Owner, catchErrorsOfOwners } from ${JSON.stringify(file)}; catchErrorsOfOwners(); ${code}`
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  return { status, stdout, stderr }
}

describe('the owner of timers and promises in a shared thread', () => {
  it('receives errors from its timers and promises, which end the actor and not the process', () => {
    const { status, stdout } = run(`
      const owner = (name) => new Owner((error) => console.log(name, error.message))
      owner('one').run(() => setTimeout(() => { throw new Error('a') }, 1))
      owner('two').run(() => void Promise.reject(new Error('b')))
      owner('three').run(() => setImmediate(async () => { await null; throw new Error('c') }))
      setTimeout(() => console.log('alive'), 20)`)
    expect([status, stdout.trim().split('\n').sort()]).to.deep.equal([0, ['alive', 'one a', 'three c', 'two b']])
  })

  it('receives no other errors: those end the process as usual', () => {
    for (const code of [`setTimeout(() => { throw new Error('mine') }, 1)`, `Promise.reject(new Error('mine'))`]) {
      const { status, stderr } = run(`${code}; setTimeout(() => console.log('alive'), 1000)`)
      expect([status, stderr.includes('Error: mine')]).to.deep.equal([1, true])
    }
  })

  it('cancels its timers when it ends, also timers that are set afterwards', async () => {
    const ran: string[] = []
    const owner = new Owner(() => {})
    owner.run(() => runAfter(1, () => ran.push('before')))
    owner.end()
    owner.run(() => runAfter(1, () => ran.push('after')))
    await new Promise<void>((resolve) => runAfter(10, resolve))
    expect(ran).to.deep.equal([])
  })
})
