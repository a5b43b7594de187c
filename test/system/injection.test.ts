/** Injection with the files of `./var/lib/mesh/inject`, at the HTTP address of a service without a cluster (docs/injection.md, N1, N2, N13, N16). */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { stringify } from 'yaml'
import { unconfigured } from '../../src/inject/admit-pod.ts'
import { defaultConfig, defaultValues } from '../../src/inject/default-template.ts'
import { podWith } from '../harness/injection.ts'
import { podReviewOf, postReview, type ReviewAnswer } from '../harness/reviews.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

interface Page {
  readonly place: string
  readonly fault: string
  readonly config?: string
}

describe('injection with files', () => {
  const home = mkdtempSync(join(tmpdir(), 'mesh-inject-'))
  const directory = join(home, 'var/lib/mesh/inject')
  const service = new Service({ cwd: home, env: { MESH_METRICS_ANNOTATIONS: '{"port":"9090"}', TERMINATION_DRAIN_DURATION_SECONDS: '7' } })
  const put = (name: string, content: unknown) => {
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, `.${name}`), typeof content === 'string' ? content : stringify(content))
    renameSync(join(directory, `.${name}`), join(directory, name))
  }
  before(async () => {
    await service.start()
  })
  after(async () => {
    await service.dispose()
    rmSync(home, { recursive: true })
  })

  const post = (body: string, path = '/inject') => postReview(service.httpPort, path, body)
  const inject = (pod: object = podWith(), path?: string) => post(podReviewOf(pod), path)
  const isInjected = async () => (await inject()).patch !== undefined
  /** The variables of the agent that a patch adds. */
  const variables = ({ patch = [] }: ReviewAnswer): Record<string, string> => {
    const texts = JSON.stringify(patch.map(({ value }) => value))
    return Object.fromEntries([...texts.matchAll(/\{"name":"([A-Z0-9_]+)","value":"((?:[^"\\]|\\.)*)"\}/g)].map(([, name, value]) => [name, value]))
  }
  const page = () => service.debug<Page>('inject')
  const ready = async () => (await (await fetch(`http://127.0.0.1:${service.httpPort}/ready`)).text()).trim()

  it('leaves pods as they are while there is no configuration, which their answers, log and /ready say once somebody asks', async () => {
    expect(await ready()).to.equal('')
    expect(await inject()).to.deep.include({ status: 200, allowed: true, patch: undefined, warnings: [unconfigured] })
    // Large ones too.
    const large = podWith({ annotations: { x: 'y'.repeat(100_000) } })
    expect(await post(podReviewOf(large, { as: 'v1beta1', uid: 'large' }))).to.deep.include({
      ...{ apiVersion: 'admission.k8s.io/v1beta1', uid: 'large', allowed: true, patch: undefined, warnings: [unconfigured] },
    })
    await until('the line of /ready', async () => (await ready()) === unconfigured)
    await service.output.says(/warn\s+.*there is no configuration of injection /)
    expect(await page()).to.include({ place: '' })
  })

  it('begins when the files come', async () => {
    put('values', defaultValues)
    put('config', defaultConfig)
    await until('the files', isInjected)
    await until('no line of /ready', async () => (await ready()) === '')
    expect(await page()).to.deep.include({ place: 'var/lib/mesh/inject/config', fault: '', config: stringify(defaultConfig) })
  })

  it('answers reviews of both versions with their uid, small and large ones', async () => {
    for (const as of ['v1', 'v1beta1'] as const)
      for (const pad of [0, 100_000]) {
        const pod = podWith({ annotations: { x: 'y'.repeat(pad) } })
        const answer = await post(podReviewOf(pod, { as, uid: `uid-${as}-${pad}` }))
        expect(answer).to.deep.include({ apiVersion: `admission.k8s.io/${as}`, uid: `uid-${as}-${pad}`, allowed: true })
        expect(JSON.stringify(answer.patch)).to.contain('"mesh-proxy"')
      }
  })

  it('sets the variables of the path, of discovery, and refuses a path that is none', async () => {
    expect(variables(await inject())).to.include({ MESH_METRICS_ANNOTATIONS: String.raw`{\"port\":\"9090\"}` })
    expect(variables(await inject()).PROXY_CONFIG).to.contain(String.raw`\"terminationDrainDuration\":\"7s\"`)
    const own = variables(await inject(podWith(), '/inject/cluster/east/net/n1/zone/a'))
    expect(own).to.include({ MESH_META_CLUSTER_ID: 'east', MESH_META_NETWORK: 'n1', ZONE: 'a' })
    for (const pad of [0, 100_000]) {
      const refused = await inject(podWith({ annotations: { x: 'y'.repeat(pad) } }), '/inject/cluster')
      expect(refused).to.deep.include({ allowed: false, message: 'injection failed: the path of the webhook has the key "cluster" without a value' })
    }
  })

  it('follows the files, and keeps the last good ones', async () => {
    put('config', { ...defaultConfig, policy: 'disabled' })
    await until('no injection', async () => !(await isInjected()))
    put('config', { ...defaultConfig, templates: { sidecar: '{{ if }}' } })
    await until('the fault', async () => (await page()).fault !== '')
    expect((await page()).fault).to.match(/^var\/lib\/mesh\/inject\/config: config: /)
    expect(await isInjected()).to.equal(false)
    put('config', { ...defaultConfig, policy: 'enabled' })
    await until('injection', isInjected)
    // One line of a text that is gone is not one that says that there is nothing to inject.
    rmSync(join(directory, 'config'))
    put('values', defaultValues)
    expect(await isInjected()).to.equal(true)
  })

  it('tells unknown fields: those of an annotation in the answer, those of a template once in the log, and again with another configuration', async () => {
    const line = 'template own: its output has the unknown field spec.conntainers'
    const annotated = (pad: number) => podWith({ annotations: { 'proxy.istio.io/config': 'conccurrency: 3', x: 'y'.repeat(pad) } })
    const misspelt = (text: string) =>
      put('config', {
        ...defaultConfig,
        templates: { ...defaultConfig.templates, own: `spec: { conntainers: ${text} }` },
        defaultTemplates: ['sidecar', 'own'],
      })
    const has = async (text: string) => JSON.stringify((await inject()).patch ?? []).includes(`"${text}"`)
    misspelt('[one]')
    await until('the template', () => has('one'))
    for (const pad of [0, 0, 100_000])
      expect((await inject(annotated(pad))).warnings).to.deep.equal([
        'annotation proxy.istio.io/config: field conccurrency: unknown field, left out; did you mean "concurrency"?',
      ])
    expect((await inject()).warnings).to.equal(undefined)
    await service.output.says(line, 1, 1)
    misspelt('[two]')
    await until('the other template', () => has('two'))
    await service.output.says(line, 2, 2)
    put('config', { ...defaultConfig, policy: 'enabled' })
    await until('the template to be gone', async () => !(await has('two')))
  })

  it('calls slow functions of templates where other pods do not wait for them', async () => {
    const counted = async () => Number(/^sidecar_injection_requests_total (\d+)$/m.exec(await service.metrics())?.[1])
    const annotation = (text: string) => `metadata: { annotations: { made: ${text} } }`
    put('config', {
      ...defaultConfig,
      templates: {
        ...defaultConfig.templates,
        hash: annotation('{{ bcrypt "x" | quote }}'),
        hashes: annotation('{{ range until 3 }}{{ $x := bcrypt "x" }}{{ end }}done'),
        // Neither is too much by itself.
        one: annotation('{{ range until 500 }}{{ $x := genPrivateKey "ed25519" }}{{ end }}done'),
        other: annotation('{{ range until 500 }}{{ $x := genPrivateKey "ecdsa" }}{{ end }}done'),
      },
    })
    const withTemplates = (names: string) => podWith({ annotations: { 'inject.mesh.io/templates': names } })
    const made = ({ patch = [] }: ReviewAnswer) => JSON.stringify(patch)
    await until('the templates', async () => /"\$2a\$10\$.{53}"/.test(made(await inject(withTemplates('sidecar,hash')))))
    const before = await counted()
    let sent = 0
    const answered = (pod: object) => inject(pod).finally(() => sent++)
    // A busy machine may take longer than the five seconds that such a review has.
    await until('a pod with hashes that a usual one overtakes', async () => {
      const order: string[] = []
      const slow = answered(withTemplates('hashes'))
      await Promise.all([slow.then(() => order.push('slow')), answered(podWith()).then(() => order.push('usual'))])
      return order[0] === 'usual' && made(await slow).includes('"done"')
    })
    const tooMuch = /^injection failed: template other: line 1: .*slow functions .* take more than 4000 ms$/
    await until('a pod that is refused', async () => tooMuch.test((await answered(withTemplates('one,other'))).message ?? ''))
    await until('the counter', async () => (await counted()) === before + sent)
  })

  it('is counted by what came of it', async () => {
    const count = async (name: string) => Number(new RegExp(`^sidecar_injection_${name}_total (\\d+)$`, 'm').exec(await service.metrics())?.[1] ?? 0)
    const counts = async () =>
      Object.fromEntries(await Promise.all(['requests', 'success', 'skip', 'failure'].map(async (name) => [name, await count(name)] as const)))
    await until('the counters', async () => (await count('requests')) > 0)
    const before = await counts()
    for (const pad of [0, 100_000]) {
      const more = { x: 'y'.repeat(pad) }
      await inject(podWith({ annotations: more }))
      await inject(podWith({ annotations: more }, { hostNetwork: true }))
      await inject(podWith({ annotations: { ...more, 'sidecar.mesh.io/proxyCPU': 'much' } }))
    }
    await post('{')
    await postReview(service.httpPort, '/inject', '{}', 'text/plain')
    const grown = async () => Object.fromEntries(Object.entries(await counts()).map(([name, value]) => [name, value - (before[name] ?? 0)]))
    await until('all of them', async () => (await grown()).requests === 8)
    expect(await grown()).to.deep.equal({ requests: 8, success: 2, skip: 2, failure: 4 })
  })
})

