/** The port on which webhooks are served over TLS (docs/operation.md, W1 and W2): certificates that are replaced, and a port that does not answer. */
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { SecurePort, type SecurePortEvent } from '../../actors/discovery/webhooks/secure-port.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { freePort } from '../../bench/ports.ts'
import type { WebhooksConfig } from '../../protocols/messages/admission.ts'
import type { ServingCertificate } from '../../protocols/messages/certificates.ts'
import { readCertificate } from '../../src/ca/certificate.ts'
import { issueRoot, issueServing, signingKeyOf } from '../../src/ca/issue.ts'
import { pemOf } from '../../src/identity/pem.ts'
import { until } from '../harness/until.ts'

describe('the port of webhooks', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-port-'))
  const opened: { close(): Promise<void> | void }[] = []
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close()
  })
  after(() => rmSync(dir, { recursive: true }))

  /** A certificate for this machine that nobody signs, with a key of this curve. */
  function certificate(name: string, curve = 'prime256v1'): ServingCertificate {
    const [cert, key] = [join(dir, `${name}.pem`), join(dir, `${name}-key.pem`)]
    const made = ['-newkey', 'ec', '-pkeyopt', `ec_paramgen_curve:${curve}`, '-nodes', '-keyout', key, '-out', cert]
    execFileSync('openssl', ['req', '-x509', ...made, '-days', '1', '-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost'], {
      stdio: 'ignore',
    })
    return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
  }

  /** A port, what it notes of itself, and a client that keeps its connections. */
  async function started(given: { port?: number; ownHosts?: readonly string[]; sign?: (csr: string) => unknown } = {}) {
    const port = given.port ?? (await freePort())
    const notes: Record<string, readonly string[]> = {}
    const context = {
      ...{ name: 'webhooks', metrics: new MetricRegistry() },
      config: {
        features: {},
        port: { host: '127.0.0.1', port, ownHosts: given.ownHosts },
        hasCluster: false,
        configuration: 'meshd-mesh-system',
        connections: 50,
      } satisfies WebhooksConfig,
      log: () => ({ info() {}, warn() {}, error() {}, debug() {} }),
      note: (name: string, value: readonly string[]) => {
        notes[name] = value
      },
      askFor: async (_: unknown, question: string, { csr }: { csr: string }) => {
        expect(question).to.equal('signServingCertificate')
        return given.sign?.(csr)
      },
    }
    const failures: Error[] = []
    const answer = async () => ({ status: 200, type: 'text/plain', body: 'answered' })
    const secure = new SecurePort(context as never, context.config.port as never, { answer, refused() {} }, (error) => failures.push(error))
    opened.push(secure)
    const known = new WeakMap<TLSSocket, X509Certificate>()
    /** Asks for a review. Returns the subject of the certificate on whose connection it was answered, and the connection. */
    const ask = (agent: Agent) =>
      new Promise<{ readonly subject: string; readonly socket: TLSSocket; readonly certificate: X509Certificate }>((resolve, reject) => {
        const headers = { 'content-type': 'application/json', 'content-length': 2 }
        const sent = request(
          { host: '127.0.0.1', port, path: '/validate', method: 'POST', agent, headers, rejectUnauthorized: false },
          (response) => {
            const socket = response.socket as TLSSocket
            // A connection tells of its certificate once.
            const served = known.get(socket) ?? (socket.getPeerX509Certificate() as X509Certificate)
            known.set(socket, served)
            response.on('error', reject).on('end', () => resolve({ subject: served.subject, socket, certificate: served }))
            response.resume()
            if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`))
          },
        )
        sent.on('error', reject)
        sent.end('{}')
      })
    const client = () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1, maxCachedSessions: 0 })
      opened.push({ close: () => agent.destroy() })
      return () => ask(agent)
    }
    return { port, secure, notes, client, failures, isReady: () => notes.awaited?.length === 0 }
  }
  const changed = (used: ServingCertificate) => ({ type: 'CertificateChanged', certificate: used }) as SecurePortEvent

  it('serves a replaced certificate of files to new connections, and keeps open ones', async () => {
    const { secure, client, isReady } = await started()
    secure.receive(changed(certificate('first')))
    await until('the port to be ready', isReady)
    const old = client()
    const before = await old()
    expect(before.subject).to.equal('CN=first')
    secure.receive(changed(certificate('second')))
    expect((await client()()).subject).to.equal('CN=second')
    const after = await old()
    expect(after.socket === before.socket).to.equal(true)
    expect(after.subject).to.equal('CN=first')
    expect(isReady()).to.equal(true)
  })

  it('answers for a while at its end where it was asked before: each connection ends with its next answer', async () => {
    const { secure, client, isReady } = await started()
    secure.receive(changed(certificate('ending')))
    await until('the port to be ready', isReady)
    const kept = client()
    await kept()
    let isClosed = false
    const closed = secure.close().then(() => (isClosed = true))
    // One that was open, and one that comes meanwhile.
    for (const { socket } of [await kept(), await client()()]) await until('the end of the connection', () => socket.destroyed)
    expect(isClosed).to.equal(false)
    await closed
    const refused = await client()().catch((error: NodeJS.ErrnoException) => error.code)
    expect(refused).to.equal('ECONNREFUSED')
  })

  it('ends at once where nobody has asked for a review', async () => {
    const { secure, isReady } = await started()
    secure.receive(changed(certificate('idle')))
    await until('the port to be ready', isReady)
    const began = performance.now()
    await secure.close()
    expect(performance.now() - began).to.be.below(2000)
  })

  it('is signed again when its own authority signs with another root, and keeps open connections', async () => {
    const roots = ['one', 'two'].map((name) => {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const now = Math.floor(Date.now() / 1000) * 1000
      const grant = () => ({ notBefore: now, notAfter: now + 3_600_000, serial: randomBytes(16) })
      const root = issueRoot(name, grant(), privateKey)
      const signer = signingKeyOf(readCertificate(root), privateKey)
      return {
        sign: (csr: string) => ({ chain: [pemOf('CERTIFICATE', issueServing(csr, grant(), signer)), pemOf('CERTIFICATE', root)] }),
        has: (leaf: X509Certificate) => leaf.verify(new X509Certificate(pemOf('CERTIFICATE', root)).publicKey),
      }
    })
    let [root, next] = roots as [(typeof roots)[number], (typeof roots)[number]]
    const { secure, client, isReady, notes } = await started({ ownHosts: ['meshd.test'], sign: (csr) => root.sign(csr) })
    const trusted = (generation: number) => secure.receive({ type: 'TrustChanged', source: 'certificate-authority', roots: {}, generation })
    trusted(1)
    expect(notes.awaited).to.deep.equal(['the HTTPS address has no certificate yet'])
    secure.receive({ type: 'MeshNamesChanged', discoveryAddress: 'meshd.mesh-system.svc:15012' } as SecurePortEvent)
    await until('the port to be ready', isReady)
    const old = client()
    const before = await old()
    expect(before.certificate.subjectAltName).to.equal('DNS:meshd.mesh-system.svc, DNS:meshd.test')
    expect(root.has(before.certificate)).to.equal(true)
    root = next
    trusted(2)
    await until('new connections to have the new certificate', async () => next.has((await client()()).certificate))
    const after = await old()
    expect(after.socket === before.socket).to.equal(true)
    expect(roots[0]?.has(after.certificate)).to.equal(true)
    expect(isReady()).to.equal(true)
  })

  it('is not ready while it does not answer its own process, which says why, and is ready again when it does', async () => {
    const { secure, client, notes, isReady } = await started()
    const good = certificate('good')
    secure.receive(changed(good))
    await until('the port to be ready', isReady)
    const old = client()
    const { socket } = await old()
    // No client takes keys of this curve: every new handshake fails, as an API server's would.
    secure.receive(changed(certificate('odd', 'secp256k1')))
    await until('the port to be lost', () => !isReady())
    expect(notes.awaited).to.have.length(1)
    expect(notes.awaited?.[0]).to.match(/^the HTTPS address does not answer this process: \S/)
    expect((await old()).socket === socket).to.equal(true)
    secure.receive(changed(good))
    await until('the port to be ready again', isReady)
    expect((await client()()).subject).to.equal('CN=good')
  })

  it('fails when its address is taken, so that the actor is started again', async () => {
    const { port, secure, isReady } = await started()
    secure.receive(changed(certificate('first')))
    await until('the port to be ready', isReady)
    const other = await started({ port })
    other.secure.receive(changed(certificate('second')))
    await until('the other to fail', () => other.failures.length === 1)
    expect(String(other.failures[0])).to.include('EADDRINUSE')
  })
})
