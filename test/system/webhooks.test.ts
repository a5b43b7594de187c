/** Webhooks of a service without a cluster, at its HTTP address (docs/operation.md, W1 to W6). */
import { expect } from 'chai'
import { postReview, type Reviewed, reviewOf } from '../harness/reviews.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const gateway = { servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }] }

describe('webhooks without a cluster', () => {
  const service = new Service()
  before(() => service.start())
  after(() => service.dispose())

  const post = (body: string | Uint8Array, path = '/validate', type = 'application/json') => postReview(service.httpPort, path, body, type)
  const review = (reviewed: Reviewed, path = '/validate') => post(reviewOf(reviewed), path)

  it('have no thread before somebody asks', async () => {
    const actors = await service.debug<{ name: string }[]>('actorsz')
    expect(actors.map(({ name }) => name)).not.to.include('webhooks')
  })

  it('answer reviews of both versions, at both paths, with their uid', async () => {
    for (const as of ['v1', 'v1beta1'] as const)
      for (const path of ['/validate', '/admitpilot', '/validate?timeout=10s']) {
        const valid = await review({ kind: 'Gateway', spec: gateway, as, uid: `valid-${as}` }, path)
        expect(valid).to.deep.include({ status: 200, apiVersion: `admission.k8s.io/${as}`, uid: `valid-${as}`, allowed: true })
        const invalid = await review({ kind: 'Gateway', spec: {}, as, group: 'networking.istio.io', version: 'v1alpha3' }, path)
        expect(invalid).to.deep.include({ allowed: false, message: 'configuration is invalid: spec.servers: required, but missing' })
      }
  })

  it('refuse what is no review with the status that says why', async () => {
    expect(await post('')).to.deep.include({ status: 400, body: 'the request has no body' })
    expect(await post('', '/validate', 'text/plain')).to.deep.include({ status: 400 })
    expect(await post('{}', '/validate', 'text/plain')).to.deep.include({ status: 415, body: 'the content type must be application/json' })
    expect(await post('{}', '/validate', 'application/json; charset=utf-8')).to.deep.include({ status: 200, allowed: false, uid: '' })
    expect(await post(`"${'x'.repeat(9_000_000)}"`)).to.deep.include({ status: 413 })
    expect(await post('{"secret": hunter2')).to.deep.include({ allowed: false, message: 'error decoding the review: it is no JSON' })
    expect((await fetch(`http://127.0.0.1:${service.httpPort}/validate`)).status).to.equal(405)
    expect((await post('{}', '/validate/more')).status).to.equal(404)
  })

  it('answer a large review as a small one', async () => {
    const servers = Array.from({ length: 2000 }, (_, at) => ({
      port: { number: 80, name: `http-${at}`, protocol: 'HTTP' },
      hosts: [`h${at}.example`],
    }))
    expect(await review({ kind: 'Gateway', spec: { servers }, uid: 'large' })).to.deep.include({ uid: 'large', allowed: true })
    const [first, ...others] = servers
    const twice = await review({ kind: 'Gateway', spec: { servers: [first, first, ...others] }, uid: 'twice' })
    expect(twice).to.deep.include({ uid: 'twice', allowed: false })
    expect(twice.message).to.match(/^configuration is invalid: spec.servers\[1\].port.name: http-0 is used twice/)
  })

  it('deny patches that proxies would not be sent, with the field', async () => {
    const patched = (value: object) => ({
      kind: 'EnvoyFilter',
      version: 'v1alpha3',
      spec: { configPatches: [{ applyTo: 'CLUSTER', patch: { operation: 'MERGE', value } }] },
    })
    const denied = await review(patched({ connect_timeout: 'soon' }))
    expect(denied.message).to.equal(
      'configuration is invalid: spec.configPatches[0].patch.value.connect_timeout: expected a duration such as 5s, got string "soon"',
    )
    expect(await review(patched({ connect_timeout: '5s' }))).to.include({ status: 200, allowed: true })
  })

  it('count what they decide', async () => {
    await review({ kind: 'Nonsense', spec: {} })
    await review({ kind: 'Gateway', spec: {}, operation: 'DELETE' })
    // What the leader of another control plane tries is nobody's object.
    const metadata = { name: 'invalid-gateway', namespace: 'shop', annotations: { 'mesh.io/tried-configuration': 'meshd-other' } }
    const trial = { kind: 'Gateway', spec: {}, name: 'invalid-gateway', metadata, isDryRun: true }
    expect((await review(trial)).allowed).to.equal(true)
    await until('the counters to be there', async () => {
      const metrics = await service.metrics()
      const labels = 'group="networking.istio.io",version="v1alpha3",resource="gateways"'
      return [
        `galley_validation_failed{${labels},reason="invalid_resource"} 6`,
        'galley_validation_failed{group="networking.mesh.io",version="v1",resource="gateways",reason="unsupported_operation"} 1',
        'galley_validation_failed{group="",version="",resource="",reason="yaml_decode_error"} 2',
        'galley_validation_http_error{status="415"} 1',
        'galley_validation_http_error{status="413"} 1',
      ].every((series) => metrics.includes(`\n${series}\n`))
    })
    expect(await service.metrics()).to.match(/galley_validation_failed\{[^}]*reason="unknown_type"\} 1\n/)
  })
})

describe('webhooks that are switched off', () => {
  const service = new Service({ env: { VALIDATION_ENABLED: 'false' } })
  before(() => service.start())
  after(() => service.dispose())

  it('are not there', async () => {
    const { status } = await postReview(service.httpPort, '/validate', reviewOf({ kind: 'Gateway', spec: gateway }))
    expect(status).to.equal(404)
  })
})
