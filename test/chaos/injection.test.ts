/**
 * Attacks on injection that other meshes have had (docs/injection.md, N5, N12, N13): reviews that exhaust stack, memory or time, what is no pod, values
 * that become fields, and code of those who make pods. Each is answered or refused within bounds, and others are injected as before.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { stringify } from 'yaml'
import { defaultConfig, defaultValues } from '../../src/inject/default-template.ts'
import { expectBounded } from '../harness/bounded-cost.ts'
import { podWith } from '../harness/injection.ts'
import { podReviewOf, postReview, type ReviewAnswer } from '../harness/reviews.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const ready = { path: '/ready', status: 200 }

describe('injection withstands', () => {
  const home = mkdtempSync(join(tmpdir(), 'mesh-attacked-'))
  const service = new Service({ cwd: home })
  const post = (body: string, path = '/inject', type = 'application/json') => postReview(service.httpPort, path, body, type)
  const inject = (pod: object) => post(podReviewOf(pod))
  const annotated = (annotations: Record<string, string>) => inject(podWith({ annotations }))
  const isInjected = ({ patch }: ReviewAnswer) => JSON.stringify(patch ?? '').includes('"mesh-proxy"')
  const flood = (bodies: readonly string[]) =>
    Promise.all(bodies.map((body) => post(body).catch((error: Error): ReviewAnswer => ({ status: 0, body: String(error) }))))

  before(async () => {
    const directory = join(home, 'var/lib/mesh/inject')
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, 'config'), stringify(defaultConfig))
    writeFileSync(join(directory, 'values'), stringify(defaultValues))
    await service.start()
    await until('the first pod to be injected', async () => isInjected(await inject(podWith())))
  })
  afterEach(async () => {
    expect(isInjected(await inject(podWith()))).to.equal(true)
  })
  after(async () => {
    await service.dispose()
    rmSync(home, { recursive: true })
  })

  it('deep, huge and foreign bodies', async () => {
    const deep = `${podReviewOf(podWith()).slice(0, -2)},"x":${'[{"a":'.repeat(400_000)}`
    let answers: Promise<ReviewAnswer[]> | undefined
    await expectBounded(service.pid, { port: service.httpPort, ...ready }, { mib: 250, descriptors: 80 }, () => {
      answers = flood(Array.from({ length: 6 }, () => deep))
    })
    for (const { status, message } of (await answers) ?? [])
      if (status === 200) expect(message).to.equal('error decoding the review: it is nested deeper than 256 levels')
      else expect(status).to.be.oneOf([0, 503])
    expect((await post(`"${'x'.repeat(9_000_000)}"`)).status).to.equal(413)
    expect((await post(podReviewOf(podWith()), '/inject', 'application/yaml')).status).to.equal(415)
    expect((await post('')).status).to.equal(400)
  })

  it('annotations that are nested deep or expand', async () => {
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...'bcdefghi'.split('').map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghi'[at]}`).join()}]`),
    ].join('\n')
    const nested = (times: number) => `${'{"a":'.repeat(times)}1${'}'.repeat(times)}`
    for (const [key, value] of [
      ['proxy.mesh.io/config', bomb],
      ['proxy.mesh.io/config', '['.repeat(60_000)],
      ['proxy.mesh.io/config', nested(10_000)],
      ['proxy.mesh.io/overrides', `{"containers":[{"name":"x","a":${nested(10_000)}}]}`],
      ['sidecar.mesh.io/userVolume', nested(10_000)],
      ['sidecar.istio.io/userVolumeMount', nested(10_000)],
    ] as const) {
      const answer = await annotated({ [key]: value })
      expect([answer.status, answer.allowed], `${key}: ${value.slice(0, 20)}`).to.deep.equal([200, false])
      expect(answer.message).to.match(/^injection failed: /)
      expect(answer.message?.length).to.be.lessThan(8500)
    }
  })

  it('pods of thousands of fields, beside which small ones are injected', async () => {
    const many = (count: number) => Array.from({ length: count }, (_, at) => ({ name: `v-${at}`, emptyDir: {} }))
    const env = Array.from({ length: 6000 }, (_, at) => ({ name: `VARIABLE_${at}`, value: `a value ${at}` }))
    const large = podReviewOf(podWith({}, { volumes: many(4000), containers: [{ name: 'app', image: 'x', env }] }))
    let answers: Promise<ReviewAnswer[]> | undefined
    await expectBounded(service.pid, { port: service.httpPort, ...ready }, { mib: 400, descriptors: 120 }, () => {
      answers = flood(Array.from({ length: 20 }, () => large))
    })
    expect(isInjected(await inject(podWith()))).to.equal(true)
    for (const answer of (await answers) ?? [])
      expect(answer.status === 200 ? answer.allowed !== undefined : answer.status).to.be.oneOf([true, 503, 504])
  })

  it('what says that it is a pod and is another object, and what is a pod and says something else', async () => {
    const gateway = { apiVersion: 'networking.mesh.io/v1', kind: 'Gateway', metadata: { name: 'x', namespace: 'shop' }, spec: { servers: [] } }
    for (const kind of ['Gateway', 'Deployment', 'pod', ''])
      expect(await post(podReviewOf(gateway, { kind })), kind).to.deep.include({ status: 200, allowed: true, patch: undefined })
    for (const object of [{ spec: { containers: 'x' } }, { metadata: [], spec: {} }, { spec: { containers: [7] } }])
      expect(await post(podReviewOf(object))).to.deep.include({ status: 200, allowed: false })
  })

  it('names of templates that are properties of every object, or paths', async () => {
    for (const name of ['__proto__', 'constructor', 'toString', '../config', 'sidecar/../x', '{{ .Values }}']) {
      const answer = await annotated({ 'inject.istio.io/templates': name })
      expect([answer.allowed, answer.patch], name).to.deep.equal([false, undefined])
    }
  })

  it('code and templates in what a pod says: none is run, and none becomes a field', async () => {
    const texts = [
      '{{ env "PATH" "" }}{{ fail "x" }}',
      '${jndi:ldap://x}',
      '!!js/function "function () { process.exit(1) }"',
      '"\n    securityContext: {privileged: true}\n    x: "',
      '---\nspec: {hostNetwork: true, hostPID: true}',
    ]
    for (const text of texts) {
      const answers = [
        await inject(podWith({ annotations: { x: text, 'kubectl.kubernetes.io/last-applied-configuration': text } })),
        await inject(podWith({ labels: { app: text, version: text } })),
        await inject(podWith({}, { containers: [{ name: 'app', image: text, env: [{ name: 'A', value: text }] }] })),
      ]
      for (const { patch = [], status } of answers) {
        expect(status).to.equal(200)
        const written = JSON.stringify(patch)
        expect(written).not.to.match(/"(hostNetwork|hostPID)":true|"privileged":true/)
        expect(patch.map(({ path }) => path)).not.to.include.members(['/spec/hostNetwork', '/spec/hostPID'])
      }
      expect(isInjected(answers[0] as ReviewAnswer)).to.equal(true)
    }
    expect(service.pid).to.be.greaterThan(0)
  })
})

describe('validation withstands', () => {
  const service = new Service()
  before(() => service.start())
  after(() => service.dispose())

  it('code of those who make objects: it is not run', async () => {
    const lua = 'while true do end\nos.execute("exit 1")'
    const patch = (typed: object) => ({
      configPatches: [
        { applyTo: 'HTTP_FILTER', match: { context: 'GATEWAY' }, patch: { operation: 'INSERT_BEFORE', value: { name: 'x', typed_config: typed } } },
      ],
    })
    const reviewed = (spec: object) => {
      const object = { apiVersion: 'networking.mesh.io/v1alpha3', kind: 'EnvoyFilter', metadata: { name: 'x', namespace: 'shop' }, spec }
      const kind = { group: 'networking.mesh.io', version: 'v1alpha3', kind: 'EnvoyFilter' }
      const request = { uid: '1', kind, operation: 'CREATE', namespace: 'shop', name: 'x', object }
      return postReview(service.httpPort, '/validate', JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }))
    }
    const script = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua', default_source_code: { inline_string: lua } }
    expect(await reviewed(patch(script))).to.deep.include({ status: 200, allowed: true })
    // A version of proxies is a pattern: it is compiled as RE2 would, and never matched here.
    for (const proxyVersion of ['(a+)+$', `^${'(a|a)*'.repeat(50)}$`, '(?=a)']) {
      const spec = patch(script)
      const [first] = spec.configPatches
      const answer = await reviewed({ configPatches: [{ ...first, match: { context: 'GATEWAY', proxy: { proxyVersion } } }] })
      expect([answer.status, answer.allowed], proxyVersion).to.deep.equal([200, proxyVersion !== '(?=a)'])
    }
  })
})
