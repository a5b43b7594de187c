import { expect } from 'chai'
import { createPool } from '../../actors/runtime/pool.ts'

describe('a pool task', () => {
  const pool = createPool(new URL('./parts/endless-task.ts', import.meta.url), { threads: 1, queue: 4 })
  after(() => pool.destroy())

  it('that exceeds its deadline is ended, and the only thread is available for the next task', async () => {
    const ended = await pool.run({ endless: true }, 200).then(
      () => 'answered',
      (error: Error) => error.name,
    )
    expect(ended).to.equal('AbortError')
    expect(await pool.run({ endless: false }, 15_000)).to.deep.equal({ endless: false })
  })
})
