import { expect } from 'chai'
import type { AdmissionRequest } from '../../../protocols/messages/admission.ts'
import { decideAdmission } from '../../../src/config/admitted.ts'
import { kinds } from '../../../src/config/kinds.ts'
import { PatternChecks } from '../../../src/config/patterns.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'

const names = meshNames('mesh.io')
const decide = (request: AdmissionRequest) => decideAdmission(request, { names, patterns: new PatternChecks(), optOuts: new Set() })

const request = (kind: string, spec: unknown, more: Partial<AdmissionRequest> = {}, document: object = {}): AdmissionRequest => {
  const group = more.kind?.group ?? `${kinds.get(kind)?.group ?? 'networking'}.mesh.io`
  const version = more.kind?.version ?? 'v1'
  return {
    uid: 'u',
    kind: { group, version, kind },
    resource: { group, version, resource: kinds.get(kind)?.plural ?? '' },
    ...{ subResource: '', name: 'x', namespace: 'shop', operation: 'CREATE', user: 'ann', isDryRun: false, oldObject: undefined },
    object: { apiVersion: `${group}/${version}`, kind, metadata: { name: 'x', namespace: 'shop' }, spec, ...document },
    ...more,
  }
}
const gateway = { servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }] }

describe('the decision on an object before it is stored', () => {
  for (const { name, group, versions, plural } of kinds.values())
    for (const domain of ['mesh.io', 'istio.io'])
      it(`knows ${name} of ${group}.${domain} in all its versions`, () => {
        for (const version of versions) {
          const { outcome, labels } = decide(request(name, {}, { kind: { group: `${group}.${domain}`, version, kind: name } }))
          expect(outcome).to.be.oneOf(['passed', 'invalid_resource'])
          expect(labels).to.deep.equal({ group: `${group}.${domain}`, version, resource: plural })
        }
      })

  it('allows other operations than CREATE and UPDATE, whatever the object is', () => {
    for (const operation of ['DELETE', 'CONNECT']) {
      const { outcome, answer } = decide(request('Gateway', {}, { operation, object: undefined }))
      expect([outcome, answer]).to.deep.equal(['unsupported_operation', { allowed: true }])
    }
  })

  it('denies an object of an unknown kind, group or version', () => {
    for (const kind of [
      { group: 'networking.mesh.io', version: 'v1', kind: 'Pod' },
      { group: 'apps', version: 'v1', kind: 'Gateway' },
      { group: 'networking.mesh.io', version: 'v7', kind: 'Gateway' },
    ]) {
      const { outcome, answer, labels } = decide(request(kind.kind, gateway, { kind }))
      expect([outcome, answer, labels]).to.deep.equal([
        'unknown_type',
        { allowed: false, code: 400, message: `unrecognized type ${kind.kind}` },
        undefined,
      ])
    }
  })

  it('tells the log of the object that is denied and why, but not of a dry run', () => {
    const spec = { servers: [] }
    const { answer, told } = decide(request('Gateway', spec))
    expect(answer.allowed).to.equal(false)
    expect(told).to.equal(`Gateway shop/x: ${answer.message}`)
    expect(decide(request('Gateway', spec, { isDryRun: true }))).to.deep.include({ answer, told: undefined })
    expect(decide(request('Gateway', spec, { object: undefined, name: '' })).told).to.match(/^Gateway shop\/: error decoding/)
    expect(decide(request('Gateway', gateway)).told).to.equal(undefined)
  })

  it('denies what is no object', () => {
    for (const object of [undefined, 'x', [1]]) {
      const { outcome, answer } = decide(request('Gateway', gateway, { object }))
      expect([outcome, answer.message]).to.deep.equal(['yaml_decode_error', 'error decoding configuration: the object is no mapping'])
    }
  })

  it('denies an invalid object with all its faults', () => {
    const { outcome, answer } = decide(request('Gateway', { servers: [{ port: { number: 80, name: 'http', protocol: 'HTTPS' }, hosts: [] }] }))
    expect(outcome).to.equal('invalid_resource')
    expect(answer).to.deep.equal({ allowed: false, code: 400, message: 'configuration is invalid: spec.servers[0].hosts: needs at least 1 entry' })
  })

  it('denies an unknown top-level field, which is looked for last', () => {
    const { answer } = decide(request('Gateway', gateway, {}, { spce: {} }))
    expect(answer.message).to.equal('unknown field "spce" on Gateway resource shop/x')
    expect(decide(request('Gateway', {}, {}, { spce: {} })).answer.message).to.match(/^configuration is invalid: spec.servers: required/)
  })

  it('allows a valid object, with warnings of what has no effect and of unknown fields within the spec', () => {
    expect(decide(request('Gateway', gateway)).answer).to.deep.equal({ allowed: true, warnings: [] })
    const { outcome, answer } = decide(request('Gateway', { servers: [{ ...gateway.servers[0], defaultEndpoint: 'x', ohter: 1 }] }))
    expect(outcome).to.equal('passed')
    expect(answer.warnings?.map((warning) => warning.slice(0, 40))).to.deep.equal([
      'spec.servers[0].ohter: unknown field, le',
      'spec.servers[0].defaultEndpoint: has no ',
    ])
  })

  it('warns of names of TLS beside the hosts of a VirtualService', () => {
    const tls = [{ match: [{ sniHosts: ['a.example', 'b.example'] }], route: [{ destination: { host: 'a' } }] }]
    expect(decide(request('VirtualService', { hosts: ['*.example'], tls })).answer.warnings).to.deep.equal([])
    expect(decide(request('VirtualService', { hosts: ['a.example'], tls })).answer.warnings).to.deep.equal([
      'spec.tls[0].match[0].sniHosts[1]: b.example is not among the hosts of the object, by which others find it',
    ])
  })

  it('warns of several hosts of a ServiceEntry that connections cannot be told apart by', () => {
    const warnings = (more: object) =>
      decide(request('ServiceEntry', { hosts: ['a.example', 'b.example'], ports: [{ number: 1, name: 't', protocol: 'TCP' }], ...more })).answer
        .warnings
    expect(warnings({ addresses: ['10.0.0.1'] })).to.deep.equal([])
    expect(warnings({})?.join()).to.match(/^spec.ports\[0\].protocol: several hosts without addresses need ports of HTTP or TLS/)
  })

  it('takes name and namespace from the request where the object has none yet', () => {
    const policy = (metadata: object) => decide(request('AuthorizationPolicy', {}, { name: '', operation: 'CREATE' }, { metadata })).answer
    expect(policy({ generateName: 'deny-' }).allowed).to.equal(true)
    expect(policy({}).message).to.equal('configuration is invalid: metadata.name: required, but missing')
  })

  it('checks an object for another control plane too', () => {
    const labels = { 'mesh.io/rev': 'canary' }
    expect(decide(request('Gateway', {}, {}, { metadata: { name: 'x', namespace: 'shop', labels } })).outcome).to.equal('invalid_resource')
  })

  it('allows a change that leaves spec and faults of a stored object as they are, and warns of them', () => {
    const spec = { servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: [] }] }
    const metadata = { name: 'x', namespace: 'shop', labels: {}, finalizers: ['example.com/kept'] }
    const oldObject = { ...(request('Gateway', spec, {}, { metadata }).object as object) }
    const update = (to: unknown, document: object = {}, more: Partial<AdmissionRequest> = {}) =>
      decide(request('Gateway', to, { operation: 'UPDATE', oldObject, ...more }, document))
    const reason = 'configuration is invalid: spec.servers[0].hosts: needs at least 1 entry'
    const allowed = { allowed: true, warnings: [`allowed, since the stored object has the same spec: ${reason}`] }
    for (const changed of [{ finalizers: [] }, { labels: { app: 'x' } }, { annotations: { note: 'x' } }])
      expect(update(spec, { metadata: { ...metadata, ...changed } })).to.deep.include({ outcome: 'passed', answer: allowed })
    // The order of fields says nothing.
    const [{ port, hosts }] = spec.servers as [(typeof spec.servers)[number]]
    expect(update({ servers: [{ hosts, port }] }).answer).to.deep.equal(allowed)
    const denied = { allowed: false, code: 400, message: reason }
    expect(update({ servers: [{ ...spec.servers[0], name: 'other' }] }).answer).to.deep.equal(denied)
    expect(update({ ...spec, selector: { app: 'x' } }).answer).to.deep.equal(denied)
    expect(update(spec, {}, { operation: 'CREATE' }).answer).to.deep.equal(denied)
    expect(update(spec, {}, { oldObject: undefined }).answer).to.deep.equal(denied)
    // What is wrong beside the spec was not so before.
    const { answer } = update(spec, { metadata: { ...metadata, labels: { app: 7 } } })
    expect(answer.message).to.match(/^configuration is invalid: metadata\.labels.*; spec\.servers/)
  })

  it('allows an invalid object that is being deleted, so that its finalizers can be removed, and a status', () => {
    const metadata = { name: 'x', namespace: 'shop', deletionTimestamp: '2026-01-01T00:00:00Z' }
    expect(decide(request('Gateway', {}, { operation: 'UPDATE' }, { metadata })).answer).to.deep.equal({ allowed: true })
    expect(decide(request('Gateway', {}, { operation: 'UPDATE', subResource: 'status' })).answer).to.deep.equal({ allowed: true })
  })
})
