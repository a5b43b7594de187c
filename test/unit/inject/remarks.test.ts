import { expect } from 'chai'
import { stringify } from 'yaml'
import { decidePod } from '../../../src/inject/admit-pod.ts'
import { defaultConfig } from '../../../src/inject/default-template.ts'
import { injectDocuments } from '../../../src/inject/documents.ts'
import { injectPod } from '../../../src/inject/inject-pod.ts'
import { injectionConfiguration, injectionSettings, podWith } from '../../harness/injection.ts'

const settingsWith = (template: string) =>
  injectionSettings({
    configuration: injectionConfiguration({ templates: { ...defaultConfig.templates, own: template }, defaultTemplates: ['sidecar', 'own'] }),
  })
const annotated = (text: string, key = 'proxy.istio.io/config') => podWith({ annotations: { [key]: text } })
const remarksOf = (pod: object, settings = injectionSettings()) => {
  const result = injectPod({ pod, namespace: 'shop' }, settings)
  if ('skipped' in result) throw new Error(result.skipped)
  return result.remarks
}
const unknown = 'annotation proxy.istio.io/config: field conccurrency: unknown field, left out; did you mean "concurrency"?'
const misspelt = 'template own: its output has the unknown field spec.conntainers; did you mean "containers"?'

describe('what has no effect in a pod that is injected', () => {
  it('is unknown fields of the settings of its proxy, in the spelling of the annotation, and those without effect', () => {
    expect(remarksOf(annotated('conccurrency: 3')).pod).to.deep.equal([unknown])
    expect(remarksOf(annotated('concurrency: 3')).pod).to.deep.equal([])
    expect(remarksOf(annotated('gatewayTopology: {numTrustedProxy: 1}', 'proxy.mesh.io/config')).pod).to.deep.equal([
      'annotation proxy.mesh.io/config: field gatewayTopology.numTrustedProxy: unknown field, left out; did you mean "numTrustedProxies"?',
    ])
    expect(remarksOf(annotated('statNameLength: 3')).pod[0]).to.contain('field statNameLength: has no effect')
    const many = stringify(Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`x${index}`, 1])))
    expect(remarksOf(annotated(many)).pod).to.have.lengthOf(10)
  })

  it('is unknown fields in the output of templates, at the top and in the specification, without directives', () => {
    expect(remarksOf(podWith(), settingsWith('spec: {conntainers: [{name: a}]}')).templates).to.deep.equal([misspelt])
    expect(remarksOf(podWith(), settingsWith('metdata: {labels: {a: b}}')).templates).to.deep.equal([
      'template own: its output has the unknown field metdata; did you mean "metadata"?',
    ])
    expect(remarksOf(podWith(), settingsWith('spec: {$setElementOrder/containers: [], hostAliases: [], priority: 1}')).templates).to.deep.equal([])
    expect(remarksOf(podWith())).to.deep.equal({ pod: [], templates: [] })
  })

  it('is told by the command, of each object, and of a template once', () => {
    const pods = [annotated('conccurrency: 3'), podWith()].map((pod) => stringify(pod)).join('---\n')
    expect(injectDocuments(pods, 'shop', settingsWith('spec: {conntainers: [{name: a}]}')).notices).to.deep.equal([
      `document 1 (Pod shop/web): ${unknown}`,
      misspelt,
    ])
  })

  it('is a warning of the answer where the pod says it, and for the log of the webhook', () => {
    const review = (object: object) =>
      decidePod(
        {
          uid: '1',
          kind: { group: '', version: 'v1', kind: 'Pod' },
          namespace: 'shop',
          name: 'web',
          operation: 'CREATE',
          subResource: '',
          object,
        } as never,
        '',
        settingsWith('spec: {conntainers: [{name: a}]}'),
      )
    const told = review(annotated('conccurrency: 3'))
    expect([told.outcome, told.answer.warnings, told.remarks]).to.deep.equal(['injected', [unknown], { pod: [unknown], templates: [misspelt] }])
    expect(review(podWith()).answer).not.to.have.property('warnings')
  })
})
