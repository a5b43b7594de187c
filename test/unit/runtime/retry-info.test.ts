import { fromBinary } from '@bufbuild/protobuf'
import { DurationSchema } from '@bufbuild/protobuf/wkt'
import { expect } from 'chai'
import { retryMetadata } from '../../../actors/grpc/retry-info.ts'
import { StatusSchema } from '../../../protocols/gen/google/rpc/status_pb.js'

describe('the retry delay of a rejected call', () => {
  for (const [ms, seconds, nanos] of [
    [250, 0n, 250_000_000],
    [3000, 3n, 0],
    [30_999, 30n, 999_000_000],
  ] as const)
    it(`is sent in status details and as pushback trailer: ${ms} ms`, () => {
      const metadata = retryMetadata(8, 'too many', ms)
      expect(metadata['grpc-retry-pushback-ms']).to.equal(String(ms))
      const status = fromBinary(StatusSchema, Buffer.from(metadata['grpc-status-details-bin'] ?? '', 'base64'))
      expect([status.code, status.message, status.details.length]).to.deep.equal([8, 'too many', 1])
      const [detail] = status.details
      expect(detail?.typeUrl).to.equal('type.googleapis.com/google.rpc.RetryInfo')
      // RetryInfo has one field: the delay.
      const value = detail?.value ?? new Uint8Array()
      expect([value[0], value[1]]).to.deep.equal([0x0a, value.length - 2])
      const delay = fromBinary(DurationSchema, value.subarray(2))
      expect([delay.seconds, delay.nanos]).to.deep.equal([seconds, nanos])
    })
})
