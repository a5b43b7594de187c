import { expect } from 'chai'
import fc from 'fast-check'
import { isDeeperThan, readReview, reviewLimits, reviewText, unreadText } from '../../../src/orchestrator/admission-review.ts'
import { runs } from '../../harness/seed.ts'

const bytes = (value: unknown): Uint8Array => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
const request = { uid: 'u-1', kind: { group: 'networking.mesh.io', version: 'v1', kind: 'Gateway' }, operation: 'CREATE', object: { a: 1 } }
const review = (more: object = {}) => ({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: { ...request, ...more } })

describe('reviews of the API server', () => {
  for (const apiVersion of ['admission.k8s.io/v1', 'admission.k8s.io/v1beta1'])
    it(`of ${apiVersion} are read, and answered in their version with their uid`, () => {
      const given = { ...review({ namespace: 'shop', name: 'g', dryRun: true, userInfo: { username: 'ann' }, subResource: 'status' }), apiVersion }
      const read = readReview(bytes(given))
      if ('fault' in read) throw new Error(read.fault)
      expect(read.apiVersion).to.equal(apiVersion)
      expect(read.request).to.deep.include({
        uid: 'u-1',
        namespace: 'shop',
        name: 'g',
        isDryRun: true,
        user: 'ann',
        operation: 'CREATE',
        subResource: 'status',
      })
      expect(read.request.object).to.deep.equal({ a: 1 })
      const answer = JSON.parse(
        reviewText(read.apiVersion, read.request.uid, { allowed: true, warnings: ['x'], patch: [{ op: 'remove', path: '/a' }] }),
      )
      expect(answer).to.deep.equal({
        apiVersion,
        kind: 'AdmissionReview',
        response: {
          ...{ uid: 'u-1', allowed: true, warnings: ['x'], patchType: 'JSONPatch' },
          patch: Buffer.from('[{"op":"remove","path":"/a"}]').toString('base64'),
        },
      })
    })

  it('that cannot be read are denied in a review, with the uid if there is one, and nothing of the text is repeated', () => {
    const cases: [unknown, string, string][] = [
      ['{"secret": hunter2', 'it is no JSON', ''],
      [Buffer.from([0x22, 0xff, 0x22]), 'it is no UTF-8', ''],
      ['[]', 'it is no mapping', ''],
      [{ ...review(), apiVersion: 'v9' }, 'its apiVersion is none of admission.k8s.io/v1, admission.k8s.io/v1beta1', ''],
      [{ ...review(), kind: 'Pod' }, 'its kind is not AdmissionReview', ''],
      [{ ...review(), request: null }, 'it has no request', ''],
      [review({ uid: 7 }), 'its request has no uid', ''],
      [review({ kind: 'Gateway' }), 'its request has no kind', 'u-1'],
    ]
    for (const [given, reason, uid] of cases) {
      const read = readReview(given instanceof Uint8Array ? given : bytes(given))
      if (!('fault' in read)) throw new Error('it was read')
      const { response } = JSON.parse(unreadText(read))
      expect(response).to.deep.equal({ uid, allowed: false, status: { code: 400, message: `error decoding the review: ${reason}` } })
    }
  })

  it('that are deep are not parsed', () => {
    const deep = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    expect(isDeeperThan(bytes(deep(reviewLimits.depth)), reviewLimits.depth)).to.equal(false)
    const read = readReview(bytes(deep(4_000_000)))
    expect('fault' in read && read.fault).to.equal('error decoding the review: it is nested deeper than 256 levels')
  })

  it('that are deep are answered in their version with their uid, wherever it is', () => {
    const deep = { a: JSON.parse(`${'['.repeat(300)}{"uid":"wrong"}${']'.repeat(300)}`) }
    const request = { object: { ...deep, uid: 'wrong', request: { uid: 'wrong' } }, uid: 'u-"1"', options: { uid: 'wrong' } }
    const head = (given: object, pad = 0) => {
      const read = readReview(bytes(JSON.stringify(given, undefined, pad)))
      return 'fault' in read && [read.apiVersion, read.uid]
    }
    for (const pad of [0, 2]) {
      const [v1beta1, v1] = ['admission.k8s.io/v1beta1', 'admission.k8s.io/v1']
      expect(head({ uid: 'wrong', apiVersion: v1beta1, request, kind: 'AdmissionReview' }, pad)).to.deep.equal([v1beta1, 'u-"1"'])
      expect(head({ request, other: { apiVersion: v1beta1, request: { uid: 'wrong' } } }, pad)).to.deep.equal([v1, 'u-"1"'])
      expect(head({ request: { ...request, uid: 'u'.repeat(1000) }, apiVersion: 'v9' }, pad)).to.deep.equal([v1, ''])
    }
    for (const broken of ['{"request":{"uid":"', '{"request":{"uid":"\\', '{"request":{"uid":"\\u00', '{"request":{"uid"'])
      expect(readReview(bytes(`[${'['.repeat(300)}${']'.repeat(300)},${broken}`))).to.have.property('uid', '')
  })

  it('have the depth of their nesting, whatever their texts are', () => {
    const depthOf = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const [json, depth] = [bytes(JSON.stringify(value)), depthOf(value)]
        expect([isDeeperThan(json, depth), depth > 0 && isDeeperThan(json, depth - 1)]).to.deep.equal([false, depth > 0])
      }),
      { numRuns: runs(500) },
    )
  })

  it('have answers of bounded length that can be sent as headers', () => {
    const warnings = Array.from({ length: 30 }, (_, at) => `${at}\n${'w'.repeat(1000)}`)
    const { response } = JSON.parse(reviewText('admission.k8s.io/v1', 'u', { allowed: false, message: 'm\u0000'.repeat(100_000), warnings }))
    expect(response.status.message.length).to.be.at.most(8192)
    expect(response.status.code).to.equal(403)
    expect(response.warnings).to.have.length(21)
    expect(response.warnings.at(-1)).to.equal('warnings beyond these: 10')
    for (const warning of response.warnings) expect(warning).to.match(/^[^\n]{1,256}$/)
  })
})
