import { expect } from 'chai'
import { callEnd } from '../../../src/agent/call-end.ts'
import { certificateChain, certificateRequest, cloudCertificateRequest } from '../../../src/agent/certificate-call.ts'
import { fieldHead, textField, varintField, WireError } from '../../../src/xds/slab/wire.ts'

const field = (number: number, ...parts: readonly Buffer[]) => {
  const content = Buffer.concat(parts)
  return Buffer.concat([fieldHead(number, content.length), content])
}
/** Returns the value of `grpc-status-details-bin`: a `google.rpc.Status` in base64 whose `RetryInfo` has the given delay. */
const details = (seconds: number, nanos: number) => {
  const info = field(1, varintField(1, seconds), varintField(2, nanos))
  const other = field(3, textField(1, 'type.googleapis.com/google.rpc.Help'), field(2, Buffer.from([1, 2, 3])))
  return Buffer.concat([varintField(1, 8), other, field(3, textField(1, 'type.googleapis.com/google.rpc.RetryInfo'), field(2, info))]).toString(
    'base64',
  )
}

describe('the CreateCertificate call of the agent', () => {
  it('encodes the signing request and the requested lifetime', () => {
    expect(certificateRequest('csr', 86_400)).to.deep.equal(Buffer.from([0x0a, 3, ...Buffer.from('csr'), 0x18, 0x80, 0xa3, 0x05]))
  })

  it('encodes the request of a cloud with its id and the lifetime as a duration', () => {
    expect(cloudCertificateRequest('id', 'csr', 86_400)).to.deep.equal(
      Buffer.concat([textField(1, 'id'), textField(2, 'csr'), field(3, varintField(1, 86_400))]),
    )
  })

  it('decodes the certificate chain of the response, and rejects bytes that are not a valid message', () => {
    const answer = Buffer.concat([textField(1, 'leaf'), varintField(9, 7), textField(1, 'root')])
    expect(certificateChain(answer)).to.deep.equal(['leaf', 'root'])
    expect(() => certificateChain(Buffer.from([0x0a, 0xff]))).to.throw(WireError)
  })

  it('decodes grpc-status and the percent-encoded grpc-message; a missing or invalid status counts as UNKNOWN', () => {
    expect(callEnd({ 'grpc-status': '0' })).to.deep.equal({ code: 0, message: '', retryAfterMs: 0 })
    expect(callEnd({ 'grpc-status': '3', 'grpc-message': 'k%C3%B6nnte 100%' }).message).to.equal('könnte 100%')
    for (const status of [undefined, 'x', '-1', ['0', '0']]) expect(callEnd({ 'grpc-status': status }).code).to.equal(2)
  })

  it('takes the retry delay from the pushback trailer or RetryInfo, and ignores values that cannot be parsed', () => {
    const pauseOf = (trailers: object) => callEnd({ 'grpc-status': '8', ...trailers }).retryAfterMs
    expect(pauseOf({ 'grpc-retry-pushback-ms': '1500' })).to.equal(1500)
    expect(pauseOf({ 'grpc-status-details-bin': details(2, 500_000_000) })).to.equal(2500)
    expect(pauseOf({ 'grpc-status-details-bin': details(2, 0), 'grpc-retry-pushback-ms': '3000' })).to.equal(3000)
    for (const bad of ['', '!!', 'CgUI', Buffer.from([0x1a, 0xff]).toString('base64')])
      expect(pauseOf({ 'grpc-status-details-bin': bad })).to.equal(0)
    for (const bad of ['-1', 'soon', '1e9']) expect(pauseOf({ 'grpc-retry-pushback-ms': bad })).to.equal(0)
  })
})
