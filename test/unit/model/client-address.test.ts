import { expect } from 'chai'
import { clientKey, networkOf } from '../../../src/model/client-address.ts'

describe('clients that share limits', () => {
  it('count by IPv4 address, whether or not it is mapped', () => {
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '::FFFF:10.1.2.3']) expect(clientKey(address)).to.equal('10.1.2.3')
    expect(clientKey('10.1.2.4')).not.to.equal(clientKey('10.1.2.3'))
  })

  it('count by the network of 64 bits of an IPv6 address, however it is written', () => {
    for (const address of ['2001:db8::1', '2001:0db8:0:0::2', '2001:db8:0:0:ffff::', '2001:DB8:0:0:1:2:3.4.5.6', '2001:db8::%eth0'])
      expect(clientKey(address), address).to.equal('2001:db8:0:0::/64')
    expect(clientKey('2001:db8:0:1::1')).to.equal('2001:db8:0:1::/64')
    expect(clientKey('fe80::1:2:3:4%2')).to.equal('fe80:0:0:0::/64')
  })

  it('count as one on loopback addresses, and on unix sockets', () => {
    for (const address of ['127.0.0.1', '127.9.8.7', '::1', '::ffff:127.0.0.6']) expect(clientKey(address)).to.equal('loopback')
    expect(clientKey(undefined)).to.equal('')
  })
})

describe('the network of a client', () => {
  it('is an IPv4 address, or the first 64 bits of an IPv6 address', () => {
    for (const [address, network] of [
      ['10.0.0.1', '10.0.0.1'],
      ['127.0.0.2', '127.0.0.2'],
      ['::ffff:10.0.0.1', '10.0.0.1'],
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
      ['2001:0db8:1:2::6', '2001:db8:1:2::/64'],
      ['2001:db8::1', '2001:db8:0:0::/64'],
      ['::1', '0:0:0:0::/64'],
      ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ] as const)
      expect(networkOf(address), address).to.equal(network)
  })
})