describe('injection right after a start', () => {
  const home = mkdtempSync(join(tmpdir(), 'mesh-inject-'))
  const directory = join(home, 'var/lib/mesh/inject')
  const service = new Service({ cwd: home })
  before(() => mkdirSync(directory, { recursive: true }))
  afterEach(() => service.stop())
  after(async () => {
    await service.dispose()
    rmSync(home, { recursive: true })
  })
  const inject = () => postReview(service.httpPort, '/inject', podReviewOf(podWith()))

  it('lets no pod pass before the files are read', async () => {
    writeFileSync(join(directory, 'values'), stringify(defaultValues))
    writeFileSync(join(directory, 'config'), stringify(defaultConfig))
    await service.start()
    expect((await inject()).patch).to.not.equal(undefined)
  })

  it('lets none pass while what there is cannot be used', async () => {
    writeFileSync(join(directory, 'config'), 'templates: [')
    await service.start()
    expect((await inject()).status).to.equal(503)
    await service.output.says(/pods are refused/)
    writeFileSync(join(directory, 'config'), stringify(defaultConfig))
    await until('the files', async () => (await inject()).patch !== undefined)
  })
})

describe('files of injection that are faulty at the start', () => {
  const home = mkdtempSync(join(tmpdir(), 'mesh-inject-'))
  const service = new Service({ cwd: home })
  after(async () => {
    await service.dispose()
    rmSync(home, { recursive: true })
  })

  it('are told by the page and by /ready before the first review', async () => {
    mkdirSync(join(home, 'var/lib/mesh/inject'), { recursive: true })
    writeFileSync(join(home, 'var/lib/mesh/inject/config'), stringify({ templates: { sidecar: '{{ if' } }))
    await service.start()
    const ready = async () => (await fetch(`http://127.0.0.1:${service.httpPort}/ready`)).text()
    await until('the fault', async () => (await ready()).includes('inject/config: config: field templates: '))
    expect((await service.debug<Page>('inject')).fault).to.match(/inject\/config: config: field templates: /)
  })
})
