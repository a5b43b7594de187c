/** Each verb of the calls to an API server, at a server of HTTP/2 that says what arrived (docs/operation.md, C2). `test/orchestrator/cluster-api.test.ts` has a real API server. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CoreV1Api } from '@kubernetes/client-node'
import { expect } from 'chai'
import { type ApiFailure, ClusterApi } from '../../actors/discovery/cluster/cluster-api.ts'
import { coreResource } from '../../src/orchestrator/resources.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'

interface Arrived {
  readonly method: string
  readonly path: string
  readonly type: string
  readonly credential: string
  readonly body: string
}

describe('calls to an API server, by their verbs', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-calls-'))
  const arrived: Arrived[] = []
  const sessions = new Set<ServerHttp2Session>()
  let server: Http2SecureServer
  let api: ClusterApi

  /** What the server answers: lists and watches have an object, and an object with another version is in conflict. */
  const answerTo = ({ method, path, body }: Arrived): { readonly status: number; readonly body: object } => {
    const pod = { kind: 'Pod', apiVersion: 'v1', metadata: { namespace: 'a', name: 'one', uid: 'u', resourceVersion: '5' } }
    // An older server does not stream lists.
    if (path.includes('sendInitialEvents')) return { status: 400, body: { kind: 'Status', reason: 'BadRequest', message: 'sendInitialEvents' } }
    if (method === 'GET' && path.includes('watch=')) return { status: 200, body: { type: 'ADDED', object: pod } }
    if (method === 'GET' && /\/pods\?/.test(path)) return { status: 200, body: { kind: 'PodList', metadata: { resourceVersion: '4' }, items: [] } }
    const { preconditions } = method === 'DELETE' && body !== '' ? JSON.parse(body) : { preconditions: undefined }
    if (method === 'DELETE' && preconditions?.resourceVersion !== '5')
      return { status: 409, body: { kind: 'Status', reason: 'Conflict', message: 'other' } }
    return { status: method === 'POST' ? 201 : 200, body: { kind: 'Answer', metadata: { name: 'one', resourceVersion: '5' } } }
  }

  before(async () => {
    const made = new ServingCertificates(dir)
    made.authority('ca')
    made.issue('server', 'ca', 1, 'subjectAltName=DNS:cluster.test')
    server = createSecureServer({ cert: made.text('server.pem'), key: made.text('server-key.pem') })
    server.on('session', (session) => sessions.add(session))
    server.on('stream', (stream, headers) => {
      let body = ''
      stream.on('data', (part) => (body += part))
      stream.on('end', () => {
        const text = (name: string) => String(headers[name] ?? '')
        const each: Arrived = { method: text(':method'), path: text(':path'), type: text('content-type'), credential: text('authorization'), body }
        arrived.push(each)
        const answer = answerTo(each)
        stream.respond({ ':status': answer.status, 'content-type': 'application/json' })
        const isWatch = answer.status === 200 && each.path.includes('watch=')
        stream[isWatch ? 'write' : 'end'](`${JSON.stringify(answer.body)}\n`)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}/behind`
    const access = { server: address, proxy: undefined, ca: made.text('ca.pem'), cert: undefined, key: undefined, serverName: 'cluster.test' }
    const parts = { perSecond: 100, burst: 100, userAgent: 'test' }
    api = new ClusterApi({ access: async () => ({ ...access, verifies: true, headers: { authorization: 'Bearer a' } }) }, parts)
  })
  after(async () => {
    api?.close()
    for (const session of sessions) session.destroy()
    await new Promise((resolve) => server?.close(resolve))
    rmSync(dir, { recursive: true, force: true })
  })

  const last = (): Arrived => arrived.at(-1) as Arrived
  const secret = { metadata: { name: 'one', resourceVersion: '5' }, data: { a: 'Yg==' } }

  it('GET has no body, POST and PUT have theirs, with the version of the object, through the client library', async () => {
    const library = <Answer>(verb: 'get' | 'create' | 'update', call: (core: CoreV1Api) => Promise<Answer>) =>
      api.call({ verb, resource: 'secrets' }, (types) => types.CoreV1Api, call)
    await library('get', (core) => core.readNamespacedSecret({ namespace: 'a', name: 'one' }))
    const path = '/behind/api/v1/namespaces/a/secrets'
    expect(last()).to.include({ method: 'GET', path: `${path}/one`, body: '', credential: 'Bearer a' })
    await library('create', (core) => core.createNamespacedSecret({ namespace: 'a', body: secret }))
    expect(last()).to.include({ method: 'POST', path, type: 'application/json' })
    expect(JSON.parse(last().body)).to.deep.equal(secret)
    await library('update', (core) => core.replaceNamespacedSecret({ namespace: 'a', name: 'one', body: secret }))
    expect(last()).to.include({ method: 'PUT', path: `${path}/one` })
    expect(JSON.parse(last().body)).to.deep.equal(secret)
  })

  it('PATCH has its kind of patch, with uid and version', async () => {
    const patch = { metadata: { uid: 'u', resourceVersion: '5' }, status: { a: 1 } }
    const body = { text: JSON.stringify(patch), type: 'application/merge-patch+json' }
    const path = '/api/v1/namespaces/a/configmaps/one'
    const answer = await api.request({ verb: 'patch', resource: 'configmaps' }, { method: 'PATCH', path, accept: 'application/json', body })
    expect(JSON.parse(answer)).to.include({ kind: 'Answer' })
    expect(last()).to.include({ method: 'PATCH', path: `/behind${path}`, type: body.type, body: body.text })
  })

  it('DELETE has its preconditions, with the library and without, and fails where the object is another one', async () => {
    const name = { verb: 'delete', resource: 'leases.coordination.k8s.io' } as const
    const path = '/apis/coordination.k8s.io/v1/namespaces/a/leases/one'
    const own = (resourceVersion: string) => {
      const text = JSON.stringify({ preconditions: { uid: 'u', resourceVersion } })
      return api.request(name, { method: 'DELETE', path, accept: 'application/json', body: { text, type: 'application/json' } })
    }
    const library = (resourceVersion: string) =>
      api.call(
        name,
        ({ CoordinationV1Api }) => CoordinationV1Api,
        (leases) => leases.deleteNamespacedLease({ namespace: 'a', name: 'one', body: { preconditions: { uid: 'u', resourceVersion } } }),
      )
    for (const call of [own, library]) {
      await call('5')
      expect(JSON.parse(last().body).preconditions).to.deep.equal({ uid: 'u', resourceVersion: '5' })
      const failure = await Promise.resolve(call('4')).then(
        () => undefined,
        (error: ApiFailure) => error,
      )
      expect([failure?.isConflict, failure?.mayPass]).to.deep.equal([true, false])
    }
  })

  it('LIST and WATCH have no body; a watch goes on from the version of the list', async () => {
    const told: string[] = []
    const nothing = () => {}
    const followed = api.followed<string>(coreResource('Pod', 'pods'), {
      read: ({ metadata }) => {
        const { name, resourceVersion } = metadata as { name: string; resourceVersion: string }
        return { key: name, version: resourceVersion, object: name }
      },
      set: (key) => void told.push(`set ${key}`),
      remove: (key) => void told.push(`remove ${key}`),
      complete: () => void told.push('complete'),
      failed: (verb, _, reason) => void told.push(`${verb} ${reason}`),
      ...{ same: nothing, recovered: nothing, audited: nothing, auditFailed: nothing, settled: nothing },
    })
    followed.start(0)
    await until('the object of the watch', () => told.includes('set one'))
    followed.close()
    expect(told).to.deep.equal(['complete', 'set one'])
    const asked = arrived.filter(({ path }) => path.includes('/pods?'))
    expect(asked.map(({ path }) => path.includes('watch='))).to.include.members([true, false])
    expect(asked.every(({ method, body }) => method === 'GET' && body === '')).to.equal(true)
    expect(asked.at(-1)?.path)
      .to.match(/watch=(true|1)/)
      .and.include('resourceVersion=4')
  })
})
