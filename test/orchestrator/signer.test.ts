/**
 * Workload and serving certificates of a signer of the orchestrator (docs/certificates.md, E1 to E9), beside a real cluster, with a signer that
 * signs with an authority of its own, as users run one.
 */
import { X509Certificate } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, connect as tlsConnect } from 'node:tls'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { status } from '../../src/model/status-codes.ts'
import { Agent } from '../harness/agent.ts'
import { CertificateClient } from '../harness/certificate-client.ts'
import { TestCluster } from '../harness/cluster.ts'
import { MeshSigner, type SignerHabit } from '../harness/mesh-signer.ts'
import { Service } from '../harness/service.ts'
import { keys, requestPem, uri } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'

const namespace = 'mesh-system'
const signerName = 'example.com/mesh'
const cart = 'spiffe://cluster.local/ns/shop/sa/cart'
const csr = makeSigningRequest(keys.p256, [{ uri: cart }])
const byRegistration = { EXTERNAL_CA: 'MESHD_RA_ORCHESTRATOR_API', ORCH_SIGNER: signerName }

describe('a signer of the orchestrator', () => {
  let cluster: TestCluster
  let signer: MeshSigner
  let place: string
  let kubeconfig: string
  let one: Service
  const services: Service[] = []
  const clients: { close(): void }[] = []
  const ports = new Map<Service, number>()

  const discovery = async (env: Record<string, string>, config = kubeconfig): Promise<Service> => {
    const port = await freePort()
    const flags = ['--registries', 'Orchestrator', '--orchconfig', config, '--namespace', namespace, '--secureGRPCAddr', `127.0.0.1:${port}`]
    const made = new Service({ env: { MESHD_CA_STATE_DIR: '', ...env }, flags: [...flags, '--writers', '1'], cwd: place })
    services.push(made)
    ports.set(made, port)
    await made.start()
    return made
  }
  const token = () => cluster.kubectl(['create', 'token', 'cart', '-n', 'shop', '--audience', 'mesh-ca']).trim()
  const clientOf = (service: Service): CertificateClient => {
    const made = new CertificateClient(ports.get(service) ?? 0, { roots: signer.root, token: token() })
    clients.push(made)
    return made
  }
  const applySignerRole = () => cluster.apply(readFileSync(new URL('../../manifests/optional/signer.yaml', import.meta.url), 'utf8'))
  /** The certificate that a port serves. */
  const served = (service: Service): Promise<X509Certificate> =>
    new Promise((resolve, reject) => {
      const socket = tlsConnect({ port: ports.get(service) ?? 0, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] }, () => {
        const { raw } = socket.getPeerCertificate()
        socket.destroy()
        resolve(new X509Certificate(raw))
      })
      socket.on('error', reject)
    })
  const noneIsOpen = () => until('the requests to be removed', async () => (await signer.open()).length === 0)

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    signer = await MeshSigner.start(cluster.adminConfig, signerName)
    place = mkdtempSync(join(tmpdir(), 'mesh-place-'))
    mkdirSync(join(place, 'etc/external-ca-cert'), { recursive: true })
    writeFileSync(join(place, 'etc/external-ca-cert/root-cert.pem'), signer.root)
    kubeconfig = cluster.roleConfig()
    cluster.apply(
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}',
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: cart, namespace: shop}',
    )
    applySignerRole()
    one = await discovery(byRegistration)
  })
  after(async () => {
    for (const each of clients) each.close()
    await Promise.all(services.map((each) => each.dispose()))
    signer?.close()
    await cluster?.dispose()
    rmSync(place, { recursive: true, force: true })
  })

  it('signs the certificates of workloads and of the secured port, and pods have its roots', async () => {
    const outcome = await clientOf(one).obtain(csr)
    if (!('chain' in outcome)) throw new Error(outcome.details)
    const [leaf, between, roots] = outcome.chain.map((text) => new X509Certificate(text)) as [X509Certificate, X509Certificate, X509Certificate]
    expect([leaf.subjectAltName, outcome.chain.length]).to.deep.equal([`URI:${cart}`, 3])
    expect([leaf.verify(between.publicKey), between.verify(roots.publicKey), roots.fingerprint256]).to.deep.equal([
      true,
      true,
      new X509Certificate(signer.root).fingerprint256,
    ])
    const port = await served(one)
    expect(port.subjectAltName).to.contain('DNS:meshd.mesh-system.svc').and.not.to.contain('localhost')
    const requests = [...signer.seen.values()].filter(({ metadata }) => metadata?.name?.startsWith('csr-workload-'))
    expect(requests[0]?.spec).to.deep.include({
      signerName,
      expirationSeconds: 86_400,
      usages: ['digital signature', 'key encipherment', 'server auth', 'client auth'],
    })
    expect(requests[0]?.metadata?.name).to.match(/^csr-workload-[a-z0-9]{18}$/)
    await noneIsOpen()
    await until('the roots of the signer in a namespace', () => {
      const map = JSON.parse(cluster.kubectl(['get', 'configmap', '-n', 'shop', 'mesh-ca-root-cert', '-o', 'json'])) as {
        data: Record<string, string>
      }
      return new X509Certificate(map.data['root-cert.pem'] ?? '').fingerprint256 === new X509Certificate(signer.root).fingerprint256
    })
    expect(cluster.kubectl(['get', 'secret', '-n', namespace, 'mesh-ca-state', '--ignore-not-found'])).to.equal('')
    one.output.lacks(/PRIVATE KEY/)
  })

  it('gives a real agent a certificate, with which its workload serves', async () => {
    const agent = new Agent({
      env: {
        POD_NAME: 'web',
        POD_NAMESPACE: 'shop',
        SERVICE_ACCOUNT: 'cart',
        INSTANCE_IP: '127.0.0.1',
        OUTPUT_CERTS: './out',
        TRUST_DOMAIN: 'cluster.local',
      },
      proxyConfig: { discoveryAddress: `localhost:${ports.get(one)}` },
    })
    try {
      agent.write('var/run/secrets/mesh/root-cert.pem', signer.root)
      agent.write('var/run/secrets/tokens/mesh-token', token())
      agent.write('var/run/secrets/tokens/istio-token', token())
      await agent.start()
      const file = (name: string) => readFileSync(join(agent.dir, 'out', name), 'utf8')
      await until('the certificate', () => file('cert-chain.pem').includes('BEGIN') && file('root-cert.pem').includes('BEGIN'))
      const server = createServer({ key: file('key.pem'), cert: file('cert-chain.pem') }, (socket) => socket.end('hello'))
      const port = await freePort()
      await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
      try {
        const peer = await new Promise<X509Certificate>((resolve, reject) => {
          const socket = tlsConnect({ port, host: '127.0.0.1', ca: signer.root, checkServerIdentity: () => undefined }, () => {
            resolve(new X509Certificate(socket.getPeerCertificate().raw))
            socket.destroy()
          })
          socket.on('error', reject)
        })
        expect(peer.subjectAltName).to.equal(`URI:${cart}`)
      } finally {
        server.close()
      }
    } finally {
      await agent.dispose()
    }
  })

  it('is given no request that names anything but its caller', async () => {
    const client = clientOf(one)
    const before = signer.seen.size
    const others: readonly (readonly [string, string])[] = [
      [makeSigningRequest(keys.p256, []), `which must be ${cart} alone`],
      [makeSigningRequest(keys.p256, [{ uri: cart }, { dns: 'kubernetes.default.svc' }]), `which must be ${cart} alone`],
      [makeSigningRequest(keys.p256, [{ uri: 'spiffe://cluster.local/ns/shop/sa/admin' }]), `which must be ${cart} alone`],
      [requestPem({ commonName: 'system:masters', names: [uri(cart)] }), 'the subject of the request, which must be empty'],
    ]
    for (const [text, reason] of others) {
      const outcome = await client.ask(text)
      expect('code' in outcome && outcome.code, reason).to.equal(status.invalidArgument)
      expect('details' in outcome && outcome.details).to.contain(reason)
    }
    expect(signer.seen.size).to.equal(before)
  })

  it('is refused when it signs anything else than was asked, by what it did', async () => {
    const client = clientOf(one)
    const hostile: readonly (readonly [SignerHabit, string])[] = [
      ['fail', 'the signer example.com/mesh refuses the request: PolicyViolation: not today'],
      ['another key', 'it signed another key than that of the request'],
      ['another name', 'it signed other names than those of the request: "URI:spiffe://cluster.local/ns/mesh-system/sa/meshd" instead of'],
      ['one more name', 'it signed other names than those of the request: '],
      ['an authority', 'it signed the certificate of an authority'],
      ['a longer life', 'it signed a longer lifetime than was asked for'],
      ['another root', 'its certificate is not verified by the roots of the signer: it leads to none of the roots'],
      ['for servers only', 'its certificate is not for both ends of a TLS connection'],
    ]
    for (const [habit, reason] of hostile) {
      signer.habits.set('workload', habit)
      const outcome = await client.obtain(csr)
      expect(outcome, habit).to.deep.include({ code: status.internal, details: 'CSR signing error (the certificate cannot be made)' })
      await one.output.says(new RegExp(`warn\\s+.*refused: .*${reason.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`))
    }
    const ready = async () => (await fetch(`http://127.0.0.1:${one.httpPort}/ready`)).text()
    await until('the line of /ready', async () =>
      /^the signer example.com\/mesh has signed no request since \d{4}-\d\d-\d\dT[\d:.]+Z: .*is not for both ends of a TLS connection/m.test(
        await ready(),
      ),
    )
    signer.habits.delete('workload')
    expect('chain' in (await client.obtain(csr))).to.equal(true)
    await until('no line of /ready', async () => !(await ready()).includes('has signed no request'))
    await noneIsOpen()
  })

  it('that never signs keeps nobody longer than he waits, and no request is left', async () => {
    signer.habits.set('workload', 'nothing')
    const outcome = await clientOf(one).askTelling(csr, 3000)
    expect('code' in outcome && [status.unavailable, status.deadlineExceeded]).to.include('code' in outcome && outcome.code)
    await noneIsOpen()
    signer.habits.delete('workload')
  })

  it('signs what somebody else approves, where the role does not permit that, and not what he denies', async () => {
    cluster.kubectl(['patch', 'clusterrole', 'meshd-signer', '--type=json', '-p', '[{"op":"remove","path":"/rules/2"}]'])
    const client = clientOf(one)
    for (const verb of ['approve', 'deny']) {
      const decided = new Set(await signer.open())
      // A request that nobody decides on in time is made again.
      let isOver = false
      const asked = client.obtain(csr).finally(() => {
        isOver = true
      })
      await until('an answer', async () => {
        for (const name of (await signer.open()).filter((each) => each.startsWith('csr-workload-') && !decided.has(each))) {
          decided.add(name)
          cluster.kubectl(['certificate', verb, name])
        }
        return isOver
      })
      expect('chain' in (await asked), verb).to.equal(verb === 'approve')
    }
    await one.output.says(/warn\s+.*requests to the signer example.com\/mesh are not approved by this process.*signerName/)
    await one.output.says(/an approver has denied the request/)
    applySignerRole()
    await noneIsOpen()
  })

  it('signs the certificate of the secured port alone, beside an own authority for workloads', async () => {
    const other = await discovery({ PILOT_CERT_PROVIDER: 'orchestrator', ORCH_SIGNER: signerName })
    const outcome = await clientOf(other).obtain(makeSigningRequest(keys.p256, []))
    if (!('chain' in outcome)) throw new Error(outcome.details)
    const own = new X509Certificate(outcome.chain.at(-1) ?? '')
    expect(new X509Certificate(outcome.chain[0] ?? '').verify(own.publicKey)).to.equal(true)
    const port = await served(other)
    expect([port.issuer, own.subject]).to.deep.equal(['CN=between', 'O=cluster.local'])
    await other.stop()
  })

  it('is waited for by a replica that starts while it refuses, while a ready one has open ports', async () => {
    const replica = (name: string) => ({ ...byRegistration, MESHD_REPLICA_ADDRESS: '127.0.0.1:0', POD_NAME: name })
    const starting = async (name: string) => {
      const known = services.length
      const started = discovery(replica(name))
      await until('the process', () => services.length > known)
      return { service: services.at(-1) as Service, started }
    }
    const ready = async ({ httpPort }: Service) => {
      const answer = await fetch(`http://127.0.0.1:${httpPort}/ready`).catch(() => undefined)
      return { status: answer?.status, text: (await answer?.text()) ?? '' }
    }
    const waits = 'ready replicas have open ports: this one is not ready before it has the certificates of its own'
    const closed = /^the secured port is not open: its certificate was not signed: /m
    const first = await discovery(replica('replica-1'))
    signer.habits.set('serving', 'fail')
    const second = await starting('replica-2')
    await until('the second to wait', async () => (await ready(second.service)).text.includes(waits))
    const { status: code, text } = await ready(second.service)
    expect([code, closed.test(text)]).to.deep.equal([503, true])
    await second.service.output.says(/warn\s+.*ready replicas have open ports: this one is not ready .*the secured port is not open/)
    expect((await ready(first)).status, 'the first').to.equal(200)
    signer.habits.delete('serving')
    await second.started
    expect([(await served(second.service)).issuer, (await ready(second.service)).text]).to.deep.equal(['CN=between', ''])
    signer.habits.set('serving', 'fail')
    const third = await starting('replica-3')
    await until('the third to wait', async () => (await ready(third.service)).text.includes(waits))
    await Promise.all([first.stop(), second.service.stop()])
    // Nobody has open ports any more: those in plain text are served at least.
    await third.started
    expect((await ready(third.service)).text)
      .to.match(closed)
      .and.not.to.contain(waits)
    await third.service.stop()
    signer.habits.delete('serving')
  })

  it('of the cluster itself refuses what it does not sign, and a role without rights is told', async () => {
    const refused = await discovery({ ...byRegistration, ORCH_SIGNER: 'kubernetes.io/kube-apiserver-client' }, cluster.adminConfig)
    await refused.output.says(/the signer kubernetes.io\/kube-apiserver-client refuses the request: SignerValidationFailure/)
    const ready = await fetch(`http://127.0.0.1:${refused.httpPort}/ready`).then((answer) => answer.text())
    expect(ready).to.contain('the secured port is not open: its certificate was not signed')
    await refused.stop()
    cluster.kubectl(['delete', 'clusterrolebinding', 'meshd-signer'])
    const poor = await discovery(byRegistration)
    await poor.output.says(/the role of this service account does not permit "create" of "certificatesigningrequests.certificates.k8s.io"/)
  })
})
