import { expect } from 'chai'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { anything, decimal, duration, integer, list, map, oneOf, type Report, record, required, type Shape, text } from '../../../src/config/shape.ts'
import { durationOf } from '../../../src/xds/message.ts'
import { names } from '../../harness/settings.ts'

/** Returns the value, or the faults as text. */
function read<T>(shape: Shape<T>, value: unknown): T | undefined | string[] {
  const report: Report = { faults: [], warnings: [] }
  const found = shape.read(value, 'f', report)
  return report.faults.length > 0 ? report.faults.map(({ path, reason }) => `${path}: ${reason}`) : found
}

describe('shapes of configuration fields', () => {
  it("accept durations within Envoy's limits, as text or as seconds and nanos", () => {
    expect(read(duration(), { seconds: '2', nanos: 5e8 })).to.equal(2500)
    expect(read(duration(), {})).to.equal(0)
    for (const bad of [
      { seconds: 'abc' },
      { seconds: Number.NaN },
      { seconds: 1, nanos: 1e9 },
      { seconds: 1.5 },
      { seconds: 1, nanos: -1 },
      '9'.repeat(400),
      [],
      7,
    ])
      expect(read(duration(), bad), JSON.stringify(bad)).to.be.an('array')
    expect(read(duration(), { seconds: 'abc' })).to.deep.equal(['f.seconds: expected a whole number, got string "abc"'])
    expect(read(duration(), '-1s')).to.deep.equal(['f: -1000 ms is shorter than 0 ms'])
    expect(read(duration(), '9223372036s')).to.deep.equal(['f: 9223372036000 ms is longer than 9223372035000 ms'])
    expect(read(duration(), `${'9'.repeat(400)}h`)).to.be.an('array')
  })

  it('accept numbers that are finite, within bounds, and integers where required', () => {
    expect([read(integer(0, 10), '7'), read(integer(0, 10), -0), read(decimal(0, 1), '0.5')]).to.deep.equal([7, 0, 0.5])
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, 1.5, '1.5', '', ' ', '0x7', 11, -1, '9'.repeat(400), true, null, {}])
      expect(read(integer(0, 10), bad), String(bad)).to.be.an('array')
    for (const bad of [Number.NaN, Number.NEGATIVE_INFINITY, 'Infinity', '0x1', '1e999', 2])
      expect(read(decimal(0, 1), bad), String(bad)).to.be.an('array')
  })

  it('accept enum values by name or number', () => {
    const shape = oneOf('', 'ONE', 'TWO')
    expect([read(shape, 'TWO'), read(shape, 1)]).to.deep.equal(['TWO', 'ONE'])
    for (const bad of [0, '', 1.5, -1, Number.NaN, 3, 'constructor', 'length']) expect(read(shape, bad), String(bad)).to.be.an('array')
  })

  it('keep keys such as __proto__, and reject what is not JSON or not Unicode', () => {
    const given = JSON.parse('{"__proto__": "x", "constructor": "y"}')
    expect(Object.entries(read(map(text()), given) as object)).to.deep.equal([
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ])
    for (const bad of [Number.NaN, [Number.POSITIVE_INFINITY], new Date(0), { a: new Set() }, '\ud800', { '\udfff': 1 }, 1n, undefined])
      expect(read(anything, bad)).to.be.an('array')
    expect(read(text(), 'a\ud800')).to.be.an('array')
  })

  it('run the check of a record only if all of its fields are valid and present', () => {
    let looked = 0
    const inner = record({ n: required(integer(0, 5)) })
    const shape = record({ list: required(list(inner)), other: inner }, (value) => {
      for (const { n } of value.list) expect(n).to.be.a('number')
      looked++
    })
    for (const bad of [{}, { list: [{}] }, { list: [{ n: 9 }] }, { list: [{ n: 1 }], other: { n: 'x' } }, { list: [{ n: 1 }, null] }, { list: 5 }])
      expect(read(shape, bad), JSON.stringify(bad)).to.be.an('array')
    expect(looked).to.equal(0)
    read(shape, { list: [{ n: 1 }], other: {} })
    expect(looked).to.equal(0)
    read(shape, { list: [{ n: 1 }] })
    expect(looked).to.equal(1)
  })

  it('reject a field that is given in two spellings', () => {
    expect(read(record({ aB: text() }), { aB: 'x', a_b: 'y' })).to.deep.equal(['f.aB: given twice, in two spellings'])
  })
})

