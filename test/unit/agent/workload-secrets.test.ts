import { expect } from 'chai'
import { WorkloadSecrets } from '../../../src/agent/workload-secrets.ts'

const hour = 3_600_000
const begin = { wall: 1_800_000_000_000, monotonic: 5000 }
const later = (ms: number, clockMoved = 0) => ({ wall: begin.wall + ms + clockMoved, monotonic: begin.monotonic + ms })
const issued = (notAfter: number, roots = 'roots') => ({ chain: 'chain', roots, notAfter, identity: 'spiffe://td/ns/a/sa/b' })
/** Returns secrets with a certificate that expires an hour after `begin`. */
function withCertificate(ratio = 0.5): WorkloadSecrets {
  const secrets = new WorkloadSecrets(ratio)
  secrets.asked()
  secrets.issued(issued(begin.wall + hour), 'key', begin, 0)
  return secrets
}

describe('secrets of a workload', () => {
  it('are requested at once, by one call at a time, and are not served before the first answer', () => {
    const secrets = new WorkloadSecrets(0.5)
    expect(secrets.wait(begin)).to.equal(0)
    expect([secrets.pair(begin), secrets.roots]).to.deep.equal([undefined, undefined])
    secrets.asked()
    expect(secrets.wait(later(hour))).to.equal(Number.POSITIVE_INFINITY)
  })

  it("are renewed at half of the certificate's lifetime", () => {
    const secrets = withCertificate()
    expect([secrets.pair(begin)?.secret.name, secrets.roots?.secret.name]).to.deep.equal(['default', 'ROOTCA'])
    expect(secrets.wait(begin)).to.equal(hour / 2)
    expect(secrets.wait(later(hour / 2))).to.equal(0)
    secrets.asked()
    secrets.issued(issued(begin.wall + 2 * hour), 'new key', later(hour), 0)
    expect(secrets.wait(later(hour))).to.equal(hour / 2)
    expect(secrets.pair(later(hour))?.key).to.equal('new key')
  })

  it('have versions that change exactly when their content does', () => {
    const secrets = withCertificate()
    const versions = () => [secrets.pair(begin)?.secret.version, secrets.roots?.secret.version]
    const [pair, roots] = versions()
    secrets.issued(issued(begin.wall + hour), 'key', begin, 0)
    expect(versions()).to.deep.equal([pair, roots])
    secrets.issued(issued(begin.wall + hour, 'other roots'), 'key', begin, 0)
    expect(versions()[0]).to.equal(pair)
    expect(versions()[1]).not.to.equal(roots)
    secrets.issued(issued(begin.wall + hour, 'other roots'), 'other key', begin, 0)
    expect(versions()[0]).not.to.equal(pair)
  })

  it('are not served after the certificate expired, except the roots', () => {
    const secrets = withCertificate()
    expect([secrets.pair(later(hour)), secrets.roots?.secret.name]).to.deep.equal([undefined, 'ROOTCA'])
    expect(secrets.pair(later(hour))).to.equal(undefined)
    expect(secrets.roots?.pem).to.equal('roots')
  })

  it('back off after each failed request, and reset the back-off after a success', () => {
    const secrets = withCertificate()
    let at = hour / 2
    for (const wait of [100, 200, 400]) {
      secrets.asked()
      expect(secrets.failed(0, later(at), 0)).to.equal(wait)
      expect(secrets.wait(later(at))).to.equal(wait)
      expect(secrets.wait(later(at + wait))).to.equal(0)
      at += wait
    }
    expect(secrets.failures).to.equal(3)
    for (let more = 0; more < 20; more++) secrets.failed(0, later(hour - 8000), 0)
    expect(secrets.failed(0, later(hour - 8000), 0), 'shortly before the end').to.equal(1000)
    expect(secrets.failed(0, later(hour), 0), 'after the end').to.equal(15_000)
    secrets.issued(issued(begin.wall + 3 * hour), 'key', later(at), 0)
    expect(secrets.failures).to.equal(0)
    expect(secrets.wait(later(at))).to.be.above(hour)
  })

  it('are retried at once when the cause of a failure may be gone, but never before renewal is due', () => {
    const secrets = withCertificate()
    secrets.retryNow()
    expect(secrets.wait(begin)).to.equal(hour / 2)
    secrets.asked()
    secrets.failed(60_000, later(hour / 2), 0)
    expect(secrets.wait(later(hour / 2))).to.equal(60_000)
    secrets.retryNow()
    expect(secrets.wait(later(hour / 2))).to.equal(0)
  })

  it('that were restored from an earlier process are renewed according to when they were issued', () => {
    const restored = (issuedAt: number) => {
      const secrets = new WorkloadSecrets(0.5)
      secrets.restored(issued(begin.wall + hour), 'key', issuedAt, begin, 0)
      return secrets
    }
    expect(restored(begin.wall).wait(begin)).to.equal(hour / 2)
    expect(restored(begin.wall - hour / 2).wait(begin), 'half an hour ago').to.equal(hour / 4)
    expect(restored(begin.wall - 2 * hour).wait(begin), 'long ago').to.equal(0)
    expect(restored(begin.wall + hour).wait(begin), 'issued by a clock that was ahead').to.equal(hour / 2)
    expect(restored(begin.wall).pair(begin)?.key).to.equal('key')
    const secrets = restored(begin.wall)
    secrets.renewWithin(0, begin)
    expect(secrets.wait(begin)).to.equal(0)
  })

  it('are renewed in time although the clock is set back or forward or the machine sleeps', () => {
    expect(withCertificate().wait(later(hour / 2, -10 * hour)), 'set back').to.equal(0)
    expect(withCertificate().wait(later(1000, hour)), 'set forward').to.equal(0)
    const asleep = { wall: begin.wall + hour / 2, monotonic: begin.monotonic + 1000 }
    expect(withCertificate().wait(asleep), 'sleep').to.equal(0)
  })

  it('are renewed neither immediately nor too late with any grace ratio', () => {
    for (const ratio of [0, 0.5, 1]) expect(withCertificate(ratio).wait(begin)).to.be.within(hour / 10 - 1, hour * 0.9)
  })
})
