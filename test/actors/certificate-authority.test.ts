/** The certificate authority with its signer threads: its signing certificates, its refusals, and failures of threads and files. */
import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { actor } from '../../actors/discovery/authority/certificate-authority.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import type { Asking } from '../../actors/runtime/ask.ts'
import type { CertificateAnswer, CertificateRequest } from '../../protocols/messages/authority.ts'
import { attentionNote } from '../../protocols/messages/notes.ts'
import type { TrustEvent } from '../../protocols/messages/trust.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { readFeatures } from '../../src/config/features.ts'
import { RecordingPeer, startActor } from '../harness/actor.ts'
import { goVerifier } from '../harness/go-verifier.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { keys, requestPem } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'

const identity = 'spiffe://td.example/ns/shop/sa/cart'
const caller = { identities: [identity], via: 'token', method: 'test', expiresAt: 0 } as const

/** The questions of a started authority. */
interface Asks {
  signCertificate(request: CertificateRequest, asking?: Asking): Promise<CertificateAnswer>
  ledger(start: number, length: number): unknown
  signServingCertificate(request: { csr: string; server: string }): Promise<CertificateAnswer>
}

describe('the certificate authority', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-authority-'))
  const plugged = join(dir, 'cacerts')
  const made = new ServingCertificates(dir)
  const running: Behaviour<never>[] = []
  let writer = new RecordingPeer<TrustEvent>('xds-writer/0')
  /** Messages of the log, and what was noted last for `/ready`. */
  const logged: string[] = []
  let attention: readonly string[] = []

  before(() => {
    made.authority('stranger')
    made.authority('root')
    for (const name of ['one', 'two']) made.intermediate(name, 'root')
    mkdirSync(plugged)
  })
  afterEach(async () => {
    for (const one of running.splice(0)) await one.drain?.()
    for (const name of readdirSync(plugged)) rmSync(join(plugged, name))
    rmSync(join(dir, 'state'), { recursive: true, force: true })
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  const plug = (name: string, root = 'root') => {
    copyFileSync(made.file(`${root}.pem`), join(plugged, 'root-cert.pem'))
    writeFileSync(join(plugged, 'cert-chain.pem'), made.text(`${name}.pem`) + made.text(`${root}.pem`))
    copyFileSync(made.file(`${name}.pem`), join(plugged, 'ca-cert.pem'))
    copyFileSync(made.file(`${name}-key.pem`), join(plugged, 'ca-key.pem'))
  }

  /** Starts the authority with a writer that receives its roots. */
  async function start(env: Record<string, string> = {}) {
    const { features } = readFeatures({ ROOT_CA_DIR: plugged, MESHD_CA_STATE_DIR: join(dir, 'state'), ...env })
    const authority = (await startActor(
      actor,
      { features, place: { kind: 'directory' } },
      { logged: ({ message }) => logged.push(message), noted: (name, value) => name === attentionNote && (attention = value as readonly string[]) },
    )) as unknown as Behaviour<never, TrustEvent>
    running.push(authority)
    writer = new RecordingPeer('xds-writer/0')
    authority.linked?.(writer)
    const names = { trustDomain: 'td.example', trustDomainAliases: [], rootNamespace: 'mesh-system', discoveryAddress: '' }
    authority.receive({ type: 'MeshNamesChanged', ...names } as never, new RecordingPeer('source/files'))
    const asks = authority.asks as unknown as Asks
    return {
      authority,
      asks,
      sign: (csr = requestPem(), ttlMs = 0) => asks.signCertificate({ csr, ttlMs, caller, peer: '10.0.0.1' }),
    }
  }
  const trusted = () => until('the writer to receive trust', () => writer.received.length > 0)
  const chainOf = (answer: CertificateAnswer): X509Certificate[] => {
    if ('chain' in answer) return answer.chain.map((pem) => new X509Certificate(pem))
    throw new Error(`${answer.code} ${answer.message}`)
  }

  it('creates a root with the name of the trust domain, and keeps it', async () => {
    const first = await start()
    expect(await first.sign()).to.include({ code: 13, error: 'CA_NOT_READY' })
    await trusted()
    const [leaf, root] = chainOf(await first.sign()) as [X509Certificate, X509Certificate]
    expect([leaf.subjectAltName, root.subject]).to.deep.equal([`URI:${identity}`, 'O=td.example'])
    expect(leaf.checkIssued(root) && leaf.verify(root.publicKey)).to.equal(true)
    expect(writer.received[0]).to.deep.include({ type: 'TrustChanged', source: 'certificate-authority' })
    expect(new X509Certificate(writer.received[0]?.roots[''] ?? '').fingerprint256).to.equal(root.fingerprint256)
    expect(new X509Certificate(writer.received[0]?.announced ?? '').fingerprint256).to.equal(root.fingerprint256)
    await running.pop()?.drain?.()
    const generation = writer.received[0]?.generation ?? 0
    const second = await start()
    await trusted()
    expect(chainOf(await second.sign())[1]?.fingerprint256).to.equal(root.fingerprint256)
    expect(writer.received[0]?.generation).to.be.greaterThan(generation)
  })

  it('does not count the owner of a certificate that nobody received as a holder', async () => {
    const { asks } = await start()
    await trusted()
    const lines = logged.length
    const gone = new AbortController()
    const asking = { signal: gone.signal, restMs: () => 1000 }
    const request = { csr: requestPem(), ttlMs: 0, caller, peer: '10.0.0.1' }
    const answer = asks.signCertificate(request, asking)
    gone.abort()
    expect(await answer).to.include({ code: 14, message: 'CSR signing error (nobody waits for the certificate)' })
    expect(JSON.stringify(await asks.ledger(0, 100))).not.to.contain(identity)
    expect(logged.slice(lines).filter((line) => /^certificate .* for spiffe:/.test(line))).to.deep.equal([])
    chainOf(await asks.signCertificate(request))
    expect(JSON.stringify(await asks.ledger(0, 100))).to.contain(identity)
  })

  it('signs certificates for its own servers with the requested names', async () => {
    const { asks } = await start()
    await trusted()
    const request = makeSigningRequest(keys.p256, [{ dns: 'meshd.mesh-system.svc' }, { address: Buffer.from([127, 0, 0, 1]) }])
    const [leaf] = chainOf(await asks.signServingCertificate({ csr: request, server: 'xds-writer/0' }))
    expect(leaf?.subjectAltName).to.equal('DNS:meshd.mesh-system.svc, IP Address:127.0.0.1')
    expect((leaf?.validToDate.getTime() ?? 0) - Date.now()).to.be.within(89.9 * 86_400_000, 90 * 86_400_000)
    expect(await asks.signServingCertificate({ csr: requestPem(), server: 'xds-writer/0' })).to.include({ code: 3, error: 'CSR_ERROR' })
  })

  it('signs with a plugged-in certificate, and with its replacement as soon as the files change', async () => {
    plug('one')
    const { sign } = await start()
    await trusted()
    const [leaf, between, root] = chainOf(await sign()) as [X509Certificate, X509Certificate, X509Certificate]
    expect([leaf.issuer, between.subject, root.subject]).to.deep.equal(['CN=one', 'CN=one', 'CN=root'])
    plug('two')
    await until('the other to sign', async () => chainOf(await sign())[0]?.issuer === 'CN=two')
    expect(writer.received.length).to.equal(2)
  })

  it('keeps the certificate and key in force if the files become invalid', async () => {
    plug('one')
    const { authority, sign } = await start()
    await trusted()
    const reload = () => (authority.asks as unknown as { reload(): Promise<void> }).reload()
    for (const [name, content] of [
      ['ca-key.pem', 'nothing'],
      ['ca-cert.pem', made.text('stranger.pem')],
      ['ca-key.pem', made.text('stranger-key.pem')],
      ['root-cert.pem', made.text('stranger.pem')],
      ['ca-cert.pem', ''],
    ] as const) {
      plug('one')
      writeFileSync(join(plugged, name), content)
      await reload()
      expect(chainOf(await sign())[0]?.issuer, `${name}: ${content.slice(0, 30)}`).to.equal('CN=one')
    }
    rmSync(join(plugged, 'ca-key.pem'))
    await reload()
    expect(chainOf(await sign())[0]?.issuer).to.equal('CN=one')
  })

  it('has the key in every thread, so that an invalid file fails no call, and rechecks the permissions of the key file', async () => {
    plug('one')
    const { authority, sign } = await start({ MESHD_CA_SIGNERS: '4' })
    await trusted()
    const reload = () => (authority.asks as unknown as { reload(): Promise<void> }).reload()
    const lines = logged.length
    writeFileSync(join(plugged, 'ca-key.pem'), 'nothing')
    await reload()
    expect(logged.slice(lines).join()).to.include('ca-key.pem: holds no private key in PEM').and.to.include('the authority in force stays')
    expect(logged.join('\n')).not.to.include('others can use it')
    const answers = await Promise.all(Array.from({ length: 200 }, () => sign()))
    expect(new Set(answers.map((answer) => chainOf(answer)[0]?.issuer))).to.deep.equal(new Set(['CN=one']))
    plug('one')
    chmodSync(join(plugged, 'ca-key.pem'), 0o640)
    await reload()
    expect(logged.slice(lines).filter((line) => line.includes(`the key in ${plugged}: others can use it (mode 0640)`))).to.have.length(1)
    plug('two')
    await until('the other to sign', async () => chainOf(await sign())[0]?.issuer === 'CN=two')
  })

  it('tells for /ready of files that cannot be used, and of an own root in place of one that was plugged in, until one is again', async () => {
    plug('one')
    const first = await start()
    await trusted()
    rmSync(join(plugged, 'ca-key.pem'))
    await (first.authority.asks as unknown as { reload(): Promise<void> }).reload()
    await until('the fault', () => attention.join() === `${plugged}: no longer contains ca-key.pem; the authority in force stays`)
    await running.pop()?.drain?.()
    attention = []
    const root = new X509Certificate(made.text('root.pem')).fingerprint256.replaceAll(':', '').toLowerCase().slice(0, 16)
    const second = await start()
    await trusted()
    expect(chainOf(await second.sign())[0]?.issuer).to.equal('O=td.example')
    const told = `the authority that was in force before (roots ${root}) is not plugged in any more, in ROOT_CA_DIR or as Secret cacerts: an own root signs, which those that trust the former roots refuse until they have it; plug it in again, unless it was taken out on purpose`
    await until('the line for /ready', () => attention.join() === told)
    expect(logged).to.include(told)
    plug('one')
    await until('the authority', async () => chainOf(await second.sign())[0]?.issuer === 'CN=one')
    await until('nothing to be told', () => attention.length === 0)
  })

  it('does not sign without a chain to a root, nor with a key of another certificate', async () => {
    for (const [name, root, key] of [
      ['one', 'stranger', 'one'],
      ['one', 'root', 'two'],
    ] as const) {
      plug(name, root)
      copyFileSync(made.file(`${key}-key.pem`), join(plugged, 'ca-key.pem'))
      const { authority, sign } = await start()
      await (authority.asks as unknown as { reload(): Promise<void> }).reload()
      expect(await sign()).to.include({ code: 13, error: 'CA_NOT_READY' })
      await running.pop()?.drain?.()
    }
  })

  it('trusts additional roots', async () => {
    copyFileSync(made.file('stranger.pem'), join(plugged, 'root-cert.pem'))
    const { sign } = await start()
    await trusted()
    const answer = await sign()
    const bundle = 'chain' in answer ? (answer.chain.at(-1) ?? '') : ''
    expect(bundle.match(/BEGIN/g)).to.have.length(2)
    expect(writer.received.at(-1)?.roots['']).to.equal(bundle)
  })

  it('trusts additional roots until their file is removed from its directory, and also while the directory is away', async () => {
    copyFileSync(made.file('stranger.pem'), join(plugged, 'root-cert.pem'))
    const { authority } = await start()
    await trusted()
    const reload = () => (authority.asks as unknown as { reload(): Promise<void> }).reload()
    const roots = () => writer.received.at(-1)?.roots['']?.match(/BEGIN/g)?.length
    await until('both roots', () => roots() === 2)
    renameSync(plugged, `${plugged}-away`)
    await reload()
    expect([roots(), logged.at(-1)]).to.deep.equal([2, `${plugged}: is not there any more; the authority in force stays`])
    renameSync(`${plugged}-away`, plugged)
    rmSync(join(plugged, 'root-cert.pem'))
    await reload()
    await until('its own root alone', () => roots() === 1)
  })

  it('limits lifetimes to that of the authority, and rejects requests above the maximum', async () => {
    plug('one')
    const { sign } = await start()
    await trusted()
    const [leaf, ...issuers] = chainOf(await sign(requestPem(), 60 * 86_400_000)) as [X509Certificate, ...X509Certificate[]]
    expect(issuers).to.have.length(2)
    expect(leaf.validToDate.getTime()).to.equal(Math.min(...issuers.map(({ validToDate }) => validToDate.getTime())))
    expect(await sign(requestPem(), 91 * 86_400_000)).to.include({ code: 3, error: 'TTL_ERROR' })
  })

  /** Issues a certificate for each kind of key, and passes the answer as files. */
  async function issued(check: (files: { roots: string; between: string; leaf: string }) => void) {
    for (const isPlugged of [false, true]) {
      if (isPlugged) plug('one')
      const { sign } = await start()
      await trusted()
      for (const key of Object.values(keys)) {
        const answer = await sign(makeSigningRequest(key, [{ uri: identity }]))
        if (!('chain' in answer)) throw new Error(answer.message)
        const content = { leaf: answer.chain[0], between: isPlugged ? answer.chain[1] : '', roots: answer.chain.at(-1) }
        const path = (name: keyof typeof content) => join(dir, `issued-${name}.pem`)
        for (const name of ['leaf', 'between', 'roots'] as const) writeFileSync(path(name), content[name] ?? '')
        check({ roots: path('roots'), between: path('between'), leaf: path('leaf') })
      }
      await running.pop()?.drain?.()
    }
  }

  it('issues certificates that OpenSSL verifies strictly', () =>
    issued(({ roots, between, leaf }) => {
      const untrusted = readFileSync(between, 'utf8') === '' ? [] : ['-untrusted', between]
      for (const purpose of ['sslserver', 'sslclient'])
        expect(
          execFileSync('openssl', ['verify', '-x509_strict', '-purpose', purpose, '-CAfile', roots, ...untrusted, leaf], { encoding: 'utf8' }),
        ).to.equal(`${leaf}: OK\n`)
    }))

  it('issues certificates that Go verifies and that are X.509-SVIDs', function () {
    const verifier = goVerifier()
    if (verifier === undefined) return this.skip()
    return issued(({ roots, between, leaf }) => {
      expect(execFileSync(verifier, [roots, between, leaf, identity], { encoding: 'utf8' })).to.equal('verified\n')
    })
  })

  it('lowers the priority of its threads only once it signs for workloads', async function () {
    if (process.platform !== 'linux') return this.skip()
    // The 19th field, after the name in parentheses.
    const priorityOf = (task: string): number | readonly number[] => {
      try {
        return Number(readFileSync(`/proc/self/task/${task}/stat`, 'utf8').split(') ')[1]?.split(' ')[16])
      } catch {
        // The thread has ended since it was listed.
        return []
      }
    }
    const priorities = () => readdirSync('/proc/self/task').flatMap(priorityOf)
    const own = Math.max(...priorities())
    const { asks, sign } = await start()
    await trusted()
    chainOf(await asks.signServingCertificate({ csr: makeSigningRequest(keys.p256, [{ dns: 'a.b' }]), server: 'xds-writer/0' }))
    expect(Math.max(...priorities())).to.equal(own)
    chainOf(await sign())
    expect(Math.max(...priorities())).to.equal(Math.max(own, 10))
  })

  it('stores its keys in files for its user only, and nowhere else', async () => {
    await start()
    await trusted()
    const [key = ''] = readdirSync(join(dir, 'state', 'keys'))
    expect(readFileSync(join(dir, 'state', 'keys', key), 'utf8')).to.contain('PRIVATE KEY')
    expect(readFileSync(join(dir, 'state', 'state.json'), 'utf8')).not.to.contain('PRIVATE')
    expect(JSON.stringify(writer.received)).not.to.contain('PRIVATE')
  })
})
