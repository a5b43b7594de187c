/** Reported versions are compared as bytes with the same result as texts. */
import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import { DeltaDiscoveryRequestSchema } from '../../../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { fieldHead, textField, WireError } from '../../../../src/xds/slab/wire.ts'
import { memoryOf } from '../../../../src/xds/stream/budget.ts'
import { ReportedForm, ReportedVersions } from '../../../../src/xds/stream/reported-versions.ts'
import { readDeltaRequest } from '../../../../src/xds/stream/request.ts'
import { cpuMs } from '../../../harness/own-time.ts'
import { runs } from '../../../harness/seed.ts'

type Versions = Record<string, string>

const versions = fc.dictionary(
  fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('ä', 'outbound|80||a', 'x'.repeat(200))),
  fc.string({ maxLength: 3 }),
  {
    noNullPrototype: true,
  },
)

const read = (initialResourceVersions: Versions) =>
  readDeltaRequest(
    Buffer.from(
      toBinary(
        DeltaDiscoveryRequestSchema,
        create(DeltaDiscoveryRequestSchema, { typeUrl: 't', resourceNamesSubscribe: ['a'], initialResourceVersions, responseNonce: 'n' }),
      ),
    ),
  )
const formOf = (of: Versions) => new ReportedForm(Object.entries(of).map(([name, version]) => ({ name, version })))

/** A field of a version whose parts are as given. */
const field = (...parts: Buffer[]) => {
  const content = Buffer.concat(parts)
  return Buffer.concat([fieldHead(5, content.length), content])
}

describe('reported versions', () => {
  it('differ from what a class has as their texts do', () => {
    fc.assert(
      fc.property(versions, versions, fc.array(fc.string({ maxLength: 2 })), (reported, own, forgotten) => {
        const request = read(reported)
        expect([request.typeUrl, request.nonce]).to.deep.equal(['t', 'n'])
        const counted = new Map(Object.entries(reported).filter(([name]) => !forgotten.includes(name)))
        for (const name of forgotten) request.initialVersions.forget(name)
        const { unreported, others } = request.initialVersions.differencesTo(formOf(own))
        expect(new Map(request.initialVersions)).to.deep.equal(counted)
        expect(unreported).to.deep.equal(Object.keys(own).filter((name) => counted.get(name) !== own[name]))
        expect(others).to.deep.equal(new Map([...counted].filter(([name, version]) => own[name] !== version)))
        expect(request.initialVersions.size).to.equal(Object.keys(reported).length)
        expect(request.initialVersions.memory).to.equal(Object.entries(reported).reduce((sum, texts) => sum + memoryOf(...texts), 0))
      }),
      { numRuns: runs(1000) },
    )
  })

  it('are read in whatever form they are encoded', () => {
    const odd = [
      field(textField(2, 'v'), textField(1, 'turned')),
      field(textField(1, 'no version')),
      field(textField(1, 'twice'), textField(1, 'plain'), textField(2, 'v')),
      field(textField(1, 'unknown'), textField(2, 'v'), textField(3, 'more')),
      field(textField(1, 'usual'), textField(2, 'v')),
      field(textField(1, 'long'), textField(2, 'v'.repeat(20_000))),
    ]
    const { initialVersions } = readDeltaRequest(Buffer.concat(odd))
    const own = { turned: 'v', 'no version': '', plain: 'v', unknown: 'v', usual: 'v', long: 'v' }
    const { unreported, others } = initialVersions.differencesTo(formOf(own))
    expect(unreported).to.deep.equal(['long'])
    expect([...others.keys()]).to.deep.equal(['long'])
  })

  it('that cannot be read, whose names are too long, or that are too many end the stream', () => {
    const fault =
      (...fields: Buffer[]) =>
      () =>
        readDeltaRequest(Buffer.concat(fields))
    expect(fault(field(Buffer.from([0x0a, 0x7f])))).to.throw(WireError, 'field is longer than its message')
    expect(fault(field(textField(1, 'n'.repeat(5000)), textField(2, 'v')))).to.throw(WireError, 'resource name is longer than 4096 bytes')
    expect(fault(Buffer.concat(Array<Buffer>(500_001).fill(field(textField(1, 'n'), textField(2, 'v')))))).to.throw(
      WireError,
      'more than 500000 resource names',
    )
  })

  it('of 10,000 resources are compared within 50 ms', () => {
    const all = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`outbound|80||svc-${index}.shop.svc.cluster.local`, `${index}`]))
    const { initialVersions } = read(all)
    const form = formOf(all)
    expect(cpuMs(() => expect(initialVersions.differencesTo(form).unreported).to.deep.equal([]))).to.be.below(50)
    expect(ReportedVersions.of(Object.entries(all)).memory).to.equal(initialVersions.memory)
  })
})
