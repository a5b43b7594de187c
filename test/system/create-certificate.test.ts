/** Workload certificates from the secured port of the real command. */
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { CertificateClient, type CertificateOutcome } from '../harness/certificate-client.ts'
import { anyPorts } from '../harness/launched.ts'
import { runCommand, Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { keys, requestPem, uri } from '../harness/signing-requests.ts'

const identity = 'spiffe://cluster.local/ns/shop/sa/cart'

describe('CreateCertificate', () => {
  const service = new Service()
  const made = new ServingCertificates(service.dir)
  const clients: CertificateClient[] = []
  let port = 0

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca')
    made.workload('cart', 'ca', [identity])
    port = await freePort()
    service.flags.push('--writers', '2', '--secureGRPCAddr', `127.0.0.1:${port}`)
    service.flags.push(...made.servingFlags())
    await service.start()
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  const client = (given: { key?: string; cert?: string } = {}) => {
    const one = new CertificateClient(port, { roots: made.text('ca.pem'), ...given })
    clients.push(one)
    return one
  }
  const cart = () => client({ key: made.text('cart-key.pem'), cert: made.text('cart.pem') })
  const chainOf = (outcome: CertificateOutcome) => {
    if ('chain' in outcome) return outcome.chain.map((pem) => new X509Certificate(pem)) as [X509Certificate, X509Certificate]
    throw new Error(`${outcome.code} ${outcome.details}`)
  }

  it("issues a certificate for the caller's identity, which is itself a credential for renewal", async () => {
    const request = makeSigningRequest(keys.p256, [{ uri: identity }])
    const outcome = await cart().obtain(request, 3600n)
    const [leaf, root] = chainOf(outcome)
    expect(leaf.subjectAltName).to.equal(`URI:${identity}`)
    expect(leaf.verify(root.publicKey)).to.equal(true)
    expect(root.subject).to.equal('O=cluster.local')
    expect(leaf.validToDate.getTime() - Date.now()).to.be.within(3_500_000, 3_600_000)
    // The issued certificate is a credential too.
    const renewing = client({
      key: keys.p256.export({ type: 'pkcs8', format: 'pem' }) as string,
      cert: 'chain' in outcome ? (outcome.chain[0] ?? '') : '',
    })
    const [renewed] = chainOf(
      await renewing.obtain(makeSigningRequest(keys.rsa, [{ uri: identity }]), 0n, '/mesh.v1.auth.MeshCertificateService/CreateCertificate'),
    )
    expect(renewed.checkIssued(root)).to.equal(true)
    expect(renewed.serialNumber).not.to.equal(leaf.serialNumber)
    const audit = `info\tserverca\tcertificate ${leaf.serialNumber.toLowerCase().padStart(32, '0')} for ${identity}, authenticated by client certificate, to 127.0.0.1, valid until `
    await service.output.says(audit)
  })

  it('requires a credential', async () => {
    for (const one of [client(), new CertificateClient(port, { roots: made.text('ca.pem'), token: 'nonsense' })]) {
      clients.push(one)
      const outcome = await one.ask(requestPem())
      expect(outcome).to.include('code' in outcome && outcome.code === 14 ? { code: 14 } : { code: 16, details: 'request authenticate failure' })
    }
  })

  it('rejects requests that are invalid or not permitted, and counts them', async () => {
    const one = cart()
    const counts = async () =>
      new Map([...(await service.metrics()).matchAll(/^(citadel_server_\S+) (\d+)$/gm)].map(([, series = '', count]) => [series, Number(count)]))
    const before = await counts()
    const refused = async (csr: string, seconds = 0n) => {
      const outcome = await one.ask(csr, seconds)
      return 'code' in outcome ? `${outcome.code} ${outcome.details}` : 'served'
    }
    expect(await refused('garbage')).to.equal('3 CSR signing error (the request is not one CERTIFICATE REQUEST in PEM)')
    expect(await refused(requestPem({ names: [uri('spiffe://cluster.local/ns/shop/sa/admin')] }))).to.contain(
      '3 CSR signing error (the request asks for "spiffe:',
    )
    expect(await refused(requestPem(), 90n * 86_400n + 1n)).to.equal(
      '3 CSR signing error (requested TTL 2160h0m1s is greater than the max allowed TTL 2160h0m0s)',
    )
    expect(await refused(requestPem(), 2n ** 62n)).to.contain('3 CSR signing error (requested TTL ')
    expect(await refused(requestPem(), 2n ** 63n - 1n), 'the largest there is').to.contain('3 CSR signing error (requested TTL ')
    expect(await refused(requestPem(), -1n)).to.equal('served')
    expect(await one.call(Buffer.from([0xff]))).to.include({ code: 3 })
    const after = await counts()
    for (const [series, count] of Object.entries({
      'citadel_server_csr_sign_err_count{error="CSR_ERROR"}': 2,
      'citadel_server_csr_sign_err_count{error="TTL_ERROR"}': 3,
      citadel_server_csr_parsing_err_count: 2,
      citadel_server_success_cert_issuance_count: 1,
      citadel_server_csr_count: 7,
    }))
      expect((after.get(series) ?? 0) - (before.get(series) ?? 0), series).to.equal(count)
    expect(after.get('citadel_server_root_cert_expiry_timestamp')).to.be.greaterThan(Date.now() / 1000 + 86_400 * 3600)
  })

  it('uses the same root after a restart, from files for its user only', async () => {
    const [, before] = chainOf(await cart().obtain(requestPem()))
    await service.stop()
    await service.start()
    const [, after] = chainOf(await cart().obtain(requestPem()))
    expect(after.fingerprint256).to.equal(before.fingerprint256)
    expect(existsSync(join(service.authorityDir, 'state.json'))).to.equal(true)
    service.output.lacks('PRIVATE KEY')
  })
})

describe('pilot-discovery without a usable certificate authority', () => {
  const started = (env: Record<string, string>) =>
    runCommand(['discovery', '--registries', 'Mock', ...anyPorts, '--secureGRPCAddr', '127.0.0.1:0'], env)

  /** Returns a service whose secured port has its certificate from files. */
  const serving = (port: number, env: Record<string, string> = {}) => {
    const service = new Service({ env, flags: ['--secureGRPCAddr', `127.0.0.1:${port}`] })
    const made = new ServingCertificates(service.dir)
    made.authority('ca')
    made.issue('server', 'ca')
    service.flags.push('--tlsCertFile', made.file('server.pem'), '--tlsKeyFile', made.file('server-key.pem'))
    return service
  }

  it('does not start with an unknown or unsupported EXTERNAL_CA', async () => {
    for (const [name, reason] of [
      ['MESHD_RA_ORCHESTRATOR_API', 'needs ORCH_SIGNER, the signer of the orchestrator'],
      ['MESHD_RA_MESH_API', 'is not supported'],
      ['nonsense', 'is none of MESHD_RA_ORCHESTRATOR_API, MESHD_RA_MESH_API'],
    ]) {
      const { code, stderr } = await started({ EXTERNAL_CA: name as string })
      expect([code, stderr]).to.deep.equal([255, `Error: environment variable EXTERNAL_CA: "${name}" ${reason}\n`])
    }
    const external = 'MESHD_RA_ORCHESTRATOR_API'
    for (const [signer, reason] of [
      ['example.com/mesh', `EXTERNAL_CA: "${external}" needs a cluster: --orchconfig <file>, or a pod`],
      ['mesh', 'ORCH_SIGNER: "mesh" is no signer: expected <domain>/<path>'],
    ] as const) {
      const { code, stderr } = await started({ EXTERNAL_CA: external, ORCH_SIGNER: signer })
      expect([code, stderr]).to.deep.equal([255, `Error: environment variable ${reason}\n`])
    }
  })

  it('does not start with incomplete CA files, nor with the state directory of another process', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-cacerts-'))
    const service = serving(await freePort())
    try {
      writeFileSync(join(dir, 'ca-key.pem'), '')
      const broken = await started({ ROOT_CA_DIR: dir })
      expect([broken.code, broken.stderr]).to.deep.equal([
        255,
        `Error: ${join(dir, 'ca-cert.pem')}: is not there, but ${join(dir, 'ca-key.pem')} is\n`,
      ])
      await service.start()
      const second = await started({ MESHD_CA_STATE_DIR: service.authorityDir })
      expect(second.code).to.equal(255)
      expect(second.stderr).to.contain(`${service.authorityDir}: is in use by process ${service.pid}`)
    } finally {
      await service.dispose()
      rmSync(dir, { recursive: true, force: true })
    }
  })

  it('does not offer signing with ENABLE_CA_SERVER=false', async () => {
    const port = await freePort()
    const service = serving(port, { ENABLE_CA_SERVER: 'false' })
    await service.start()
    const client = new CertificateClient(port, { roots: new ServingCertificates(service.dir).text('ca.pem') })
    try {
      expect(await client.ask(requestPem())).to.include({ code: 12 })
      expect(readdirSync(service.authorityDir).filter((name) => name.includes('state'))).to.deep.equal([])
    } finally {
      client.close()
      await service.dispose()
    }
  })
})

