import { expect } from 'chai'
import fc from 'fast-check'
import { readApplicationProbes, readMetricsTarget } from '../../../src/health/probe-documents.ts'

const probes = (value: unknown) => readApplicationProbes(JSON.stringify(value))
const at = '/app-health/api/readyz'

describe('the document of application probes', () => {
  it('is parsed into the probes of the container', () => {
    expect(readApplicationProbes('')).to.deep.equal({})
    expect(probes({ [at]: { httpGet: { path: '/ok', port: 9000 }, timeoutSeconds: 2 } })).to.deep.equal({
      [at]: { httpGet: { path: '/ok', port: 9000 }, timeoutSeconds: 2 },
    })
    const httpGet = {
      path: 'ok',
      port: 9000,
      scheme: 'HTTPS',
      host: 'ignored',
      httpHeaders: [{ name: 'Host', value: 'app' }, { name: ':authority' }],
    }
    expect(probes({ '/app-health/api/livez': { httpGet, initialDelaySeconds: 3, whatever: [] } })).to.deep.equal({
      '/app-health/api/livez': { httpGet },
    })
    expect(probes({ '/app-health/api/startupz': { tcpSocket: { port: 5432 } }, [at]: { grpc: { port: 1, service: 'shop' } } })).to.deep.equal({
      '/app-health/api/startupz': { tcpSocket: { port: 5432 } },
      [at]: { grpc: { port: 1, service: 'shop' } },
    })
  })

  const bad: readonly [what: string, document: string, expected: RegExp][] = [
    ['no JSON', '{', /is not JSON/],
    ['no mapping', '[]', /is not a mapping/],
    ['null', 'null', /is not a mapping/],
    ['a path of another form', '{"/healthz":{"httpGet":{"port":1}}}', /"\/healthz" is not \/app-health\//],
    ['a path with more parts', '{"/app-health/a/b/readyz":{"httpGet":{"port":1}}}', /is not \/app-health\//],
    ['a key that is a property of objects', '{"__proto__":{"httpGet":{"port":1}}}', /"__proto__" is not/],
    ['a probe of no kind', `{"${at}":{"timeoutSeconds":1}}`, /readyz: needs exactly one of/],
    ['a probe of two kinds', `{"${at}":{"httpGet":{"port":1},"tcpSocket":{"port":1}}}`, /needs exactly one of/],
    ['no port', `{"${at}":{"httpGet":{"path":"/"}}}`, /readyz\.httpGet\.port: required/],
    ['the name of a port', `{"${at}":{"httpGet":{"port":"http"}}}`, /httpGet\.port: expected a whole number/],
    ['a port that is none', `{"${at}":{"tcpSocket":{"port":65536}}}`, /outside 1\.\.65535/],
    ['a line break in a header', `{"${at}":{"httpGet":{"port":1,"httpHeaders":[{"name":"x","value":"a\\r\\nb: c"}]}}}`, /httpHeaders\[0\]\.value/],
    ['a header without a name', `{"${at}":{"httpGet":{"port":1,"httpHeaders":[{"value":"a"}]}}}`, /httpHeaders\[0\]\.name: required/],
    ['a line break in a path', `{"${at}":{"httpGet":{"port":1,"path":"/a\\n"}}}`, /httpGet\.path/],
    ['another scheme', `{"${at}":{"httpGet":{"port":1,"scheme":"ftp"}}}`, /HTTP or HTTPS/],
    ['too many probes', JSON.stringify(Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`/app-health/${i}/readyz`, {}]))), /at most 1000/],
    ['too much text', `"${'x'.repeat(1_048_577)}"`, /more than 1048576 characters/],
  ]
  for (const [what, document, expected] of bad)
    it(`is rejected with ${what}`, () => {
      expect(() => readApplicationProbes(document)).to.throw(expected)
    })

  it('is rejected only with a reason that names the probe, whatever its content', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (document) => {
        try {
          readApplicationProbes(`{"${at}":${document}}`)
        } catch (error) {
          expect((error as Error).message).to.match(/readyz/)
        }
      }),
    )
  })
})

describe("the document of the application's metrics", () => {
  it('has defaults, and accepts numbers as text', () => {
    expect(readMetricsTarget('', 15_020)).to.equal(undefined)
    expect(readMetricsTarget('{}', 15_020)).to.deep.equal({ port: 80, path: '/metrics' })
    expect(readMetricsTarget('{"scrape":"true","path":"/m?a=1","port":"9090"}', 15_020)).to.deep.equal({ port: 9090, path: '/m?a=1' })
    expect(readMetricsTarget('{"scrape":"false","path":"","port":""}', 15_020)).to.deep.equal({ port: 80, path: '/metrics' })
  })

  it('is rejected with the port of the status server, without a valid port or path, or if it is not JSON', () => {
    expect(() => readMetricsTarget('{"port":"15020"}', 15_020)).to.throw(/^port: 15020 is the port of the status server/)
    expect(() => readMetricsTarget('{"port":"web"}', 15_020)).to.throw(/^port: expected a whole number/)
    expect(() => readMetricsTarget('{"path":1}', 15_020)).to.throw(/^path: expected text/)
    expect(() => readMetricsTarget('yes', 15_020)).to.throw(/^is not JSON/)
  })
})