describe('documents with a missing or out-of-range value', () => {
  for (const [kind, spec, path] of [
    ['Gateway', '{servers: [{hosts: [a]}]}', 'spec.servers[0].port'],
    ['Gateway', '{servers: [{port: {number: 1, name: a, protocol: HTTP}, hosts: [a]}, {port: 7, hosts: [a]}]}', 'spec.servers[1].port'],
    ['Gateway', '{servers: [{port: {number: 1, name: a, protocol: HTTP}, hosts: [a], bind: somewhere}]}', 'spec.servers[0].bind'],
    ['Sidecar', '{ingress: [{bind: 1.2.3.4}]}', 'spec.ingress[0].port'],
    ['Sidecar', '{ingress: [{port: {number: 80}, defaultEndpoint: "127.0.0.1:99999"}]}', 'spec.ingress[0].defaultEndpoint'],
    ['ServiceEntry', '{hosts: [a.b], ports: [{name: x}]}', 'spec.ports[0].number'],
    ['VirtualService', '{hosts: [a], http: [{route: [{destination: {host: a}}], timeout: {seconds: abc}}]}', 'spec.http[0].timeout.seconds'],
    [
      'VirtualService',
      '{hosts: [a], tcp: [{match: [{destinationSubnets: [a/b]}], route: [{destination: {host: a}}]}]}',
      'spec.tcp[0].match[0].destinationSubnets[0]',
    ],
    ['VirtualService', '{hosts: [a], http: [{directResponse: {status: 100}}]}', 'spec.http[0].directResponse.status'],
    [
      'DestinationRule',
      '{host: a, trafficPolicy: {connectionPool: {tcp: {tcpKeepalive: {time: 2000000h}}}}}',
      'spec.trafficPolicy.connectionPool.tcp.tcpKeepalive.time',
    ],
    [
      'DestinationRule',
      '{host: a, trafficPolicy: {loadBalancer: {consistentHash: {maglev: {tableSize: 100}}}}}',
      'spec.trafficPolicy.loadBalancer.consistentHash.maglev.tableSize',
    ],
    [
      'DestinationRule',
      '{host: a, trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {name: c, ttl: 0s, attributes: [{name: SameSite, value: "a; b"}]}}}}}',
      'spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.attributes[0].value',
    ],
  ] as const)
    it(`${kind} ${spec} is rejected with its field`, () => {
      const { faults, objects } = parseConfigFile(
        'f',
        `apiVersion: networking.mesh.io/v1alpha3\nkind: ${kind}\nmetadata: {name: x, namespace: ns}\nspec: ${spec}\n`,
        names,
      )
      expect(objects).to.deep.equal([])
      expect(faults.map((fault) => fault.path)).to.deep.equal([path])
    })

  it('are rejected with the field: an AuthorizationPolicy condition without a key', () => {
    const { faults } = parseConfigFile(
      'f',
      'apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: x, namespace: ns}\nspec: {rules: [{when: [{values: [a]}]}]}\n',
      names,
    )
    expect(faults.map((fault) => fault.path)).to.deep.equal(['spec.rules[0].when[0].key'])
  })
})

describe('Envoy durations', () => {
  it('have less than a billion nanoseconds', () => {
    for (const [ms, seconds, nanos] of [
      [999.999_999_9, 0n, 999_999_999],
      [1500, 1n, 500_000_000],
      [0.1, 0n, 100_000],
      [0.000_001, 0n, 1],
      [9_223_372_035_000, 9_223_372_035n, 0],
    ] as const)
      expect(durationOf(ms)).to.include({ seconds, nanos })
  })
})
