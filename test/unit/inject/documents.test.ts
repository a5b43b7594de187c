import { expect } from 'chai'
import fc from 'fast-check'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { readDocuments } from '../../../src/config/yaml-documents.ts'
import { injectDocuments } from '../../../src/inject/documents.ts'
import { injectionSettings } from '../../harness/injection.ts'
import { runs } from '../../harness/seed.ts'

const settings = injectionSettings()
const inject = (text: string) => injectDocuments(text, 'shop', settings)
const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'app', image: 'x' }] } }
const workload = (apiVersion: string, kind: string, more: object = {}) => ({
  apiVersion,
  kind,
  metadata: { name: 'web' },
  spec: { template, ...more },
})
type Document = { readonly [field: string]: Document } & { readonly length: number }
const containersAt = (text: string, ...path: string[]) =>
  (path.reduce((value, field) => value[field] as Document, parse(text) as Document).containers as unknown as { name: string }[]).map(
    ({ name }) => name,
  )
const variable = (text: string, name: string) => new RegExp(`name: ${name}\\n\\s+value: (\\S+)`).exec(text)?.[1]

describe('injection of documents', () => {
  it('writes all documents as a List in JSON where that is asked for, those without pods too', () => {
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } }
    const given = `${stringify(service)}---\n# nothing\n---\n${stringify(workload('apps/v1', 'Deployment'))}`
    const { kind, items } = JSON.parse(injectDocuments(given, 'shop', settings, true).text)
    expect([kind, items.length, items[0]]).to.deep.equal(['List', 2, service])
    expect(items[1]).to.deep.equal(parseAllDocuments(inject(given).text).at(-1)?.toJS())
    const inexact = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, generation: 9007199254740993}\n'
    expect(() => injectDocuments(inexact, 'shop', settings, true)).to.throw('document 1: metadata.generation: whole numbers beyond 2^53')
  })

  it('adds the sidecar to each kind with pods', () => {
    for (const [apiVersion, kind] of Object.entries({ Deployment: 0, StatefulSet: 0, DaemonSet: 0, ReplicaSet: 0 }).map(([kind]) => [
      'apps/v1',
      kind,
    ]))
      expect(containersAt(inject(stringify(workload(apiVersion as string, kind as string))).text, 'spec', 'template', 'spec'), kind).to.deep.equal([
        ...['app', 'mesh-proxy'],
      ])
    expect(containersAt(inject(stringify(workload('batch/v1', 'Job'))).text, 'spec', 'template', 'spec')).to.include('mesh-proxy')
    expect(containersAt(inject(stringify(workload('v1', 'ReplicationController'))).text, 'spec', 'template', 'spec')).to.include('mesh-proxy')
    const cronJob = {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'night' },
      spec: { schedule: '0 0 * * *', jobTemplate: { spec: { template } } },
    }
    const { text } = inject(stringify(cronJob))
    expect(containersAt(text, 'spec', 'jobTemplate', 'spec', 'template', 'spec')).to.include('mesh-proxy')
    expect(variable(text, 'MESH_META_OWNER')).to.equal('kubernetes://apis/batch/v1/namespaces/shop/cronjobs/night')
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'one', namespace: 'other' }, spec: template.spec }
    expect(variable(inject(stringify(pod)).text, 'MESH_META_OWNER')).to.equal('kubernetes://apis/v1/namespaces/other/pods/one')
  })

  it('leaves other documents as they were written, and kinds of others with these names', () => {
    const others = [
      '# a comment\napiVersion: v1\nkind: Service\nmetadata: {name:   web}\n',
      'apiVersion: example.com/v1\nkind: Deployment\nspec: {}\n',
      'just: text\n',
    ]
    const { text, notices } = inject(others.join('---\n'))
    expect(text).to.equal(others.join('---\n'))
    expect(notices).to.deep.equal([])
    const mixed = inject(`${others[0]}---\n${stringify(workload('apps/v1', 'Deployment'))}---\n${others[2]}`).text
    expect(mixed.startsWith(`${others[0]}---\n`)).to.equal(true)
    expect(mixed.endsWith(`---\n${others[2]}`)).to.equal(true)
    expect(parseAllDocuments(mixed)).to.have.length(3)
  })

  it('says of pods that get none why', () => {
    const skipped = workload('apps/v1', 'Deployment', {
      template: { ...template, metadata: { annotations: { 'sidecar.istio.io/inject': 'false' } } },
    })
    const text = stringify(skipped)
    expect(inject(text)).to.deep.equal({
      text,
      notices: ['document 1 (Deployment shop/web) gets no sidecar: annotation sidecar.istio.io/inject forbids it'],
    })
  })

  it('leaves out pods whose label keeps webhooks from being asked', () => {
    for (const key of ['sidecar.mesh.io/inject', 'sidecar.istio.io/inject']) {
      const left = stringify({ ...workload('apps/v1', 'Deployment'), spec: { template: { ...template, metadata: { labels: { [key]: 'false' } } } } })
      const { text, notices } = inject(left)
      expect([text, notices]).to.deep.equal([
        left,
        [`document 1 (Deployment shop/web) gets no sidecar: its label ${key} is "false", so that no webhook is asked about it`],
      ])
    }
    const asked = { apiVersion: 'v1', kind: 'Pod', ...template, metadata: { name: 'web', labels: { 'sidecar.mesh.io/inject': 'true' } } }
    expect(inject(stringify(asked)).notices).to.deep.equal([])
  })

  it('names labels of the mesh on pods that are misspelt or say nothing', () => {
    const labelled = (labels: Readonly<Record<string, string>>) =>
      inject(stringify({ ...workload('apps/v1', 'Deployment'), spec: { template: { ...template, metadata: { labels } } } })).notices
    expect(labelled({ 'sidecar.istio.io/injct': 'true', 'sidecar.istio.io/inject': 'maybe', app: 'web' })).to.deep.equal([
      'document 1 (Deployment shop/web): label sidecar.istio.io/injct: it is no label of the mesh, so it has no effect; did you mean "sidecar.istio.io/inject"?',
      'document 1 (Deployment shop/web): label sidecar.istio.io/inject: "maybe" is neither "true" nor "false", so it has no effect on injection',
    ])
  })

  it('takes lists, in YAML and JSON, and gives JSON for JSON', () => {
    const list = {
      apiVersion: 'v1',
      kind: 'List',
      items: [workload('apps/v1', 'Deployment'), { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' } }],
    }
    const { text } = inject(JSON.stringify(list))
    const made = JSON.parse(text) as { items: [{ spec: { template: { spec: { containers: { name: string }[] } } } }, object] }
    expect(made.items[0].spec.template.spec.containers.map(({ name }) => name)).to.deep.equal(['app', 'mesh-proxy'])
    expect(made.items[1]).to.deep.equal(list.items[1])
    expect(parse(inject(stringify(list)).text)).to.deep.equal(made)
  })

  it('reads and writes flags, numbers and texts as the orchestrator does', () => {
    const pod = (more: string) => `apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: app, image: x}], ${more}}\n`
    const { spec } = parse(inject(pod('hostPID: yes, volumes: [{name: v, secret: {secretName: s, defaultMode: 0400}}]')).text)
    expect([spec.hostPID, spec.volumes.find(({ name }: { name: string }) => name === 'v').secret.defaultMode]).to.deep.equal([true, 0o400])
    const odd = fc.oneof(
      fc.constantFrom('yes', 'n', 'off', '0644', '1_000', '0b1', '12:30', '~', '<<', '=', '2001-01-01', '.5', '1e3', '\u0085'),
      fc.string(),
    )
    fc.assert(
      fc.property(fc.array(odd, { minLength: 1, maxLength: 5 }), (command) => {
        const { text } = inject(
          stringify({ ...parse(pod('')), spec: { containers: [{ name: 'app', image: 'x', command }] } }, { compat: 'yaml-1.1' }),
        )
        const [document] = readDocuments(text) as [{ value: { spec: { containers: object[] } } }]
        expect(document.value.spec.containers[0]).to.deep.include({ command })
      }),
      { numRuns: runs(200) },
    )
  })

  it('refuses whole numbers that would be written as others, and leaves those of documents without pods', () => {
    const pod = (seconds: string) =>
      `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  terminationGracePeriodSeconds: ${seconds}\n  containers: [{name: app, image: x}]\n`
    expect(inject(pod('9007199254740991')).text).to.include('terminationGracePeriodSeconds: 9007199254740991\n')
    for (const [seconds, read] of [
      ['9007199254740993', '9007199254740992'],
      ['-9223372036854775807', '-9223372036854776000'],
    ] as const)
      expect(() => inject(pod(seconds))).to.throw(
        `document 1 (Pod shop/web): spec.terminationGracePeriodSeconds: whole numbers beyond 2^53 are not kept as they are; this one would be ${read}`,
      )
    const other = 'apiVersion: example.com/v1\nkind: Counter\nspec: {count: 9007199254740993}\n'
    expect(inject(other).text).to.equal(other)
  })

  it('takes line ends of Windows', () => {
    const text = `${stringify(workload('apps/v1', 'Deployment'))}---\nkind: Other\n`
    expect(inject(text.replaceAll('\n', '\r\n')).text.replaceAll('\r', '')).to.equal(inject(text).text)
  })

  it('is the same for its own result', () => {
    const once = inject(stringify(workload('apps/v1', 'Deployment'))).text
    expect(parse(inject(once).text)).to.deep.equal(parse(once))
  })

  it('names the document and the reason of what cannot be injected', () => {
    expect(() => inject('apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: n}\nspec: {containers: []}')).to.throw(
      /^document 1 \(Pod \S+\/web\): metadata\.namespace: expected text, got boolean false; y, n, yes, no/,
    )
    const document = (more: object) => `a: 1\n---\n${stringify(workload('apps/v1', 'Deployment', more))}`
    expect(() => inject(document({ template: null }))).to.throw('document 2 (Deployment shop/web): has no spec.template')
    expect(() => inject(document({ template: { spec: { containers: 1 } } }))).to.throw(
      'document 2 (Deployment shop/web): spec.containers: expected a list',
    )
    const annotated = { ...template, metadata: { annotations: { 'sidecar.mesh.io/logLevel': 'loud' } } }
    expect(() => inject(document({ template: annotated }))).to.throw(
      'document 2 (Deployment shop/web): annotation sidecar.mesh.io/logLevel: "loud": is not a level',
    )
    expect(() => inject('a: 1\n---\nb: [')).to.throw(/^document 2: not YAML, line 3/)
  })
})
