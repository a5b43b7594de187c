import { expect } from 'chai'
import { type DecisionRules, decideInjection, orchestratorNamespaces } from '../../../src/inject/decision.ts'
import { readPod } from '../../../src/inject/pod.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'

const names = meshNames('mesh.io')
const namespaces = ['shop', ...orchestratorNamespaces]
const keys = ['sidecar.mesh.io/inject', 'sidecar.istio.io/inject']
/** What an annotation says: asks, forbids, or nothing. */
const annotations = {
  ...{ y: true, yes: true, true: true, on: true, YES: true, True: true },
  ...{ false: false, no: false, off: false, n: false, enabled: false, ' true': false, '1': false },
  '': undefined,
} as const
const selectors = {
  none: [],
  empty: [{}],
  matching: [{ matchLabels: { app: 'web' } }],
  other: [{ matchLabels: { app: 'api' } }],
  second: [{ matchLabels: { app: 'api' } }, { matchExpressions: [{ key: 'app', operator: 'In' as const, values: ['web'] }] }],
}
const selects = (name: keyof typeof selectors) => name === 'matching' || name === 'second'

describe('the decision on injection', () => {
  const decide = (pod: object, namespace: string, rules: DecisionRules) => decideInjection(readPod(pod), namespace, rules, names).isInjected

  it('follows the first rule that applies, in all combinations', () => {
    let count = 0
    for (const hostNetwork of [undefined, false, true])
      for (const namespace of namespaces)
        for (const [value, asked] of [...Object.entries(annotations), [undefined, undefined] as const])
          for (const key of keys)
            for (const never of Object.keys(selectors) as (keyof typeof selectors)[])
              for (const always of Object.keys(selectors) as (keyof typeof selectors)[])
                for (const policy of ['enabled', 'disabled', 'Enabled', '']) {
                  const metadata = { labels: { app: 'web' }, ...(value !== undefined && { annotations: { [key]: value } }) }
                  const rules = { policy, neverInjectSelector: selectors[never], alwaysInjectSelector: selectors[always] }
                  const expected =
                    hostNetwork !== true &&
                    !orchestratorNamespaces.has(namespace) &&
                    (asked ?? (selects(never) ? false : selects(always) ? true : policy === 'enabled'))
                  const about = JSON.stringify({ hostNetwork, namespace, key, value, never, always, policy })
                  if (decide({ metadata, spec: { hostNetwork } }, namespace, rules) !== expected) expect.fail(about)
                  count++
                }
    expect(count).to.equal(3 * 5 * 15 * 2 * 5 * 5 * 4)
  })

  it('is not made by the label: only webhooks select by it', () => {
    const rules = { policy: 'enabled', neverInjectSelector: [], alwaysInjectSelector: [] }
    expect(decide({ metadata: { labels: { 'sidecar.mesh.io/inject': 'false' } } }, 'shop', rules)).to.equal(true)
    expect(decide({ metadata: { labels: { 'sidecar.mesh.io/inject': 'true' } } }, 'shop', { ...rules, policy: 'disabled' })).to.equal(false)
  })

  it('leaves out pods for Windows, whatever they ask for', () => {
    const rules = { policy: 'enabled', neverInjectSelector: [], alwaysInjectSelector: [] }
    const asked = { metadata: { annotations: { 'sidecar.mesh.io/inject': 'true' } } }
    for (const spec of [{ os: { name: 'windows' } }, { nodeSelector: { 'kubernetes.io/os': 'windows' } }])
      expect(decideInjection(readPod({ ...asked, spec }), 'shop', rules, names)).to.deep.equal({
        isInjected: false,
        reason: 'it runs on Windows (os, nodeSelector), and the agent does not',
      })
    for (const spec of [{ os: { name: 'linux' } }, { os: null, nodeSelector: { 'kubernetes.io/os': 'linux' } }])
      expect(decide({ ...asked, spec }, 'shop', rules)).to.equal(true)
  })

  it('takes the mesh form before the alias, and selects labels in both', () => {
    const rules = { policy: 'disabled', neverInjectSelector: [], alwaysInjectSelector: [{ matchLabels: { 'mesh.io/rev': 'a' } }] }
    expect(decide({ metadata: { annotations: { 'sidecar.mesh.io/inject': 'true', 'sidecar.istio.io/inject': 'false' } } }, 'shop', rules)).to.equal(
      true,
    )
    expect(decide({ metadata: { labels: { 'istio.io/rev': 'a' } } }, 'shop', rules)).to.equal(true)
  })
})
