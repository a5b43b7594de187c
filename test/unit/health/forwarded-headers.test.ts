import { expect } from 'chai'
import { isMergeable, probeHeaders, textFormats } from '../../../src/health/forwarded-headers.ts'

describe('headers of a forwarded probe', () => {
  it('are those of the request without hop-by-hop headers', () => {
    const incoming = [
      'Host',
      'pod:15020',
      'User-Agent',
      'kube-probe/1.30',
      'X-Twice',
      'a',
      'x-twice',
      'b',
      'Connection',
      'Close, X-Hop',
      'x-hop',
      '1',
    ]
    const more = ['Transfer-Encoding', 'chunked', 'Content-Length', '4', 'TE', 'trailers', 'Upgrade', 'h2c', 'Proxy-Authorization', 'Basic eA==']
    expect(probeHeaders([...incoming, ...more], [], 'localhost:9000')).to.deep.equal([
      'Host',
      'localhost:9000',
      'Connection',
      'close',
      'User-Agent',
      'kube-probe/1.30',
      'X-Twice',
      'a',
      'x-twice',
      'b',
    ])
  })

  it('are overridden by the headers of the probe; its Host or :authority sets the host', () => {
    const own = [
      { name: 'x-twice', value: 'mine' },
      { name: 'X-Empty' },
      { name: ':authority', value: 'app.test' },
      { name: 'Connection', value: 'keep-alive' },
    ]
    expect(probeHeaders(['X-Twice', 'a', 'X-Twice', 'b', 'X-Other', 'c'], own, 'localhost')).to.deep.equal([
      'Host',
      'app.test',
      'Connection',
      'close',
      'X-Other',
      'c',
      'x-twice',
      'mine',
      'X-Empty',
      '',
    ])
    expect(probeHeaders([], [{ name: 'hOST', value: 'other.test' }], 'localhost').slice(0, 2)).to.deep.equal(['Host', 'other.test'])
  })
})

describe('formats of merged metrics', () => {
  it('are requested as text formats that can be concatenated', () => {
    const prometheus =
      'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
    expect(textFormats(prometheus)).to.equal('text/plain;version=0.0.4;q=0.5,*/*;q=0.1')
    expect(textFormats('application/openmetrics-text')).to.match(/^text\/plain;version=0\.0\.4/)
    expect(textFormats(undefined)).to.match(/^text\/plain/)
  })

  it('are recognised as mergeable by content type and encoding', () => {
    expect(isMergeable('text/plain; version=0.0.4', undefined)).to.equal(true)
    expect(isMergeable(undefined, undefined)).to.equal(true)
    expect(isMergeable('application/openmetrics-text; version=1.0.0', 'identity')).to.equal(true)
    expect(isMergeable('text/plain', 'gzip')).to.equal(false)
    expect(isMergeable('application/vnd.google.protobuf', undefined)).to.equal(false)
    expect(isMergeable('text/html', undefined)).to.equal(false)
  })
})