describe('CreateCertificate of an authority that signs slowly', () => {
  const service = new Service()
  const made = new ServingCertificates(service.dir)
  let port = 0

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca')
    made.workload('cart', 'ca', [identity])
    port = await freePort()
    service.flags.push('--writers', '1', '--secureGRPCAddr', `127.0.0.1:${port}`)
    service.flags.push(...made.servingFlags())
    Object.assign(service.env, { MESHD_CA_SIGNERS: '1', CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: '4096' })
    await service.start()
  })
  after(() => service.dispose())

  it('signs nothing for calls whose deadline has passed: what it logs as issued was received', async () => {
    const one = new CertificateClient(port, { roots: made.text('ca.pem'), key: made.text('cart-key.pem'), cert: made.text('cart.pem') })
    const request = makeSigningRequest(keys.p256, [{ uri: identity }])
    await one.obtain(request)
    const calls = 600
    const outcomes = await Promise.all(Array.from({ length: calls }, () => one.askTelling(request, 300)))
    const received = outcomes.filter((outcome) => 'chain' in outcome).length
    expect(received).to.be.lessThan(calls / 2)
    // The writer's deadline has passed, or before that the authority's.
    for (const outcome of outcomes) if ('code' in outcome) expect(outcome.code, outcome.details).to.be.oneOf([4, 14])
    // Everything that waited before it has been signed or left out.
    const last = await one.obtain(request)
    const serial = 'chain' in last ? new X509Certificate(last.chain[0] ?? '').serialNumber.toLowerCase().padStart(32, '0') : ''
    await service.output.says(`certificate ${serial} for`)
    const issued = service.output.soFar().split(`for ${identity}, authenticated by`).length - 1
    // The authority gives up 50 ms before the writer does, and the writer reads what has arrived before it ends a call. Only answers that
    // take longer than that from thread to thread are lost: those of the batch that was finished last before the deadline.
    expect(issued - received - 2).to.be.within(0, 16)
    one.close()
  })
})
