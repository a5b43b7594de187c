import { expect } from 'chai'
import { templateLibrary } from '../../../actors/discovery/webhooks/template-library.ts'
import { readInjectionConfiguration } from '../../../src/inject/configuration.ts'
import { cutInjector, injectorNames } from '../../../src/orchestrator/injector-object.ts'
import { injected, injectionConfiguration, injectionSettings, podWith } from '../../harness/injection.ts'

const read = (config: string, values = '') => readInjectionConfiguration({ config, values }, templateLibrary())
const errorOf = (config: string, values = '') => {
  const result = read(config, values)
  return 'error' in result ? result.error : 'none'
}

describe('the configuration of injection', () => {
  it('has defaults, and takes an old template as the one of sidecars', () => {
    const result = read('template: "spec: {}"\n')
    if ('error' in result) throw new Error(result.error)
    const { policy, defaultTemplates, templates, aliases, neverInjectSelector, alwaysInjectSelector, injectedAnnotations, values } =
      result.configuration
    expect({ policy, defaultTemplates, templates: [...templates.keys()] }).to.deep.equal({
      policy: 'enabled',
      defaultTemplates: ['sidecar'],
      templates: ['sidecar'],
    })
    expect({ aliases, neverInjectSelector, alwaysInjectSelector, injectedAnnotations, values }).to.deep.equal({
      ...{ aliases: {}, neverInjectSelector: [], alwaysInjectSelector: [], injectedAnnotations: {}, values: {} },
    })
  })

  it('knows the functions of sprig in templates, without those that would see the process', () => {
    const template =
      'metadata: {labels: {a: "{{ .Revision | default "canary" | upper | trunc 3 }}", b: "{{ ternary 1 2 (semverCompare ">=1.2" "1.10.0") }}"}}'
    const pod = injected(podWith(), injectionSettings({ configuration: injectionConfiguration({ templates: { sidecar: template } }) }))
    expect(pod.metadata?.labels).to.include({ a: 'CAN', b: '1' })
    const secret = injectionConfiguration({ templates: { sidecar: 'metadata: {labels: {a: "{{ expandenv "$HOME" }}"}}' } })
    expect(() => injected(podWith(), injectionSettings({ configuration: secret }))).to.throw(
      'templates do not see the environment of the control plane',
    )
  })

  it('names key and reason of what cannot be used', () => {
    expect(errorOf('policy: [')).to.match(/^config: not YAML, line 1/)
    expect(errorOf('- a')).to.equal('config: expected a mapping')
    expect(errorOf('a: 1\n---\nb: 1')).to.equal('config: holds more than one document')
    expect(errorOf('templates: {sidecar: 1}')).to.equal(
      'config: field templates[sidecar]: expected text, got number 1; a number is a text only in quotes',
    )
    expect(errorOf('templates: {"a b": x}')).to.equal('config: "a b" is not a name of a template'.replace('config: ', 'config: field templates: '))
    expect(errorOf('templates: {sidecar: "a\\n{{ .Spec"}')).to.match(/^config: field templates: sidecar: line 2: /)
    expect(errorOf('templates: {sidecar: "{{ nonsense 1 }}"}')).to.match(/^config: field templates: sidecar: line 1: .*nonsense/)
    expect(errorOf('neverInjectSelector: [{matchExpressions: [{key: a, operator: Near}]}]')).to.match(/^config: field neverInjectSelector\[0\]/)
    expect(errorOf('{}', 'global: [')).to.match(/^values: not YAML/)
    expect(errorOf('{}', '[]')).to.equal('values: expected a mapping')
    expect(errorOf(`policy: ${'x'.repeat(2 * 1024 * 1024)}`)).to.match(/^config: longer than/)
  })

  it('warns of a policy that is none, and of unknown fields', () => {
    const result = read('policy: "on"\nplicy: enabled\n')
    if ('error' in result) throw new Error(result.error)
    expect(result.warnings.join('\n'))
      .to.match(/plicy/)
      .and.match(/policy: "on" is neither enabled nor disabled/)
  })

  it('is in a ConfigMap whose name has the revision', () => {
    expect([injectorNames(''), injectorNames('default'), injectorNames('canary')]).to.deep.equal([
      ['mesh-sidecar-injector', 'istio-sidecar-injector'],
      ['mesh-sidecar-injector', 'istio-sidecar-injector'],
      ['mesh-sidecar-injector-canary', 'istio-sidecar-injector-canary'],
    ])
    expect(cutInjector({ data: { config: 'a', values: 'b' } })).to.deep.equal({ object: { config: 'a', values: 'b' }, faults: [] })
    expect(cutInjector({ data: { values: 'b' } }).faults).to.deep.equal([{ path: 'data.config', reason: 'required, but missing' }])
    expect(cutInjector({ data: { config: 1 } }).object).to.equal(undefined)
  })
})
