import { expect } from 'chai'
import { addressesInHosts, fullNames, isFromServers } from '../../../src/dns/name-search.ts'

describe('how the system finds a name', () => {
  it('is by the hosts file and name servers, unless nsswitch.conf names other sources', () => {
    expect(isFromServers('a.test', undefined)).to.equal(true)
    for (const sources of [
      'files dns',
      'files resolve [!UNAVAIL=return] dns myhostname',
      'mymachines files mdns4_minimal [NOTFOUND=return] dns',
      'files dns # ldap',
    ])
      expect(isFromServers('a.test', `passwd: ldap\nhosts:\t${sources}\n`), sources).to.equal(true)
    for (const sources of ['files ldap dns', 'files', 'wins dns', '']) expect(isFromServers('a.test', `hosts: ${sources}`), sources).to.equal(false)
    for (const name of ['printer.local', 'printer.LOCAL.']) expect(isFromServers(name, 'hosts: files mdns4_minimal dns')).to.equal(false)
    expect(isFromServers('a.test', 'passwd: files')).to.equal(false)
  })

  it('is by all lines of the hosts file with the name, in any case', () => {
    const hosts = '127.0.0.1 localhost # loopback\n::1\tlocalhost ip6-localhost\n10.0.0.1 a.test A2.test\nno-address a.test\n# 10.0.0.9 a.test\n'
    expect(addressesInHosts('localhost', hosts)).to.deep.equal(['127.0.0.1', '::1'])
    expect(addressesInHosts('a2.TEST.', hosts)).to.deep.equal(['10.0.0.1'])
    expect(addressesInHosts('b.test', hosts)).to.deep.equal([])
  })

  it('is with search domains, first or last as ndots says, and not for a full name', () => {
    const search = ['shop.svc', 'svc']
    expect(fullNames('keys', { search, ndots: 1 })).to.deep.equal(['keys.shop.svc', 'keys.svc', 'keys'])
    expect(fullNames('keys.auth', { search, ndots: 1 })).to.deep.equal(['keys.auth', 'keys.auth.shop.svc', 'keys.auth.svc'])
    expect(fullNames('keys.auth', { search, ndots: 5 })).to.deep.equal(['keys.auth.shop.svc', 'keys.auth.svc', 'keys.auth'])
    expect(fullNames('keys.auth.', { search, ndots: 5 })).to.deep.equal(['keys.auth'])
  })
})
