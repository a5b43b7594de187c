import { expect } from 'chai'
import { boundedEnd } from '../../../actors/runtime/bounded-end.ts'

describe('the end of parts', () => {
  const ends = async (parts: Readonly<Record<string, Promise<unknown> | undefined>>, ms: number) => {
    const failures: string[] = []
    await boundedEnd(parts, ms, (part, reason) => failures.push(`${part}: ${reason}`))
    return failures
  }

  it('is waited for, also of parts that are not there', async () => {
    let isEnded = false
    const later = new Promise<void>((resolve) => setImmediate(resolve)).then(() => void (isEnded = true))
    expect(await ends({ later, none: undefined }, 60_000)).to.deep.equal([])
    expect(isEnded).to.equal(true)
  })

  it('is not waited for beyond a bound, and does not fail with one of them: each is named', async () => {
    const never = new Promise(() => undefined)
    const failing = Promise.reject(new Error('no such file'))
    expect(await ends({ never, failing, well: Promise.resolve() }, 100)).to.deep.equal([
      'failing: no such file',
      'never: it has not ended after 0.1 s',
    ])
  })
})
