/**
 * The certificate authority dies while workloads request certificates: calls fail temporarily with a retryable code, and the root stays.
 */
import { X509Certificate } from 'node:crypto'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { CertificateClient, type CertificateOutcome } from '../harness/certificate-client.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { requestPem } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'

describe('a certificate authority that dies', () => {
  const discovery = new LocalDiscovery({})
  const made = new ServingCertificates(discovery.dir)
  let client: CertificateClient | undefined
  after(async () => {
    client?.close()
    await discovery.dispose()
  })

  it('restarts with its root, and calls meanwhile fail with a retry delay', async () => {
    made.authority('ca')
    made.issue('server', 'ca')
    made.workload('cart', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    const port = await freePort()
    const files = { tlsCertFile: made.file('server.pem'), tlsKeyFile: made.file('server-key.pem'), caCertFile: made.file('ca.pem') }
    const service = await discovery.start({ writers: 1, secureGRPCAddr: `127.0.0.1:${port}`, ...files })
    await service.ready()
    const open = new CertificateClient(port, { roots: made.text('ca.pem'), key: made.text('cart-key.pem'), cert: made.text('cart.pem') })
    client = open
    const rootOf = (outcome: CertificateOutcome) => ('chain' in outcome ? new X509Certificate(outcome.chain.at(-1) ?? '').fingerprint256 : '')
    const root = rootOf(await open.obtain(requestPem()))
    expect(root).not.to.equal('')
    const codes = new Set<number>()
    for (let round = 0; round < 3; round++) {
      const restarts = discovery.state('certificate-authority').restarts
      const asked = Array.from({ length: 50 }, () => open.ask(requestPem()))
      expect(service.supervisor.kill('certificate-authority')).to.equal(true)
      for (const outcome of await Promise.all(asked))
        if ('code' in outcome) codes.add(outcome.metadata['grpc-retry-pushback-ms'] === undefined ? -1 : outcome.code)
      await until('it to be there again, with its root', async () => rootOf(await open.ask(requestPem())) === root)
      expect(discovery.state('certificate-authority').restarts).to.equal(restarts + 1)
    }
    // Unavailable, or Internal while the authority determines the certificate in force.
    expect([...codes], 'codes of calls while it restarts').not.to.deep.equal([])
    expect([...codes].filter((code) => code !== 14 && code !== 13)).to.deep.equal([])
  })
})
