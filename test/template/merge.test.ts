/** Patches of pods: our result is that of the orchestrator's own strategic merge. */
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'chai'
import fc from 'fast-check'
import { injectPod } from '../../src/inject/inject-pod.ts'
import { podSpecFields } from '../../src/inject/pod-fields.ts'
import { type MergedFields, podFields } from '../../src/inject/pod-merge-keys.ts'
import { mergePod } from '../../src/inject/strategic-merge.ts'
import { injectionConfiguration, injectionSettings } from '../harness/injection.ts'
import { runs, seed } from '../harness/seed.ts'
import { askGo, type MergeCase } from './ask-go.ts'
import { mergeCase } from './pods.ts'

function ours({ pod, patch }: MergeCase): { merged?: unknown; error?: string } {
  try {
    return { merged: mergePod(pod as object, patch as object) }
  } catch (error) {
    return { error: (error as Error).message }
  }
}

/** The cases in which our result is another one, with both results. */
function differences(cases: readonly MergeCase[]): unknown[] {
  const answers = askGo(cases)
  return cases.flatMap((each, at) => {
    const [go, we] = [answers[at] as (typeof answers)[0], ours(each)]
    const isSame = go.error === undefined ? isDeepStrictEqual(we.merged, go.merged) : we.error !== undefined
    return isSame ? [] : [{ ...each, go, we }]
  })
}

const container = (name: string, more: object = {}) => ({ name, image: name, ...more })
const pod = {
  metadata: { name: 'web', labels: { app: 'web' }, finalizers: ['a', 'b'], ownerReferences: [{ uid: '1', name: 'x' }] },
  spec: {
    containers: [
      container('app', {
        env: [{ name: 'A', value: '1' }],
        ports: [
          { containerPort: 53, protocol: 'TCP' },
          { containerPort: 53, protocol: 'UDP' },
        ],
      }),
      container('log'),
    ],
    volumes: [{ name: 'data', emptyDir: { medium: 'Memory' } }],
    tolerations: [{ key: 'a' }],
    nodeSelector: { a: '1' },
  },
}
const patches: Readonly<Record<string, unknown>> = {
  'adds containers': { spec: { containers: [container('proxy'), container('app', { env: [{ name: 'B' }] })], initContainers: [container('init')] } },
  'has a port that two containers share': { spec: { containers: [{ name: 'app', ports: [{ containerPort: 53, name: 'dns' }] }] } },
  'deletes an element': { spec: { containers: [{ name: 'log', $patch: 'delete' }], volumes: [{ name: 'none', $patch: 'delete' }] } },
  'replaces a list': { spec: { containers: [{ $patch: 'replace' }, container('only')] } },
  'replaces an object': { spec: { nodeSelector: { $patch: 'replace', b: '2' } }, metadata: { labels: { $patch: 'delete' } } },
  'removes fields': { spec: { tolerations: null, nodeSelector: { a: null, c: '3' }, none: null } },
  'retains keys': { spec: { volumes: [{ name: 'data', $retainKeys: ['name', 'hostPath'], hostPath: { path: '/x' } }] } },
  'retains keys that it does not list': { spec: { volumes: [{ name: 'data', $retainKeys: ['name'], hostPath: { path: '/x' } }] } },
  'sets an order': { spec: { '$setElementOrder/containers': [{ name: 'log' }, { name: 'new' }, { name: 'app' }], containers: [container('new')] } },
  'sets an order that is not its own': {
    spec: { '$setElementOrder/containers': [{ name: 'app' }, { name: 'log' }], containers: [container('log'), container('app')] },
  },
  'deletes scalars': { metadata: { '$deleteFromPrimitiveList/finalizers': ['a', 'z'] } },
  'adds scalars that are there': { metadata: { finalizers: ['b', 'c', 'b'] } },
  'changes the type of a field': { spec: { tolerations: { a: 1 }, nodeSelector: [1], hostNetwork: {} } },
  'has nulls in what it adds': { spec: { affinity: { a: null, b: [{ c: null }] }, containers: [container('n', { securityContext: { a: null } })] } },
  'has an element without its key': { spec: { containers: [{ image: 'x' }] } },
  'has scalars among objects': { spec: { containers: [1] } },
  'asks for what there is not': { spec: { $patch: 'merge' } },
  'merges owners': { metadata: { ownerReferences: [{ uid: '2' }, { uid: '1', kind: 'Y' }] } },
  'replaces a list, and deletes elements of another': {
    spec: {
      containers: [{ $patch: 'replace' }, container('z')],
      volumes: [
        { name: 'data', $patch: 'delete' },
        { name: 'new', emptyDir: {} },
      ],
    },
  },
  'removes lists and labels': { metadata: { labels: null }, spec: { volumes: null, initContainers: null } },
  'is empty': {},
  'is empty in its lists': { spec: { containers: [], volumes: [] } },
}

describe('the merge of a pod and a patch is that of the orchestrator', () => {
  for (const [what, patch] of Object.entries(patches)) it(`when the patch ${what}`, () => expect(differences([{ pod, patch }])).to.deep.equal([]))

  it('when the patch is the output of a template that injects', () => {
    // A pod with these is none.
    const { 'changes the type of a field': _, ...usual } = patches
    // Each port once: what the user's containers set is merged once more (docs/injection.md, N8).
    const { containers, ...rest } = pod.spec
    const given = { ...pod, spec: { ...rest, containers: containers.map((each) => ({ ...each, ports: [] })) } }
    const answers = askGo(Object.values(usual).map((patch) => ({ pod: given, patch })))
    for (const [at, [what, patch]] of Object.entries(usual).entries()) {
      const settings = injectionSettings({
        configuration: injectionConfiguration({ templates: { sidecar: JSON.stringify(patch) } }),
        setsFsGroup: false,
      })
      const inject = () => injectPod({ pod: given, namespace: 'shop' }, settings) as { pod: { spec: unknown; metadata: { labels?: unknown } } }
      const { merged, error } = answers[at] as { merged?: { spec: unknown; metadata: { labels?: unknown } }; error?: string }
      if (error !== undefined) expect(inject, what).to.throw(/template sidecar: its output/)
      else {
        const injected = inject().pod
        expect([injected.spec, injected.metadata.labels], what).to.deep.equal([merged?.spec, merged?.metadata.labels])
      }
    }
  })

  it('for pods and patches at random', () => {
    expect(differences(fc.sample(mergeCase, { numRuns: runs(5000), seed })).slice(0, 1)).to.deep.equal([])
  })

  it('knows the same fields of specifications', () => {
    expect([...podSpecFields].sort()).to.deep.equal(askGo([{ specFields: true }])[0]?.keys?.toSorted())
  })

  it('by the same keys', () => {
    const [answer] = askGo([{ keys: true }])
    const listed: string[] = []
    const list = (fields: MergedFields, path: string): void => {
      for (const [name, { key, isMerged, fields: inner }] of fields) {
        if (key !== undefined || isMerged) listed.push(`${path}${name} ${key ?? ''}`)
        if (inner) list(inner, `${path}${name}.`)
      }
    }
    list(podFields, '')
    const published = (answer?.keys ?? []).map((line) => line.replace(/ (merge|merge,retainKeys) /, ' '))
    expect(listed.sort()).to.deep.equal(published.sort())
  })
})
