import { expect } from 'chai'
import { clientKey } from '../../../src/model/client-address.ts'

describe('clients that share limits', () => {
  it('count by IPv4 address, or by the first 64 bits of an IPv6 address, however it is written', () => {
    for (const [address, key] of [
      ['10.0.0.1', '10.0.0.1'],
      ['127.0.0.2', '127.0.0.2'],
      ['::ffff:10.0.0.1', '10.0.0.1'],
      ['::FFFF:10.0.0.1', '10.0.0.1'],
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
      ['2001:0DB8:1:2::6', '2001:db8:1:2::/64'],
      ['2001:db8::1', '2001:db8:0:0::/64'],
      ['2001:db8:0:0:ffff::', '2001:db8:0:0::/64'],
      ['2001:db8:0:0:1:2:3.4.5.6', '2001:db8:0:0::/64'],
      ['::1', '0:0:0:0::/64'],
      ['fe80::1%eth0', 'fe80:0:0:0::/64'],
      ['', ''],
    ] as const)
      expect(clientKey(address), address).to.equal(key)
    expect(clientKey(undefined)).to.equal('')
  })
})
