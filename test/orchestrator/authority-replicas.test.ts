/**
 * The root of an authority that three processes share is exchanged while one of them is stopped, one is killed in each stage, one starts amid the stages,
 * and somebody removes the Secrets (docs/certificates.md, R2, R13, R16, K10).
 */
import { X509Certificate } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import type { AuthorityStatus, LedgerPage } from '../../protocols/messages/authority-status.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { type Stage, stages } from '../../src/ca/state.ts'
import { seededRandom } from '../../src/registry/mock.ts'
import { CertificateClient, type ClientCredentials } from '../harness/certificate-client.ts'
import { TestCluster } from '../harness/cluster.ts'
import { Issuer } from '../harness/issuer.ts'
import { seed } from '../harness/seed.ts'
import { runCommand, Service } from '../harness/service.ts'
import { keys } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const namespace = 'mesh-system'

describe('the root of an authority of three processes', function () {
  this.timeout(400_000)
  let cluster: TestCluster
  let issuer: Issuer
  const services: Service[] = []
  const ports = new Map<Service, number>()
  let [one, two, three] = [] as unknown as [Service, Service, Service]

  const made = async (): Promise<Service> => {
    const port = await freePort()
    const flags = [
      '--registries',
      'Orchestrator',
      '--orchconfig',
      cluster.kubeconfig,
      '--namespace',
      namespace,
      '--secureGRPCAddr',
      `127.0.0.1:${port}`,
    ]
    const rule = JSON.stringify({ issuer: issuer.name, jwks: issuer.jwks, audiences: ['mesh-ca'] })
    const replica = { MESHD_REPLICA_ADDRESS: '127.0.0.1:0', POD_NAME: `replica-${services.length}` }
    const env = { ...replica, MESHD_CA_STATE_DIR: '', JWT_RULE: rule, CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: '0' }
    const service = new Service({ env, flags: [...flags, '--writers', '1'] })
    services.push(service)
    ports.set(service, port)
    return service
  }
  const page = (of: Service) => of.debug<AuthorityStatus>('ca')
  const stageOf = async (of: Service) => (await page(of).catch(() => undefined))?.rotation.stage
  const hasStage = (of: Service, stage: Stage) => until(`the stage ${stage}`, async () => (await stageOf(of)) === stage)
  const rotate = async (of: Service) => {
    const { code, stderr, ms } = await runCommand(['ca', 'rotate', '--force'], of.env)
    expect(code, stderr).to.equal(0)
    return ms
  }
  const trusted = async (of: Service) => (await page(of)).roots.map(({ certificate }) => certificate).join('')
  const ask = async (of: Service, by: ClientCredentials) => {
    const client = new CertificateClient(ports.get(of) ?? 0, by)
    const outcome = await client.ask(makeSigningRequest(keys.p256, []), 0n, undefined, 10_000)
    client.close()
    return outcome
  }
  /** A certificate for a token; its key is that of the request. */
  const certificate = async (of: Service) => {
    const roots = await trusted(of)
    const outcome = await ask(of, { roots, token: await issuer.token({ sub: 'system:serviceaccount:shop:cart', aud: 'mesh-ca' }) })
    if (!('chain' in outcome)) throw new Error(`${outcome.code} ${outcome.details}`)
    return { leaf: outcome.chain[0] as string, cert: outcome.chain.slice(0, -1).join('') }
  }
  const state = () => {
    const { metadata, data } = JSON.parse(cluster.kubectl(['get', 'secret', '-n', namespace, 'mesh-ca-state', '-o', 'json'])) as {
      metadata: { uid: string; resourceVersion: string }
      data: Record<string, string>
    }
    return { version: metadata.resourceVersion, text: Buffer.from(data['state.json'] ?? '', 'base64').toString('utf8') }
  }
  const signing = () => cluster.kubectl(['get', 'secret', '-n', namespace, 'mesh-ca-secret', '-o', 'jsonpath={.data.ca-cert\\.pem}'])
  const isSignedBy = (leaf: string, root: string) => new X509Certificate(leaf).verify(new X509Certificate(Buffer.from(root, 'base64')).publicKey)

  before(async () => {
    ;[cluster, issuer] = await Promise.all([TestCluster.start(), new Issuer('https://issuer.test').rotateOnly('ES256')])
    cluster.stopControllers()
    ;[one, two, three] = [await made(), await made(), await made()]
    await Promise.all(services.map((each) => each.start()))
    for (const each of services) await hasStage(each, 'stable')
  })
  after(async () => {
    for (const each of services) {
      if (each.pid > 0) process.kill(each.pid, 'SIGCONT')
      await each.dispose()
    }
    await cluster?.dispose()
  })

  it('has the proxies of all processes in its ledger, whichever is asked', async () => {
    const roots = await trusted(two)
    const { cert } = await certificate(two)
    const key = keys.p256.export({ type: 'pkcs8', format: 'pem' }) as string
    const tls = credentials.createSsl(Buffer.from(roots), Buffer.from(key), Buffer.from(cert), { checkServerIdentity: () => undefined })
    const plain = new XdsClient(one.grpcPort, sidecarNode('10.1.0.2', 'plain', 'shop'), true).connect()
    const client = new XdsClient(ports.get(two) ?? 0, sidecarNode('10.1.0.1', 'cart', 'shop'), true, tls).connect()
    try {
      const identity = 'spiffe://cluster.local/ns/shop/sa/cart'
      for (const each of [one, two, three])
        await until('the proxies', async () => {
          const { stdout, code } = await runCommand(['ca', 'ledger', '--json'], each.env)
          expect(code).to.equal(0)
          const { identities, replicas } = JSON.parse(stdout) as LedgerPage
          const { rotation } = await page(each)
          const connected = identities.find((row) => row.identity === identity)?.proxies ?? []
          const all = replicas.length === 3 && replicas.every(({ answered }) => answered)
          return all && connected.join() === client.node.id && rotation.plaintext.join() === plain.node.id
        })
    } finally {
      for (const each of [plain, client]) each.close()
    }
  })

  it('is exchanged and distrusted while one is stopped: when that goes on it writes nothing, signs with the new one, and refuses the old one', async () => {
    const old = await certificate(three)
    const former = signing()
    process.kill(three.pid, 'SIGSTOP')
    await rotate(one)
    await rotate(one)
    const late = await made()
    await late.start()
    expect(await stageOf(late), 'of a process that starts in the second stage').to.equal('trust-both')
    expect(isSignedBy((await certificate(late)).leaf, former)).to.equal(true)
    await rotate(late)
    for (const each of [one, two]) await hasStage(each, 'sign-with-new')
    const distrusted = new X509Certificate(Buffer.from(former, 'base64')).fingerprint256.replaceAll(':', '').toLowerCase()
    const { stderr } = await runCommand(['ca', 'distrust', distrusted], two.env)
    expect(stderr).to.equal('')
    const before = state()
    process.kill(three.pid, 'SIGCONT')
    const roots = await trusted(one)
    const byOld: ClientCredentials = { roots, key: keys.p256.export({ type: 'pkcs8', format: 'pem' }) as string, cert: old.cert }
    for (const each of [three, one, two, late]) await until('the old root to be refused', async () => !('chain' in (await ask(each, byOld))))
    await until('the new root to sign', async () => isSignedBy((await certificate(three)).leaf, signing()))
    expect([await stageOf(three), state().version, signing() === former]).to.deep.equal(['sign-with-new', before.version, false])
    const handedOut = () => cluster.kubectl(['get', 'configmap', '-n', 'default', 'mesh-ca-root-cert', '-o', 'jsonpath={.data.root-cert\\.pem}'])
    await until(
      'the root certificates of namespaces to be the new one alone',
      () => handedOut().trim() === Buffer.from(signing(), 'base64').toString().trim(),
    )
    await late.stop()
  })

  it('has gone one stage or none when the process that was told is killed, and the others go on with it', async () => {
    const random = seededRandom(seed)
    let { ms } = await runCommand(['ca', 'rotate', '--dry-run'], one.env)
    for (let round = 0; round < stages.length; round++) {
      const stage = (await stageOf(two)) as Stage
      const next = stages[(stages.indexOf(stage) + 1) % stages.length] as Stage
      const told = runCommand(['ca', 'rotate', '--force'], one.env)
      // Most of the time it begins.
      await pause(ms * (0.7 + random()))
      await one.stop('SIGKILL')
      const { code } = await told
      await one.start()
      const now = (await stageOf(one)) as Stage
      expect(code === 0 ? [next] : [stage, next]).to.include(now)
      if (now === stage) ms = await rotate(two)
      for (const each of [one, two, three]) await hasStage(each, next)
      for (const each of [one, two, three]) expect(isSignedBy((await certificate(each)).leaf, signing())).to.equal(true)
    }
  })

  it('is what it was when somebody removes its Secrets, and no process that was stopped since brings an earlier stage back', async () => {
    await until('one state', async () => (await stageOf(one)) === (await stageOf(two)) && (await stageOf(two)) === (await stageOf(three)))
    process.kill(three.pid, 'SIGSTOP')
    const stopped = performance.now()
    await rotate(one)
    await hasStage(two, (await stageOf(one)) as Stage)
    await until('it to have been stopped for long', () => performance.now() > stopped + 20_000)
    const [{ text }, root] = [state(), signing()]
    cluster.kubectl(['delete', 'secret', '-n', namespace, 'mesh-ca-state', 'mesh-ca-secret'])
    process.kill(three.pid, 'SIGCONT')
    await until('the Secrets', () => state().text !== '' && signing() !== '')
    expect([state().text === text, signing() === root]).to.deep.equal([true, true])
    await until('the stage', async () => (await stageOf(three)) === (await stageOf(one)))
    expect(state().text).to.equal(text)
  })
})
