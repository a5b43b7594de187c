/** Reviews of nobody's objects, on which the webhooks decide before others come (docs/operation.md, W2). */
import { expect } from 'chai'
import { stringify } from 'yaml'
import { handlerMakers } from '../../actors/discovery/webhooks/handlers.ts'
import { podReview, routeReview } from '../../actors/discovery/webhooks/rehearsal.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { WebhooksConfig } from '../../protocols/messages/admission.ts'
import { decideAdmission } from '../../src/config/admitted.ts'
import { readFeatures } from '../../src/config/features.ts'
import { PatternChecks } from '../../src/config/patterns.ts'
import { decidePod } from '../../src/inject/admit-pod.ts'
import { defaultConfig, defaultValues } from '../../src/inject/default-template.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import { readReview } from '../../src/orchestrator/admission-review.ts'
import { injectionSettings } from '../harness/injection.ts'
import { until } from '../harness/until.ts'

describe('the rehearsal of webhooks', () => {
  /** Handlers on a thread with or without a port. */
  function handlers(port: WebhooksConfig['port']) {
    const lines: string[] = []
    const metrics = new MetricRegistry()
    const line = (text: string) => void lines.push(text)
    const { features } = readFeatures({ ENABLE_NATIVE_SIDECARS: 'false' })
    const context = {
      ...{ name: 'webhooks', metrics, note() {}, log: () => ({ debug: line, info: line, warn: line, error: line }) },
      config: { features, port, hasCluster: true, configuration: 'meshd-mesh-system', connections: 50 } satisfies WebhooksConfig,
    }
    const made = handlerMakers.flatMap((make) => make(context as never) ?? [])
    const configure = (config: object) => {
      const texts = { config: stringify(config), values: stringify(defaultValues) }
      for (const handler of made) handler.receive?.({ type: 'InjectorChanged', place: 'ConfigMap x', texts } as never)
    }
    const rehearsed = () => lines.filter((text) => text.includes('rehearsed')).map((text) => text.replace(/ in \d+ ms$/, ''))
    const counted = () => metrics.collect().flatMap(({ series }) => series.flatMap(({ values }) => values.filter((value) => value > 0)))
    const close = () => Promise.all(made.map((handler) => handler.close?.()))
    return { lines, configure, rehearsed, counted, close }
  }
  const port = { host: '127.0.0.1', port: 1, ownHosts: undefined }
  const route = "a review of nobody's VirtualService was rehearsed"
  const pod = "a review of nobody's Pod was rehearsed"

  it('is of objects that take the whole way', () => {
    const [pod, route] = [podReview, routeReview].map((body) => {
      const read = readReview(body)
      if ('fault' in read) throw new Error(read.fault)
      return read.request
    }) as [never, never]
    const { answer, outcome } = decidePod(pod, '', injectionSettings())
    expect([outcome, JSON.stringify(answer.patch).includes('mesh-init')]).to.deep.equal(['injected', true])
    const checks = { names: meshNames('mesh.io'), patterns: new PatternChecks(), optOuts: new Set<never>() }
    expect(decideAdmission(route, checks).answer).to.deep.equal({ allowed: true, warnings: [] })
  })

  it('comes before others ask, once, when the first configuration is in force, and nothing counts it', async () => {
    const { lines, configure, rehearsed, counted, close } = handlers(port)
    await until('the route', () => rehearsed().includes(route))
    configure({ ...defaultConfig, templates: { sidecar: '{{ fail "refused" }}' } })
    await until('the pod', () => rehearsed().includes(pod))
    configure(defaultConfig)
    await until('the second configuration', () => lines.filter((text) => text.startsWith('pods are injected by')).length === 2)
    expect(rehearsed()).to.deep.equal([route, pod])
    expect(lines.filter((text) => text.includes('refused'))).to.deep.equal([])
    expect(counted()).to.deep.equal([])
    await close()
  })

  it('is left out on a thread that the first review has started', async () => {
    const { lines, configure, rehearsed, close } = handlers(undefined)
    for (const [index, policy] of ['enabled', 'disabled'].entries()) {
      configure({ ...defaultConfig, policy })
      await until('the configuration', () => lines.filter((text) => text.startsWith('pods are injected by')).length > index)
    }
    expect(rehearsed()).to.deep.equal([])
    await close()
  })
})
