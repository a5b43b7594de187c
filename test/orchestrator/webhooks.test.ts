/** Webhooks that a real API server calls, and their configuration, which the leader keeps (docs/operation.md, W1 to W8). */
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { manifest, programImages, settled } from '../harness/cluster-mesh.ts'
import { establish, meshDefinitions } from '../harness/mesh-definitions.ts'
import { until } from '../harness/until.ts'

const name = 'meshd-mesh-system'
const route = (weights: readonly number[]) => ({
  apiVersion: 'networking.mesh.io/v1',
  kind: 'VirtualService',
  metadata: { name: 'reviews', namespace: 'default' },
  spec: { hosts: ['reviews'], http: [{ route: weights.map((weight) => ({ destination: { host: 'reviews' }, weight })) }] },
})

/** Objects that are stored before anybody checks them, with a finalizer. */
const stored = ['changed', 'removed']
const invalid = (name: string) => ({ ...route([0, 0]), metadata: { name, namespace: 'default', finalizers: ['example.com/kept'] } })

describe('webhooks of a real API server', function () {
  this.timeout(400_000)
  let cluster: TestCluster

  /** The webhook of the configuration. */
  const kept = () => {
    const { webhooks } = JSON.parse(cluster.kubectl(['get', 'validatingwebhookconfiguration', name, '-o', 'json'])) as {
      webhooks: { failurePolicy: string; clientConfig: { caBundle?: string } }[]
    }
    return webhooks[0] as (typeof webhooks)[number]
  }
  const policyIs = (policy: string) => until(`the failure policy ${policy}`, () => kept().failurePolicy === policy)
  const refusal = (document: object): string => {
    try {
      cluster.apply(JSON.stringify(document))
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  const configure = () => cluster.apply(manifest('webhooks.yaml'))
  const replace = (path: string, value: unknown) =>
    cluster.kubectl(['patch', 'validatingwebhookconfiguration', name, '--type', 'json', '-p', JSON.stringify([{ op: 'replace', path, value }])])
  const page = (path: string, port = 8080) =>
    cluster.kubectl(['get', '--raw', `/api/v1/namespaces/mesh-system/services/http:meshd:${port}/proxy/${path}`])
  const scale = (replicas: number) => {
    cluster.kubectl(['scale', 'deployment', '-n', 'mesh-system', 'meshd', `--replicas=${replicas}`])
    if (replicas > 0) settled(cluster, 'mesh-system', 'meshd')
    else cluster.waitFor('delete', '-n', 'mesh-system', 'pod', '-l', 'app=meshd')
  }

  before(async () => {
    cluster = await TestCluster.start()
    programImages(cluster, '')
    const definitions = meshDefinitions()
    establish(cluster, ...['virtualservices', 'gateways', 'authorizationpolicies', 'envoyfilters'].map((plural) => definitions.get(plural) as string))
    cluster.apply(manifest('access.yaml'), manifest('discovery.yaml'))
    settled(cluster, 'mesh-system', 'meshd')
  })
  after(() => cluster?.dispose())

  it('are left alone before there is a configuration, and are not called', async () => {
    await until('the leader to look for it', () =>
      cluster
        .kubectl(['logs', '-n', 'mesh-system', 'deploy/meshd'])
        .includes('there is no ValidatingWebhookConfiguration meshd-mesh-system: nothing is kept'),
    )
    expect(refusal(route([-1]))).to.match(/weight/)
    for (const name of stored) expect(refusal(invalid(name))).to.equal('')
  })

  it('get certificates, and fail closed once they were seen to deny', async () => {
    configure()
    await policyIs('Fail')
    expect(kept().clientConfig.caBundle ?? '').not.to.equal('')
    expect(page('metrics', 15014)).to.match(/galley_validation_config_updates [2-9]\n/)
  })

  it('refuse what is invalid with the reasons, and show what has no effect', () => {
    expect(refusal(route([0, 0]))).to.include(
      'admission webhook "validation.mesh.io" denied the request: configuration is invalid: spec.http[0].route: the weights of several destinations may not all be 0',
    )
    expect(refusal(route([20, 80]))).to.equal('')
    const policy = {
      apiVersion: 'security.mesh.io/v1',
      kind: 'AuthorizationPolicy',
      metadata: { name: 'deny', namespace: 'default' },
      spec: { action: 'DENY' },
    }
    expect(refusal(policy)).to.include('configuration is invalid: spec')
    const patch = ['patch', 'virtualservice', 'reviews', '--type', 'merge', '-p', JSON.stringify({ spec: { hosts: ['*'] } })]
    expect(() => cluster.kubectl(patch)).to.throw('the host * is only allowed with gateways other than mesh')
    cluster.kubectl(['delete', 'virtualservice', 'reviews'])
  })

  it('let labels and finalizers of an invalid object be changed that is stored, with a warning, and let it go', () => {
    const change = (name: string, patch: object, ...more: string[]) =>
      cluster.kubectl(['patch', 'virtualservice', name, '--type', 'merge', '-p', JSON.stringify(patch), ...more])
    const fault = 'configuration is invalid: spec.http[0].route: the weights of several destinations may not all be 0'
    const warned = () => change('changed', { metadata: { labels: { team: 'shop' } } }, '--warnings-as-errors')
    expect(warned).to.throw(`Warning: allowed, since the stored object has the same spec: ${fault}`)
    expect(cluster.kubectl(['get', 'virtualservice', '-l', 'team=shop', '-o', 'name'])).to.match(/\/changed\n$/)
    expect(() => change('changed', { spec: { hosts: ['reviews', 'other'] } })).to.throw(`denied the request: ${fault}`)
    const freed = { metadata: { finalizers: null } }
    change('changed', freed)
    cluster.kubectl(['delete', 'virtualservice', 'changed'])
    cluster.kubectl(['delete', 'virtualservice', 'removed', '--wait=false'])
    change('removed', freed)
    cluster.waitFor('delete', 'virtualservice/removed')
  })

  it('tell why an object is denied that is too deep to be read', () => {
    const value = JSON.parse(`${'{"a":'.repeat(300)}1${'}'.repeat(300)}`)
    const deep = {
      apiVersion: 'networking.mesh.io/v1alpha3',
      kind: 'EnvoyFilter',
      metadata: { name: 'deep', namespace: 'default' },
      spec: { configPatches: [{ applyTo: 'CLUSTER', patch: { operation: 'MERGE', value } }] },
    }
    expect(refusal(deep)).to.include('denied the request: error decoding the review: it is nested deeper than 256 levels')
  })

  it('fail closed while nobody answers, and open when the leader has tried them three times in vain', async () => {
    scale(0)
    expect(refusal(route([1, 2]))).to.include('failed calling webhook "validation.mesh.io"')
    scale(1)
    await until('objects to be denied by the webhook again', () => refusal(route([0, 0])).includes('denied the request'))
    // A port on which nobody listens: the leader finds out.
    await policyIs('Fail')
    replace('/webhooks/0/clientConfig/service/port', 444)
    await policyIs('Ignore')
    expect(refusal(route([1, 2]))).to.equal('')
    cluster.kubectl(['delete', 'virtualservice', 'reviews'])
    const text = page('ready')
    expect(text).to.match(/ValidatingWebhookConfiguration meshd-mesh-system: invalid objects are not denied \(failurePolicy Ignore\)/)
    replace('/webhooks/0/clientConfig/service/port', 443)
    await policyIs('Fail')
  })

  it('are closed each by itself: one that was not seen to deny stays open, whatever others do', async () => {
    const found = JSON.parse(cluster.kubectl(['get', 'validatingwebhookconfiguration', name, '-o', 'json'])) as {
      webhooks: Record<string, unknown>[]
    }
    const [own] = found.webhooks
    const other = {
      ...{ ...own, name: 'rev.validation.mesh.io', failurePolicy: 'Fail' },
      objectSelector: { matchExpressions: [{ key: 'mesh.io/rev', operator: 'In', values: ['other'] }] },
    }
    const add = [{ op: 'add', path: '/webhooks/-', value: other }]
    cluster.kubectl(['patch', 'validatingwebhookconfiguration', name, '--type', 'json', '-p', JSON.stringify(add)])
    await until('the other one to be open', () => {
      const { webhooks } = JSON.parse(cluster.kubectl(['get', 'validatingwebhookconfiguration', name, '-o', 'json'])) as {
        webhooks: { failurePolicy: string }[]
      }
      return webhooks.map(({ failurePolicy }) => failurePolicy).join() === 'Fail,Ignore'
    })
    expect(page('ready')).to.match(/\(failurePolicy Ignore\): those of rev\.validation\.mesh\.io: /)
    cluster.kubectl(['patch', 'validatingwebhookconfiguration', name, '--type', 'json', '-p', '[{"op":"remove","path":"/webhooks/1"}]'])
  })

  it('get the certificates again that somebody has replaced, and deny with them', async () => {
    const { caBundle } = kept().clientConfig
    const other = Buffer.from(
      cluster.kubectl(['config', 'view', '--raw', '-o', 'jsonpath={.clusters[0].cluster.certificate-authority-data}']),
      'base64',
    )
    replace('/webhooks/0/clientConfig/caBundle', other.toString('base64'))
    await until('the certificates to be back', () => kept().clientConfig.caBundle === caBundle)
    await policyIs('Fail')
    expect(refusal(route([0, 0]))).to.include('denied the request')
  })
})
