/**
 * The certificates of the mesh configuration, in Secrets of a real cluster (docs/certificates.md, M1 to M6): made and renewed by one of two
 * replicas, signed by a signer as users run one.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { MeshSigner } from '../harness/mesh-signer.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const namespace = 'mesh-system'
const signerName = 'example.com/mesh'

describe('certificates of the mesh configuration', () => {
  let cluster: TestCluster
  let signer: MeshSigner
  let place: string
  const services: Service[] = []

  const discovery = async (certificates: string): Promise<Service> => {
    const flags = ['--registries', 'Orchestrator', '--orchconfig', join(cluster.dir, 'meshd'), '--namespace', namespace, '--writers', '1']
    const made = new Service({ env: { MESHD_CA_STATE_DIR: '', ORCH_SIGNER: signerName }, flags, cwd: place })
    made.write('mesh-config', certificates)
    services.push(made)
    await made.start()
    return made
  }
  const secret = (name: string) => {
    const text = cluster.kubectl(['get', 'secret', '-n', namespace, name, '-o', 'json', '--ignore-not-found'])
    if (text === '') return undefined
    const {
      type,
      data = {},
      metadata,
    } = JSON.parse(text) as {
      type: string
      data?: Record<string, string>
      metadata: { resourceVersion: string; labels?: Record<string, string> }
    }
    const texts = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]))
    return { type, texts, metadata }
  }
  const certificate = (name: string) => new X509Certificate(secret(name)?.texts['cert-chain.pem'] ?? '')
  const looks = async (service: Service) => (await service.metrics()).match(/^pilot_mesh_certificate_looks_total.*$/gm) ?? []

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    signer = await MeshSigner.start(cluster.adminConfig, signerName)
    place = mkdtempSync(join(tmpdir(), 'mesh-place-'))
    mkdirSync(join(place, 'etc/external-ca-cert'), { recursive: true })
    writeFileSync(join(place, 'etc/external-ca-cert/root-cert.pem'), signer.root)
    const made = cluster.roleConfig()
    writeFileSync(join(cluster.dir, 'meshd'), readFileSync(made, 'utf8'))
    cluster.apply(readFileSync(new URL('../../manifests/optional/signer.yaml', import.meta.url), 'utf8'))
  })
  after(async () => {
    await Promise.all(services.map((each) => each.dispose()))
    signer?.close()
    await cluster?.dispose()
    rmSync(place, { recursive: true, force: true })
  })

  const web = '- {secretName: dns.web, dnsNames: [web.shop.svc, web.shop]}'
  const brief = '- {secretName: dns.brief, dnsNames: [brief.shop.svc]}'
  const theirs = '- {secretName: theirs, dnsNames: [theirs.shop.svc]}'
  let one: Service
  let other: Service

  it('arrive in Secrets of the control plane, made by one of two replicas', async () => {
    cluster.apply(`apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: ${namespace}}\nstringData: {key.pem: mine}`)
    one = await discovery(`certificates:\n${web}\n${theirs}\n`)
    await until('the Secret', () => secret('dns.web') !== undefined)
    other = await discovery(`certificates:\n${web}\n${theirs}\n`)
    const { type, texts } = secret('dns.web') ?? { type: '', texts: {} as Record<string, string> }
    const made = certificate('dns.web')
    expect([type, Object.keys(texts).sort()]).to.deep.equal(['mesh.io/dns-key-and-cert', ['cert-chain.pem', 'key.pem', 'root-cert.pem']])
    expect([made.subjectAltName, made.checkPrivateKey(createPrivateKey(texts['key.pem'] ?? ''))]).to.deep.equal([
      'DNS:web.shop.svc, DNS:web.shop',
      true,
    ])
    expect(new X509Certificate(texts['root-cert.pem'] ?? '').fingerprint256).to.equal(new X509Certificate(signer.root).fingerprint256)
    await until('the requests to be removed', async () => (await signer.open()).length === 0)
  })

  it("leave somebody else's Secret, and say so", async () => {
    await one.output.says(/error\s+.*Secret theirs of certificates of the mesh configuration is left as it is: its type is "Opaque"/)
    expect(secret('theirs')?.texts).to.deep.equal({ 'key.pem': 'mine' })
    const ready = await fetch(`http://127.0.0.1:${one.httpPort}/ready`).then((answer) => answer.text())
    expect(ready).to.contain('Secret theirs of certificates')
  })

  it('are renewed at half their life, made for other names, and made again when the Secret is removed', async () => {
    signer.habits.set('dns', 'brief')
    one.write('mesh-config', `certificates:\n${web}\n${brief}\n`)
    await until('the brief certificate', () => secret('dns.brief') !== undefined)
    const { serialNumber } = certificate('dns.brief')
    await until('its renewal', () => certificate('dns.brief').serialNumber !== serialNumber)
    signer.habits.delete('dns')
    const before = certificate('dns.web').serialNumber
    one.write('mesh-config', `certificates:\n${web.replace('web.shop]', 'api.shop]')}\n`)
    await until('the other names', () => certificate('dns.web').subjectAltName === 'DNS:web.shop.svc, DNS:api.shop')
    expect(certificate('dns.web').serialNumber).to.not.equal(before)
    expect(secret('dns.brief'), 'an entry that is withdrawn leaves its Secret').to.not.equal(undefined)
    cluster.kubectl(['delete', 'secret', '-n', namespace, 'dns.web'])
    await until('the Secret to be there again', () => secret('dns.web') !== undefined)
  })

  it('are left alone by the replica that does not lead, which takes over when the other one ends', async () => {
    expect(await looks(other)).to.deep.equal([])
    const before = secret('dns.web')?.metadata.resourceVersion
    other.write('mesh-config', `certificates:\n${web.replace('web.shop]', 'api.shop]')}\n`)
    await until('the other one to have read it', async () => JSON.stringify(await other.debug('mesh')).includes('api.shop'))
    await one.stop()
    await until('the other one to look', async () => (await looks(other)).some((line) => line.includes('outcome="kept"')))
    expect(secret('dns.web')?.metadata.resourceVersion, 'it writes nothing that is good').to.equal(before)
    for (const each of [one, other]) each.output.lacks(/PRIVATE KEY/)
  })
})
