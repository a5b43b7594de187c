import { expect } from 'chai'
import { WorkloadSecrets } from '../../../src/agent/workload-secrets.ts'

const hour = 3_600_000
const begin = 1_800_000_000_000
const issued = (notAfter: number, roots = 'roots') => ({ chain: 'chain', roots, notAfter, identity: 'spiffe://td/ns/a/sa/b' })
/** Returns secrets with a certificate that expires an hour after `begin`. */
function withCertificate(): WorkloadSecrets {
  const secrets = new WorkloadSecrets(0.5)
  secrets.issued(issued(begin + hour), 'key', begin, begin, 0)
  return secrets
}

describe('secrets of a workload', () => {
  it('are not served before the first answer', () => {
    const secrets = new WorkloadSecrets(0.5)
    expect([secrets.pair(begin), secrets.roots]).to.deep.equal([undefined, undefined])
    secrets.issued(issued(begin + hour), 'key', begin, begin, 0)
    expect([secrets.pair(begin)?.secret.name, secrets.pair(begin)?.key, secrets.roots?.secret.name]).to.deep.equal(['default', 'key', 'ROOTCA'])
  })

  it('have versions that change exactly when their content does', () => {
    const secrets = withCertificate()
    const versions = () => [secrets.pair(begin)?.secret.version, secrets.roots?.secret.version]
    const [pair, roots] = versions()
    secrets.issued(issued(begin + hour), 'key', begin, begin, 0)
    expect(versions()).to.deep.equal([pair, roots])
    secrets.issued(issued(begin + hour, 'other roots'), 'key', begin, begin, 0)
    expect(versions()[0]).to.equal(pair)
    expect(versions()[1]).not.to.equal(roots)
    secrets.issued(issued(begin + hour, 'other roots'), 'other key', begin, begin, 0)
    expect(versions()[0]).not.to.equal(pair)
  })

  it('are not served after the certificate expired, except the roots', () => {
    const secrets = withCertificate()
    expect([secrets.pair(begin + hour), secrets.roots?.secret.name]).to.deep.equal([undefined, 'ROOTCA'])
    expect(secrets.roots?.pem).to.equal('roots')
  })

  it('are requested again sooner after a failure the shorter the certificate is valid, and seldom without one', () => {
    const secrets = withCertificate()
    expect([0, hour - 80_000, hour - 1, hour].map((ms) => secrets.longestPause(begin + ms))).to.deep.equal([60_000, 10_000, 1000, 15_000])
  })

  it('are renewed according to when they were issued, also those that were kept from an earlier process', () => {
    const renewal = (issuedAt: number) => new WorkloadSecrets(0.5).issued(issued(begin + hour), 'key', issuedAt, begin, 0)
    expect(renewal(begin)).to.equal(hour / 2)
    expect(renewal(begin - hour / 2), 'half an hour ago').to.equal(hour / 4)
    expect(renewal(begin - 2 * hour), 'long ago').to.equal(0)
    expect(renewal(begin + hour), 'issued by a clock that was ahead').to.equal(hour / 2)
  })

  it('are renewed neither immediately nor too late with any grace ratio', () => {
    for (const ratio of [0, 0.5, 1]) {
      const wait = new WorkloadSecrets(ratio).issued(issued(begin + hour), 'key', begin, begin, 0)
      expect(wait).to.be.within(hour / 10 - 1, hour * 0.9)
    }
  })
})
