/** Signing on threads that die, hang and are overloaded. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import run from '../../actors/discovery/authority/sign-task.ts'
import { Signing, type SigningResult } from '../../actors/discovery/authority/signing.ts'
import { monotonicMs } from '../../actors/runtime/clock.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { keys } from '../harness/signing-requests.ts'

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
        asking: { signal: gone.signal, restMs: () => Number.POSITIVE_INFINITY },
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

  it('signs nothing for calls whose time is over, also where no timer has said so: its thread may be busy when the deadline passes', async () => {
    signing = new Signing(1, module)
    const until = performance.now() + 100
    const asking = { signal: new AbortController().signal, restMs: () => Math.max(0, until - performance.now()) }
    let grants = 0
    const grant = () => {
      grants++
      return { by, notBefore: 0, notAfter: 1 }
    }
    const calls = Array.from({ length: 200 }, (_, index) =>
      signing.sign({ caller: 'a', csr: `slow ${index}`, identity: 'x', asking, grant: grant as never }),
    )
    const results = (await Promise.all(calls)).map(became)
    expect(new Set(results)).to.include('gone')
    // Each takes 20 ms. The first two batches consist of one call each, since no other waited yet; the next two take 320 ms each.
    expect(results.filter((result) => result !== 'gone').length).to.be.at.most(5)
    expect(grants).to.be.at.most(34)
    expect(became(await ask('b', 'good'))).to.equal('signed')
  })

  it('leaves out in its thread what nobody waits for any more when its turn comes', () => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-test-'))
    const made = new ServingCertificates(dir)
    made.authority('ca')
    try {
      const certificate = made.text('ca.pem')
      const reference = { id: 'ca', certificate, key: { kind: 'file', path: join(dir, 'ca-key.pem') } } as const
      const job = { csr: makeSigningRequest(keys.p256, [{ dns: 'meshd' }]), identity: undefined, cluster: undefined, notBefore: 0, notAfter: 1e12 }
      const now = monotonicMs()
      const jobs = [now + 60_000, now - 1, Number.POSITIVE_INFINITY].map((until) => ({ ...job, until }))
      const gone = new SharedArrayBuffer(3)
      new Uint8Array(gone)[2] = 1
      const answer = run({ type: 'sign', by: reference, jobs, gone })
      const outcomes = 'outcomes' in answer ? answer.outcomes : []
      expect(
        outcomes.map((outcome) => ('fault' in outcome ? outcome.fault : 'signed')),
        JSON.stringify(answer),
      ).to.deep.equal(['signed', 'gone', 'gone'])
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })

  it('answers waiting calls when it is closed', async () => {
    signing = new Signing(1, module)
    const results = Array.from({ length: 100 }, (_, index) => ask('a', `slow ${index}`))
    await signing.close()
    for (const result of await Promise.all(results)) expect(became(result)).to.be.oneOf(['signed', 'died'])
  })
})
