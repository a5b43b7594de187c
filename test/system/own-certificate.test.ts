/** The secured port without certificate files: its certificate is signed by the certificate authority of the process. */
import { type X509Certificate as Certificate, X509Certificate } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as tlsConnect } from 'node:tls'
import { credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { endpointType } from '../../src/xds/type-urls.ts'
import { CertificateClient } from '../harness/certificate-client.ts'
import { Issuer } from '../harness/issuer.ts'
import { runCommand, Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { keys } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('the secured port with a certificate of its own authority', () => {
  const service = new Service({ env: { MESHD_CUSTOM_HOST: 'mesh.example.com, *.edge.example.com', POD_NAMESPACE: 'control' } })
  const plugged = mkdtempSync(join(tmpdir(), 'mesh-test-root-'))
  const made = new ServingCertificates(plugged)
  const clients: { close(): void }[] = []
  let issuer: Issuer
  let port = 0
  let client: XdsClient

  before(async () => {
    issuer = await new Issuer('https://issuer.test').rotateOnly('ES256')
    mkdirSync(join(plugged, 'in'))
    Object.assign(service.env, {
      JWT_RULE: JSON.stringify({ issuer: issuer.name, jwks: issuer.jwks, audiences: ['mesh-ca'] }),
      ROOT_CA_DIR: join(plugged, 'in'),
    })
    service.write('mesh-config', 'defaultConfig: {discoveryAddress: "control.example.com:15012"}\n')
    service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    port = await freePort()
    service.flags.push('--writers', '2', '--secureGRPCAddr', `127.0.0.1:${port}`)
    await service.start()
  })
  after(async () => {
    for (const one of clients) one.close()
    await service.dispose()
    rmSync(plugged, { recursive: true, force: true })
  })

  /** Returns the authority's root, which is not secret. */
  const root = () =>
    /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\\n/s
      .exec(readFileSync(join(service.authorityDir, 'state.json'), 'utf8'))?.[0]
      .replaceAll('\\n', '\n') ?? ''
  /** Returns the served certificate if the roots verify it for a name, or else the error. */
  const served = (servername: string, roots: string) =>
    new Promise<Certificate | string>((resolve) => {
      const socket = tlsConnect({ host: '127.0.0.1', port, servername, ca: roots, ALPNProtocols: ['h2'] }, () => {
        resolve(socket.getPeerX509Certificate() as Certificate)
        socket.destroy()
      })
      socket.on('error', (error) => resolve(error.message))
    })
  const endpointsOf = (one: XdsClient) => [...(one.resources.get(endpointType)?.values() ?? [])].map(String).join()

  it('needs no certificate flags, and serves all names of the control plane', async () => {
    const hosts = ['control.example.com', 'mesh.example.com', 'any.edge.example.com', 'localhost']
    const services = ['meshd', 'meshd-remote', 'mesh-pilot', 'istiod'].map((name) => `${name}.control.svc`)
    for (const name of [...hosts, ...services]) expect(await served(name, root()), name).to.be.instanceOf(X509Certificate)
    expect(await served('other.example.com', root())).to.contain('does not match')
    const [own] = [await served('localhost', root())] as [Certificate]
    expect(own.subjectAltName).to.contain('IP Address:127.0.0.1')
    expect(own.publicKey.asymmetricKeyDetails).to.deep.include({ namedCurve: 'prime256v1' })
    service.output.lacks(/warn\t(serverca|ads)/)
  })

  it('issues a workload with a token its certificate, which then opens XDS streams', async () => {
    const token = await issuer.token({ sub: 'system:serviceaccount:shop:cart', aud: 'mesh-ca' })
    const asking = new CertificateClient(port, { roots: root(), token })
    clients.push(asking)
    const outcome = await asking.obtain(makeSigningRequest(keys.p256, []))
    if (!('chain' in outcome)) throw new Error(`${outcome.code} ${outcome.details}`)
    const key = Buffer.from(keys.p256.export({ type: 'pkcs8', format: 'pem' }))
    const channel = credentials.createSsl(Buffer.from(outcome.chain.at(-1) as string), key, Buffer.from(outcome.chain.slice(0, -1).join('')))
    client = new XdsClient(port, sidecarNode('10.7.0.9', 'cart', 'shop'), true, channel).connect()
    clients.push(client)
    await client.ready()
    const connections = await service.debug<{ clients: { connectionId: string }[] }>('adsz')
    expect(connections.clients).to.have.length(1)
  })

  it('changes its certificate in every writer when its names change, without ending a stream', async () => {
    service.write('mesh-config', 'defaultConfig: {discoveryAddress: "moved.example.com:15012"}\n')
    const all = async (name: string) =>
      (await Promise.all(Array.from({ length: 12 }, () => served(name, root())))).every((found) => typeof found !== 'string')
    await until('both writers to serve the new name', () => all('moved.example.com'))
    service.write('a.yaml', serviceEntry('a', '10.0.0.2'))
    await until('the change at the open stream', () => endpointsOf(client).includes('10.0.0.2'))
    expect(client.closed).to.equal(undefined)
  })

  it('changes its certificate when the authority gets another root', async () => {
    made.authority('ca')
    const names = { 'ca-key.pem': 'ca-key.pem', 'ca-cert.pem': 'ca.pem', 'cert-chain.pem': 'ca.pem', 'root-cert.pem': 'ca.pem' }
    for (const [name, from] of Object.entries(names)) copyFileSync(made.file(from), join(plugged, 'in', name))
    const all = async () =>
      (await Promise.all(Array.from({ length: 12 }, () => served('localhost', made.text('ca.pem'))))).every((found) => typeof found !== 'string')
    await until('both writers to serve a certificate of the new root', all)
  })

  it('is not opened without a certificate to serve, with a log line', async () => {
    for (const [env, words] of [
      [{ ENABLE_CA_SERVER: 'false' }, 'is not listened on: it needs the certificate authority of this process, or --tlsCertFile and --tlsKeyFile'],
      [{ PILOT_CERT_PROVIDER: 'orchestrator' }, 'is not listened on: PILOT_CERT_PROVIDER=orchestrator needs a cluster'],
      [{ PILOT_CERT_PROVIDER: 'custom' }, 'with PILOT_CERT_PROVIDER="custom" it needs --tlsCertFile and --tlsKeyFile'],
    ] as const) {
      const closed = new Service({ env })
      const free = await freePort()
      closed.flags.push('--secureGRPCAddr', `127.0.0.1:${free}`)
      await closed.start()
      await closed.output.says(words)
      closed.output.lacks('gRPC over TLS')
      await closed.dispose()
    }
    const { code, stderr } = await runCommand(['discovery', '--registries', 'Mock', '--grpcAddr', '127.0.0.1:0'], { MESHD_CUSTOM_HOST: 'a b' })
    expect(code).not.to.equal(0)
    expect(stderr).to.contain('MESHD_CUSTOM_HOST: "a b" is no host name and no address')
  })
})
