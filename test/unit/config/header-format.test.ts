import { expect } from 'chai'
import { headerFormatFault, plainOperators } from '../../../src/config/header-format.ts'
import { codeNamed } from '../../../src/model/status-codes.ts'

describe('header values with command operators', () => {
  it('are accepted if Envoy knows the operators', () => {
    for (const value of [
      '',
      'plain',
      '100%%',
      '%%%%',
      'a%REQ(x)%%REQ(y?:path):3%b',
      '%START_TIME(%Y)%',
      '%UPSTREAM_METADATA(["a", "b"])%',
      'a\tb',
      'é',
    ])
      expect(headerFormatFault(value), value).to.equal(undefined)
    for (const name of plainOperators) expect(headerFormatFault(`%${name}%`), name).to.equal(undefined)
  })

  // Each of these values makes Envoy 1.36 reject the route configuration that contains it.
  it('are rejected if Envoy would reject them', () => {
    const refused = [
      '%',
      '50% off',
      'a%b%c',
      '%NOPE%',
      '%lower%',
      '%REQ(x',
      '%REQ%',
      '%REQ()%',
      '%REQ(a b)%',
      '%REQ(a?b?c)%',
      '%PROTOCOL(x)%',
      '%PROTOCOL:3%',
    ]
    refused.push(
      '%START_TIME(a):3%',
      '%RESPONSE_CODE%%',
      '%FILTER_STATE(k:FIELD)%',
      '%DYNAMIC_METADATA(a):3%',
      '%METADATA(NONE:a)%',
      '%GRPC_STATUS(X)%',
    )
    refused.push(
      '%COMMON_DURATION(a:b:s)%',
      '%PATH(WQ:NO)%',
      '%QUERY_PARAM()%',
      '%PER_REQUEST_STATE%',
      '%REQ(a):99999999999999999999%',
      'a\nb',
      'a\u0000b',
    )
    for (const value of [...refused, 'x'.repeat(16_385), 'é'.repeat(8193)]) expect(headerFormatFault(value), value.slice(0, 50)).to.be.a('string')
  })

  it('are parsed in linear time', () => {
    const values: [string, boolean][] = [
      ['%A('.repeat(5000), true],
      ['%%'.repeat(8000), false],
      ['%REQ(a)%'.repeat(2000), false],
      [`%REQ(${'('.repeat(16_000)}`, true],
    ]
    const before = process.cpuUsage()
    for (const [value, isRefused] of values) expect(headerFormatFault(value) !== undefined, value.slice(0, 50)).to.equal(isRefused)
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1000, 'ms of CPU').to.be.below(500)
  })
})

describe('gRPC status codes', () => {
  it('are parsed from names in any spelling and from numbers', () => {
    expect(['OK', 'CANCELLED', 'Canceled', 'NOT_FOUND', 'UNAUTHENTICATED', '14'].map(codeNamed)).to.deep.equal([0, 1, 1, 5, 16, 14])
    expect(['', 'NOTHING', '17', '-1', 'constructor'].map(codeNamed)).to.deep.equal(Array(5).fill(undefined))
  })
})
