/**
 * The certificate authority of discovery beside a real cluster, without a volume: two processes share it, one is killed in a rotation, the API
 * server is away, and an authority is plugged in as a Secret (docs/certificates.md, A6, K8 to K13).
 */
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import type { AuthorityStatus } from '../../protocols/messages/authority-status.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { type Stage, stages } from '../../src/ca/state.ts'
import { rootOf } from '../harness/authorities.ts'
import { CertificateClient } from '../harness/certificate-client.ts'
import { TestCluster } from '../harness/cluster.ts'
import { Issuer } from '../harness/issuer.ts'
import { runCommand, Service } from '../harness/service.ts'
import { keys } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'

const namespace = 'mesh-system'

describe('the certificate authority of a cluster', () => {
  let cluster: TestCluster
  let issuer: Issuer
  let kubeconfig: string
  let place: string
  const services: Service[] = []
  const clients: CertificateClient[] = []
  const ports = new Map<Service, number>()

  const discovery = async (): Promise<Service> => {
    const port = await freePort()
    const flags = ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, '--namespace', namespace, '--secureGRPCAddr', `127.0.0.1:${port}`]
    const rule = JSON.stringify({ issuer: issuer.name, jwks: issuer.jwks, audiences: ['mesh-ca'] })
    // No directory is named, and there is none in the working directory.
    const env = { MESHD_CA_STATE_DIR: '', JWT_RULE: rule, CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: '0' }
    const made = new Service({ env, flags: [...flags, '--writers', '1'], cwd: place })
    services.push(made)
    ports.set(made, port)
    return made
  }
  const secret = (name: string): Record<string, string> => {
    const { data } = JSON.parse(cluster.kubectl(['get', 'secret', '-n', namespace, name, '-o', 'json'])) as { data: Record<string, string> }
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]))
  }
  const apply = (name: string, stringData: Record<string, string>): void =>
    cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, stringData }))
  const ready = (service: Service) => fetch(`http://127.0.0.1:${service.httpPort}/ready`).then((answer) => answer.text())
  const page = (service: Service) => service.debug<AuthorityStatus>('ca').catch(() => undefined)
  const stageOf = async (service: Service) => (await page(service))?.rotation.stage
  const rotate = (service: Service, ...flags: string[]) => runCommand(['ca', 'rotate', ...flags], service.env)
  /** A workload certificate from the secured port, whose own certificate leads to these roots; the leaf and the roots beside it. */
  const certificate = async (service: Service, roots: string): Promise<{ leaf: X509Certificate; roots: X509Certificate[] }> => {
    const token = await issuer.token({ sub: 'system:serviceaccount:shop:cart', aud: 'mesh-ca' })
    const client = new CertificateClient(ports.get(service) ?? 0, { roots, token })
    clients.push(client)
    const outcome = await client.obtain(makeSigningRequest(keys.p256, []))
    if (!('chain' in outcome)) throw new Error(`${outcome.code} ${outcome.details}`)
    const pems = (outcome.chain.at(-1) ?? '').match(/-----BEGIN[^-]*-----[^-]*-----END CERTIFICATE-----/g) ?? []
    return { leaf: new X509Certificate(outcome.chain[0] ?? ''), roots: pems.map((one) => new X509Certificate(one)) }
  }
  const isSignedBy = (leaf: X509Certificate, root: string) => leaf.verify(new X509Certificate(root).publicKey)

  before(async () => {
    ;[cluster, issuer] = await Promise.all([TestCluster.start('n1=region1/zone1'), new Issuer('https://issuer.test').rotateOnly('ES256')])
    place = mkdtempSync(join(tmpdir(), 'mesh-place-'))
    kubeconfig = cluster.roleConfig()
    cluster.forbid('secrets', 'Role')
  })
  after(async () => {
    for (const each of clients) each.close()
    await Promise.all(services.map((each) => each.dispose()))
    await cluster?.dispose()
    rmSync(place, { recursive: true, force: true })
  })

  let one: Service
  let other: Service

  it('signs nothing while its role does not permit to read Secrets, says so, and begins when it does: two processes with one root', async () => {
    ;[one, other] = [await discovery(), await discovery()]
    const started = Promise.all([one.start(), other.start()])
    const said = /error\s+.*no certificate is signed until it can: the role of this service account does not permit "get" of "secrets": /
    for (const each of [one, other]) await each.output.says(said)
    await one.output.says(/warn\s+.*the secrets of versions are not kept: the role .* does not permit "get" of "secrets"/)
    await until('readiness to tell', async () => {
      return (await ready(one)).includes('does not permit "get" of "secrets"')
    })
    expect(JSON.parse(cluster.kubectl(['get', 'secrets', '-n', namespace, '-o', 'json'])).items).to.deep.equal([])
    cluster.roleConfig()
    await started
    for (const each of [one, other]) await until('the authority', async () => (await page(each)) !== undefined)
    const root = secret('mesh-ca-secret')['ca-cert.pem'] ?? ''
    expect(Object.keys(secret('mesh-ca-secret')).sort()).to.deep.equal(['ca-cert.pem', 'ca-key.pem', 'cert-chain.pem', 'key.pem', 'root-cert.pem'])
    for (const each of [one, other]) {
      const { leaf, roots } = await certificate(each, root)
      expect([isSignedBy(leaf, root), roots.length]).to.deep.equal([true, 1])
    }
    expect((await page(one))?.keptIn).to.equal(`Secret ${namespace}/mesh-ca-state`)
    expect(readdirSync(place).filter((name) => name === 'var' && readdirSync(join(place, name)).includes('lib'))).to.deep.equal([])
  })

  it('has its root and stage after a process was killed in a rotation, which the other one goes on with', async () => {
    const old = secret('mesh-ca-secret')['ca-cert.pem'] ?? ''
    const { leaf } = await certificate(one, old)
    await rotate(one)
    for (const each of [one, other]) await until('the stage', async () => (await stageOf(each)) === 'announce')
    await one.stop('SIGKILL')
    for (const stage of ['trust-both', 'sign-with-new']) {
      await rotate(other, '--force')
      await until('the next stage', async () => (await stageOf(other)) === stage)
    }
    await one.start()
    await until('the stage after the start', async () => (await stageOf(one)) === 'sign-with-new')
    expect(Object.keys(secret('mesh-version-secrets')), 'what replicas make versions with').to.deep.equal(['version-secrets.json'])
    const next = secret('mesh-ca-secret')['ca-cert.pem'] ?? ''
    expect(next).to.not.equal(old)
    const renewed = await certificate(one, old + next)
    expect([isSignedBy(renewed.leaf, next), isSignedBy(leaf, old)]).to.deep.equal([true, true])
    expect(renewed.roots.map((root) => root.fingerprint256).sort(), 'both roots, so that the old certificate stays valid').to.deep.equal(
      [old, next].map((root) => new X509Certificate(root).fingerprint256).sort(),
    )
  })

  it('goes on signing while the API server is away, and its servers stay what they are', async () => {
    const roots = (await page(one))?.roots.map((root) => root.certificate).join('') ?? ''
    cluster.signalServer('SIGSTOP')
    try {
      const signed = await certificate(one, roots)
      expect(signed.roots).to.have.length(2)
    } finally {
      cluster.signalServer('SIGCONT')
    }
  })

  it('tells of a Secret that somebody has damaged, leaves it, and stays what it is until that is repaired', async () => {
    await until('the API server', () => cluster.kubectl(['get', '--raw', '/readyz']) === 'ok')
    const stage = await stageOf(one)
    const good = secret('mesh-ca-state')
    apply('mesh-ca-state', { 'state.json': 'garbage' })
    for (const each of [one, other])
      await each.output.says(/error\s+.*Secret mesh-system\/mesh-ca-state: is damaged and stays as it is: .*; the authority in force stays/)
    const fault =
      /Secret mesh-system\/mesh-ca-state: is damaged and stays as it is: state[.]json: .*; restore it, or remove it, and it is written again as it was;/
    for (const each of [one, other]) {
      await until('readiness to tell', async () => fault.test(await ready(each)))
      for (const told of [await runCommand(['ca', 'show'], each.env), await rotate(each, '--dry-run')])
        expect(told.stdout).to.match(new RegExp(`^No stage begins: ${fault.source}`, 'm'))
    }
    const roots = (await page(one))?.roots.map((root) => root.certificate).join('') ?? ''
    expect((await certificate(one, roots)).roots.length).to.be.greaterThan(0)
    expect((await rotate(one, '--force')).code).to.not.equal(0)
    expect([await stageOf(one), secret('mesh-ca-state')['state.json']]).to.deep.equal([stage, 'garbage'])
    apply('mesh-ca-state', good)
    for (const each of [one, other]) await each.output.says(/mesh-ca-state can be read again/)
    for (const each of [one, other]) await until('readiness to be quiet', async () => !fault.test(await ready(each)))
    // The other advice: it is removed, and so is the root that is shown.
    apply('mesh-ca-state', { 'state.json': 'garbage' })
    cluster.kubectl(['delete', 'secret', '-n', namespace, 'mesh-ca-state', 'mesh-ca-secret'])
    await until('both to be written again', () => {
      const names = ['mesh-ca-state', 'mesh-ca-secret'].map((name) => `secret/${name}`)
      return (
        cluster
          .kubectl(['get', '-n', namespace, ...names, '--ignore-not-found', '-o', 'name'])
          .trim()
          .split('\n').length === 2
      )
    })
    expect(Object.keys(secret('mesh-ca-state')).sort()).to.deep.equal(Object.keys(good).sort())
    await rotate(one, '--force')
    await until('the stage after the repair', async () => (await stageOf(one)) === 'retire')
  })

  it('is shown and worked on by the command with its Secrets, beside servers, which take over what it did', async () => {
    const ca = (...args: string[]) => runCommand(['ca', ...args, '--orchconfig', kubeconfig, '--namespace', namespace])
    const shown = async () => JSON.parse((await ca('show', '-o', 'json')).stdout) as AuthorityStatus
    const versions = () =>
      cluster.kubectl(['get', 'secrets', '-n', namespace, 'mesh-ca-state', 'mesh-ca-secret', '-o', 'jsonpath={.items[*].metadata.resourceVersion}'])
    const advanceTo = async (stage: Stage) => {
      while ((await shown()).rotation.stage !== stage) {
        const { code, stderr } = await ca('rotate', '--force')
        expect(code, stderr).to.equal(0)
      }
    }
    const before = versions()
    const status = await shown()
    expect([status.keptIn, status.rotation.stage, status.roots.length]).to.deep.equal([`Secret ${namespace}/mesh-ca-state`, 'retire', 2])
    expect(JSON.parse((await ca('ledger', '-o', 'json')).stdout).identities).to.have.length(1)
    expect((await ca('rotate', '--dry-run')).code).to.equal(0)
    expect(versions(), 'what is shown is not written').to.equal(before)
    const refused = await runCommand(['ca', 'show', '--orchconfig', kubeconfig, '--namespace', 'default'])
    expect(refused.stderr).to.match(/the role of this service account does not permit "get" of "secrets"/)
    const elsewhere = await runCommand(['ca', 'show', '--orchconfig', cluster.adminConfig, '--namespace', 'default'])
    expect(elsewhere.stderr).to.include('Secret default/mesh-ca-state: is not there: no authority keeps its state in this namespace')
    expect(JSON.parse(cluster.kubectl(['get', 'secrets', '-n', 'default', '-o', 'json'])).items).to.deep.equal([])

    expect((await ca('rotate', '--force')).stdout).to.match(/^The rotation went from retire to stable[.]/)
    for (const each of [one, other]) await until('the end of the rotation', async () => (await stageOf(each)) === 'stable')
    // Two at once: each stage is begun by one of them.
    const both = await Promise.all([ca('rotate', '--force'), ca('rotate', '--force')])
    const went = both.filter(({ code }) => code === 0).length
    for (const { code, stderr } of both) if (code !== 0) expect(stderr).to.match(/another replica has changed the rotation meanwhile/)
    expect((await shown()).rotation.stage).to.equal(stages[went])
    await advanceTo('sign-with-new')
    for (const each of [one, other]) await until('the new root', async () => (await stageOf(each)) === 'sign-with-new')
    const next = secret('mesh-ca-secret')['ca-cert.pem'] ?? ''
    const roots = (await page(one))?.roots.map((root) => root.certificate).join('') ?? ''
    expect(isSignedBy((await certificate(other, roots)).leaf, next), 'the server has the key that the command made').to.equal(true)
    const former = (await shown()).roots.find(({ certificate }) => certificate.trim() !== next.trim())?.id ?? ''
    expect((await ca('distrust', former)).stderr).to.equal('')
    for (const each of [one, other])
      await until('the root to be distrusted', async () => {
        const known = (await page(each))?.roots.find(({ id }) => id === former)
        return known?.uses.includes('distrusted') === true
      })
    expect((await ca('trust', former)).stderr).to.equal('')
    for (const each of [one, other])
      await until('it to be trusted', async () => !(await page(each))?.roots.some(({ uses }) => uses.includes('distrusted')))
    // Without force the command gives the servers the time that they need to take the stage over.
    const patient = await ca('rotate')
    expect([patient.ms > 15_000, `${patient.stdout}${patient.stderr}`.includes('other replicas may need')]).to.deep.equal([true, false])
  })

  it('is one that is plugged in as a Secret as soon as there is one, follows its exchange, and stays when that is gone', async () => {
    const plugged = (name: string, trusted: readonly string[]) => {
      const key = rootOf(name).key.export({ type: 'pkcs8', format: 'pem' }) as string
      const roots = trusted.map((each) => rootOf(each).record.root).join('')
      apply('cacerts', { 'ca-cert.pem': rootOf(name).record.root, 'ca-key.pem': key, 'cert-chain.pem': '', 'root-cert.pem': roots })
    }
    const signsWith = (name: string) => async () => (await page(one))?.signing.certificate.trim() === rootOf(name).record.certificate.trim()
    plugged('first', ['first', 'second'])
    await until('the authority of the Secret', signsWith('first'))
    expect((await page(one))?.source).to.equal('plugged-in')
    apply('cacerts', {
      'ca-cert.pem': rootOf('second').record.root,
      'ca-key.pem': rootOf('first').key.export({ type: 'pkcs8', format: 'pem' }) as string,
    })
    await one.output.says(
      /Secret mesh-system\/cacerts: the key [0-9a-f]{64}: is not the key of the signing certificate; the authority in force stays/,
    )
    plugged('second', ['first', 'second'])
    await until('the next authority', signsWith('second'))
    const roots = (await page(one))?.roots.map((root) => root.certificate).join('') ?? ''
    const { leaf } = await certificate(one, roots)
    expect(isSignedBy(leaf, rootOf('second').record.root)).to.equal(true)
    cluster.kubectl(['delete', 'secret', '-n', namespace, 'cacerts'])
    await one.output.says(/Secret mesh-system\/cacerts: is not there any more; the authority in force stays/)
    await until('the line of /ready', async () => /^Secret mesh-system\/cacerts: is not there any more; /m.test(await ready(one)))
    expect(isSignedBy((await certificate(one, roots)).leaf, rootOf('second').record.root)).to.equal(true)
    for (const each of [one, other]) each.output.lacks(/PRIVATE KEY/)
  })
})
