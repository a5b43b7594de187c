import { expect } from 'chai'
import { readResolvConf } from '../../../src/dns/resolv-conf.ts'

describe('the resolver configuration of the system', () => {
  it('gives nameservers in order and the search domains of the last such line', () => {
    const text =
      '# comment\nnameserver 10.96.0.10\nnameserver fe80::1%eth0 # zone\nnameserver 10.96.0.10\ndomain old.local\nsearch Shop.svc.cluster.local. svc.cluster.local\noptions ndots:5\n'
    expect(readResolvConf(text)).to.deep.equal({
      servers: ['10.96.0.10', 'fe80::1%eth0'],
      search: ['shop.svc.cluster.local', 'svc.cluster.local'],
      ndots: 5,
    })
    expect(readResolvConf('options ndots:3 rotate\noptions ndots:x ndots:99').ndots).to.equal(15)
    expect(readResolvConf('search a b\ndomain c').search).to.deep.equal(['c'])
  })

  it('ignores lines that cannot be parsed, and keeps at most 16 nameservers', () => {
    expect(readResolvConf('nameserver\nnameserver example.com\n nameserver 1.2.3.4\nsearch .\n\u0000\n')).to.deep.equal({
      servers: ['1.2.3.4'],
      search: [],
      ndots: 1,
    })
    expect(
      readResolvConf('nameserver 10.0.0.1\n'.replace('1\n', '') + Array.from({ length: 90 }, (_, index) => `nameserver 10.0.1.${index}`).join('\n'))
        .servers,
    ).to.have.length(16)
  })
})
