import { generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { OwnCertificate } from '../../actors/discovery/own-keys/own-certificate.ts'
import type { CertificateAnswer } from '../../protocols/messages/authority.ts'
import type { ServingCertificate } from '../../protocols/messages/certificates.ts'
import { readCertificate } from '../../src/ca/certificate.ts'
import { issueRoot, issueServing, signingKeyOf } from '../../src/ca/issue.ts'
import { pemOf } from '../../src/identity/pem.ts'

const hour = 3_600_000

describe("a writer's own serving certificate", () => {
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.now() })
    // The monotonic clock stands still with the timers: on a busy machine a retry would be due before its timer.
    const { now } = Date
    mock.method(process, 'hrtime', () => [Math.floor(now() / 1000), (now() % 1000) * 1e6])
  })
  afterEach(() => {
    mock.restoreAll()
    mock.timers.reset()
  })

  /** An authority that issues certificates of the given lifetime, unless the test lets it answer otherwise. */
  function authority(lifeMs: number) {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const now = Math.floor(Date.now() / 1000) * 1000
    const grant = () => ({ notBefore: now, notAfter: now + lifeMs, serial: randomBytes(16) })
    const root = issueRoot('test', { ...grant(), notAfter: now + 24 * hour }, privateKey)
    const signer = signingKeyOf(readCertificate(root), privateKey)
    const asked: string[] = []
    const used: ServingCertificate[] = []
    const logged: string[] = []
    const failed: string[] = []
    let refusals = 0
    let wait: Promise<void> | undefined
    const own = new OwnCertificate({
      async sign({ csr }): Promise<CertificateAnswer> {
        asked.push(csr)
        await wait
        if (refusals-- > 0) return { code: 14, message: 'not now', error: 'CA_NOT_READY' }
        return { chain: [pemOf('CERTIFICATE', issueServing(csr, grant(), signer)), pemOf('CERTIFICATE', root)] }
      },
      use: (certificate) => used.push(certificate),
      failed: (times, reason) => failed.push(`${times} ${reason}`),
      log: { info: (line: string) => logged.push(line), warn: (line: string) => logged.push(line) } as never,
    })
    return { own, asked, used, logged, failed, refuse: (times: number) => (refusals = times), hold: (until: Promise<void>) => (wait = until) }
  }
  /** Keys are generated on threads of the process, which the mocked timers do not affect. */
  const until = async (condition: () => boolean) => {
    while (!condition()) await turn()
  }

  it('has a new key and all hosts, and is only signed again for other hosts', async () => {
    const { own, asked, used } = authority(hour)
    own.serve(['a.test', '127.0.0.1', '::1'])
    await until(() => used.length === 1)
    const [{ cert, key }] = used as [ServingCertificate]
    const certificate = new X509Certificate(cert)
    expect(certificate.subjectAltName).to.equal('DNS:a.test, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1')
    expect(key).to.contain('PRIVATE KEY')
    own.serve(['a.test', '127.0.0.1', '::1'])
    expect(asked).to.have.length(1)
    own.serve(['b.test'])
    await until(() => used.length === 2)
    expect(used[1]?.key).not.to.equal(key)
  })

  it('is renewed between half and two thirds of its lifetime', async () => {
    const { own, asked, used } = authority(hour)
    own.serve(['a.test'])
    await until(() => used.length === 1)
    await turn()
    mock.timers.tick(hour * 0.49)
    await turn()
    expect(asked).to.have.length(1)
    mock.timers.tick(hour * 0.17)
    await until(() => used.length === 2)
  })

  it('is renewed in time by the wall clock after timers stood still during a sleep of the machine', async () => {
    const { own, asked, used } = authority(hour)
    own.serve(['a.test'])
    await until(() => used.length === 1)
    await turn()
    const awake = Date.now()
    const clock = mock.method(Date, 'now', () => awake + hour * 0.66)
    try {
      mock.timers.tick(60_000)
      await until(() => used.length === 2)
    } finally {
      clock.mock.restore()
    }
    expect(asked).to.have.length(2)
  })

  it('is kept while the authority does not sign, with retries at increasing intervals', async () => {
    const { own, asked, used, logged, failed, refuse } = authority(hour)
    refuse(3)
    own.serve(['a.test'])
    for (const [times, ms] of [
      [1, 200],
      [2, 400],
      [3, 800],
    ] as const) {
      await until(() => logged.length === times)
      // The next attempt is planned some turns after the line, more of them on a busy machine.
      for (let turns = 0; turns < 50; turns++) await turn()
      expect(logged.at(-1)).to.equal(`the serving certificate was not signed: not now; trying again in ${ms} ms`)
      mock.timers.tick(ms - 1)
      expect(asked).to.have.length(times)
      mock.timers.tick(1)
    }
    await until(() => used.length === 1)
    expect(failed).to.deep.equal(['1 not now', '2 not now', '3 not now'])
    expect(asked).to.have.length(4)
  })

  it('is signed again if its hosts change while the authority signs', async () => {
    const { own, asked, used, hold } = authority(hour)
    const held = Promise.withResolvers<void>()
    hold(held.promise)
    own.serve(['a.test'])
    await until(() => asked.length === 1)
    own.renew()
    own.serve(['b.test'])
    held.resolve()
    await until(() => used.length === 1)
    expect(new X509Certificate(used[0]?.cert ?? '').subjectAltName).to.equal('DNS:b.test')
    expect(asked).to.have.length(2)
  })

  it('is requested once its hosts are known', async () => {
    const { own, asked } = authority(hour)
    own.renew()
    await turn()
    expect(asked).to.deep.equal([])
  })
})
