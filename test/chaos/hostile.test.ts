import { connect, constants } from 'node:http2'
import { connect as tcpConnect } from 'node:net'
import { expect } from 'chai'
import fc from 'fast-check'
import { parseConfigFile } from '../../src/config/parse.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { runs } from '../harness/seed.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const object = (kind: string, spec: string) => `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: x, namespace: ns}\nspec: ${spec}\n`

const corpus: Record<string, string> = {
  'deep flow': `a: ${'['.repeat(100_000)}`,
  'deep block': Array.from({ length: 5000 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'),
  'deep dashes': `${'- '.repeat(5000)}x`,
  'deep JSON': `{"a":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_001)}`,
  'alias bomb': `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
    .split('')
    .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghi'[index]}`).join(',')}]`)
    .join('\n')}\n`,
  'merge key': object('Sidecar', '{<<: {a: b}}'),
  'NUL and control characters': 'kind: \u0000\u0007\u001b[31m\napiVersion: "\\x00"',
  'a million dashes': '-'.repeat(1_000_000),
  'many documents': '---\n'.repeat(20_000),
  'prototype pollution': `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\n__proto__: {polluted: yes}\nmetadata: {name: p, labels: {__proto__: x, constructor: z}}\nspec: {__proto__: {polluted: yes}, constructor: {prototype: {polluted: yes}}}\n`,
  'huge number': object('ServiceEntry', `{hosts: [a.b], ports: [{number: ${'9'.repeat(400)}, name: a}]}`),
  'regex bomb': object(
    'VirtualService',
    '{hosts: [a], http: [{match: [{uri: {regex: "((((a{1,30}){1,30}){1,30}){1,30})"}}], route: [{destination: {host: a}}]}]}',
  ),
  'wrong types': object('VirtualService', '{hosts: {a: b}, http: 7, tls: [null, 1], tcp: "x"}'),
  binary: Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 7919) % 256)).toString('latin1'),
}

