/** Signing on threads that die, hang and are overloaded. */
import { expect } from 'chai'
import { Signing, type SigningResult } from '../../actors/discovery/authority/signing.ts'

const by = { id: 'a', certificate: '', key: { kind: 'file', path: '' } } as const
const module = new URL('./parts/dying-signer.ts', import.meta.url)

describe('signing on a pool of threads', () => {
  let signing: Signing
  afterEach(() => signing.close())

  const ask = (caller: string, csr: string, grant = () => ({ by, notBefore: 0, notAfter: 1 })): Promise<SigningResult> =>
    signing.sign({ caller, csr, identity: 'x', grant: grant as never })
  const became = (result: SigningResult) => ('refused' in result ? result.refused : 'fault' in result ? result.fault : 'signed')

  it('fails only calls of a thread that ends', async () => {
    signing = new Signing(2, module)
    for (const bad of ['die', 'throw']) {
      const results = await Promise.all(Array.from({ length: 300 }, (_, index) => ask(`caller ${index % 7}`, index % 100 === 50 ? bad : 'good')))
      const counts = results.map(became)
      expect(counts.filter((one) => one === 'died').length, bad).to.be.within(3, 48)
      expect(counts.filter((one) => one === 'signed').length, bad).to.be.greaterThan(250)
      for (const result of results) if ('refused' in result) expect(result.retryAfterMs).to.be.within(250, 60_000)
    }
    expect(became(await ask('a', 'good'))).to.equal('signed')
  })

  it('ends a thread that hangs, and continues', async () => {
    signing = new Signing(1, module)
    const [hanging, good] = await Promise.all([ask('a', 'hang'), ask('b', 'good')])
    expect(became(hanging)).to.equal('died')
    // The other call may have waited behind it for longer than its deadline.
    expect(became(good)).to.be.oneOf(['signed', 'died', 'late'])
    expect(became(await ask('c', 'good'))).to.equal('signed')
  })

  it('rejects calls of the caller with the most waiting calls when the queue is full', async () => {
    signing = new Signing(1, module)
    const flood = Array.from({ length: 5000 }, (_, index) => ask('flood', `slow ${index}`))
    const others = await Promise.all(Array.from({ length: 20 }, (_, index) => ask(`caller ${index}`, 'good')))
    expect(others.map(became)).to.deep.equal(others.map(() => 'signed'))
    const results = (await Promise.all(flood)).map(became)
    expect(new Set(results)).to.deep.equal(new Set(['signed', 'full', 'late']))
    expect(results.indexOf('full')).to.be.greaterThan(results.indexOf('signed'))
  })

  it('rejects calls without a signing certificate', async () => {
    signing = new Signing(1, module)
    expect(became(await ask('a', 'good', (() => undefined) as never))).to.equal('unready')
  })

  it('takes calls that nobody waits for any more out of the queue, and those that are being signed are not successful', async () => {
    signing = new Signing(1, module)
    const gone = new AbortController()
    const grants: string[] = []
    const calls = Array.from({ length: 200 }, (_, index) =>
      signing.sign({
        caller: 'a',
        csr: `slow ${index}`,
        identity: 'x',
        signal: gone.signal,
        grant: () => {
          grants.push(`slow ${index}`)
          return { by, notBefore: 0, notAfter: 1 }
        },
      }),
    )
    expect(grants.length).to.be.within(1, 64)
    const begun = grants.length
    gone.abort()
    expect(new Set((await Promise.all(calls)).map(became))).to.deep.equal(new Set(['gone']))
    expect(signing.waiting).to.equal(0)
    expect(became(await ask('b', 'good'))).to.equal('signed')
    expect(grants.length).to.equal(begun)
  })

  it('answers waiting calls when it is closed', async () => {
    signing = new Signing(1, module)
    const results = Array.from({ length: 100 }, (_, index) => ask('a', `slow ${index}`))
    await signing.close()
    for (const result of await Promise.all(results)) expect(became(result)).to.be.oneOf(['signed', 'died'])
  })
})