describe('hostile input', () => {
  it('as arbitrary text is parsed without an exception', () => {
    const words = fc.constantFrom(
      'apiVersion: networking.mesh.io/v1\n',
      'kind: VirtualService\n',
      'metadata: {name: a}\n',
      'spec:\n',
      '  hosts: [a]\n',
      '  http:\n',
      '  - route:\n',
      '---\n',
      '{',
      '}',
      '[',
      ']',
      '&a ',
      '*a',
      '!!map ',
      '|',
      '>',
      '\t',
      '? ',
      ': ',
      '- ',
      '"',
      "'",
      '\u2028',
      '%YAML 1.2\n',
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(words, fc.string())), (parts) => {
        parseConfigFile('f', parts.join(''), meshNames('mesh.io'))
      }),
      { numRuns: runs(500) },
    )
  })

  describe('against the running service', () => {
    const service = new Service()
    let witness: XdsClient
    let round = 0
    before(async () => {
      service.write('good.yaml', serviceEntry('good'))
      await service.start()
      witness = await new XdsClient(service.grpcPort, sidecarNode('10.1.1.1', 'witness', 'ns'), true).connect().ready()
    })
    after(async () => {
      witness.close()
      await service.dispose()
    })
    /** Asserts that no actor restarted, and that a change still reaches the other proxy. */
    const undisturbed = async () => {
      const name = `after-${++round}`
      service.write(`${name}.yaml`, serviceEntry(name))
      await until('a change to arrive', () => witness.resources.get(clusterType)?.has(`outbound|80||${name}.ns.svc.cluster.local`) ?? false)
      expect(witness.closed).to.equal(undefined)
      const actors = await service.debug<{ name: string; restarts: number }[]>('actorsz')
      expect(actors.filter((actor) => actor.restarts > 0)).to.deep.equal([])
    }

    for (const [what, content] of Object.entries(corpus)) {
      it(`a file with ${what} restarts no actor, and another proxy gets its changes`, async () => {
        service.write('hostile.yaml', content)
        await undisturbed()
        expect(({} as Record<string, unknown>).polluted).to.equal(undefined)
      })
    }

    it('an object that becomes invalid keeps its last good state, with the reason', async () => {
      service.write('good.yaml', serviceEntry('good').replace('number: 80', 'number: 99999'))
      await undisturbed()
      expect(witness.resources.get(clusterType)?.has('outbound|80||good.ns.svc.cluster.local')).to.equal(true)
      await service.output.says(
        'good.yaml, document 1, ServiceEntry/ns/good, field spec.ports[0].number: 99999 is outside 1..65535; its last good state stays',
      )
    })

    it('a resource that Envoy would reject is held back, and the others are pushed', async () => {
      service.write(
        'hostile.yaml',
        object('VirtualService', '{hosts: [good], http: [{match: [{uri: {regex: "/[a-z]{90}[A-Z]{90}"}}], route: [{destination: {host: good}}]}]}'),
      )
      await until('the fault on the debug page', async () => JSON.stringify(await service.debug('push_status')).includes('VirtualService/ns/x'))
      await undisturbed()
      service.remove('hostile.yaml')
    })

    it('garbled requests, wrong paths and partial frames restart no actor, and another proxy gets its changes', async () => {
      const session = connect(`http://127.0.0.1:${service.grpcPort}`)
      session.on('error', () => undefined)
      const open = (path: string, type = 'application/grpc', method = 'POST') => {
        const stream = session.request({ [constants.HTTP2_HEADER_PATH]: path, [constants.HTTP2_HEADER_METHOD]: method, 'content-type': type })
        stream.on('error', () => undefined)
        stream.resume()
        return stream
      }
      const ads = '/envoy.service.discovery.v3.AggregatedDiscoveryService/'
      const status = await new Promise((resolve) => open('/no/such').on('response', (headers) => resolve(headers['grpc-status'])))
      expect(status).to.equal('12')
      open('/', 'text/html', 'GET')
      for (const method of ['StreamAggregatedResources', 'DeltaAggregatedResources']) {
        fc.assert(
          fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
            const frame = Buffer.alloc(5)
            frame.writeUInt32BE(bytes.length, 1)
            open(ads + method).write(Buffer.concat([frame, bytes]))
          }),
          { numRuns: runs(100) },
        )
        open(ads + method).write(Buffer.from([0, 255, 255, 255, 255]))
        open(ads + method).write(Buffer.from([1, 0, 0, 0, 1, 0]))
        open(ads + method).write(Buffer.from([0, 0]))
        open(ads + method).close(constants.NGHTTP2_CANCEL)
        const nested = Buffer.alloc(400_000)
        for (let at = nested.length - 1, length = 0; at > 10 && length < 130_000; length += 4, at -= 4)
          nested.set([0x2a, 0x80 | (length & 127), 0x80 | ((length >> 7) & 127), (length >> 14) & 127], at - 3)
        const frame = Buffer.alloc(5)
        frame.writeUInt32BE(nested.length, 1)
        open(ads + method).write(Buffer.concat([frame, nested]))
      }
      await undisturbed()
      session.destroy()
    })

    it('connections without HTTP/2 and rapid resets restart no actor, and another proxy gets its changes', async () => {
      const raw = tcpConnect(service.grpcPort, '127.0.0.1')
      raw.on('error', () => undefined)
      raw.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
      const session = connect(`http://127.0.0.1:${service.grpcPort}`)
      session.on('error', () => undefined)
      for (let i = 0; i < 500; i++) {
        const stream = session.request({
          ':path': '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
          ':method': 'POST',
          'content-type': 'application/grpc',
        })
        stream.on('error', () => undefined)
        stream.close(constants.NGHTTP2_CANCEL)
      }
      await undisturbed()
      session.destroy()
      raw.destroy()
    })
  })
})
