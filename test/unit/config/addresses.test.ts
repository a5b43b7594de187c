import { expect } from 'chai'
import { canonicalAddress, isIp, isIpOrCidr, leadsToCaller, unixFault } from '../../../src/config/addresses.ts'

describe("addresses of the caller's own machine, link or metadata service", () => {
  const leading = [
    ...['127.0.0.1', '127.255.255.254', '0.0.0.0', '0.1.2.3', '169.254.169.254', '169.254.0.1', '224.0.0.1', '239.1.1.1', '255.255.255.255'],
    ...['::1', '::', '0:0:0:0:0:0:0:1', 'fe80::1', 'fe80::1%eth0', 'ff02::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::FFFF:169.254.169.254'],
    ...['64:ff9b::7f00:1', '64:ff9b::169.254.169.254', '2002:7f00:1::', '::127.0.0.1', '::ffff:0:127.0.0.1', 'fd00:ec2::254'],
    ...['100.100.100.200', '168.63.129.16', '192.0.0.192'],
    ...[
      'localhost',
      'LOCALHOST.',
      'x.localhost',
      'ip6-localhost',
      'localhost.localdomain',
      '127.1',
      '2130706433',
      '0x7f.1',
      '0x7f000001',
      '0177.0.0.01',
      '127.0.0.1.',
    ],
    ...['unix:///run/x', 'unix://@abstract', 'unix:x'],
  ]
  const ordinary = [
    ...['10.0.0.1', '192.168.1.1', '100.64.0.1', '1.2.3.4', '223.255.255.255', '240.0.0.1', '169.253.1.1'],
    ...['2001:db8::1', 'fd00::1', '::ffff:10.0.0.1', '64:ff9b::10.0.0.1', '2002:a00:1::', 'a:b'],
    ...['app.example', 'localhost.example', 'notlocalhost', 'x1', '1.example', 'a.b0x', ''],
  ]
  for (const address of leading) it(`include ${address}`, () => expect(leadsToCaller(address)).to.equal(true))
  for (const address of ordinary) it(`do not include ${JSON.stringify(address)}`, () => expect(leadsToCaller(address)).to.equal(false))
})

describe('addresses in the form that Envoy accepts', () => {
  it('have four decimal parts, or are IPv6 without a zone', () => {
    for (const text of ['10.0.0.1', '0.0.0.0', '::', '2001:db8::1', '::ffff:1.2.3.4', 'FD00::1']) expect(isIp(text), text).to.equal(true)
    for (const text of ['127.1', '010.001.0.1', '0x7f.1', '1.2.3.256', '1.2.3.4.5', 'fe80::1%eth0', '1::2::3', '[::1]', 'localhost', '', '1.2.3.4/8'])
      expect(isIp(text), text).to.equal(false)
  })

  it('have parts of 0 to 255 without leading zeros', () => {
    for (const part of [...Array(1000).keys()].flatMap((number) => [`${number}`, `0${number}`, `00${number}`]))
      for (const text of [`${part}.1.1.1`, `1.${part}.1.1`, `1.1.1.${part}`])
        expect(isIp(text), text).to.equal(Number(part) <= 255 && part === String(Number(part)))
    for (const text of ['1.2.3', '1.2.3.', '.1.2.3.4', '1.2.3.4\n', ' 1.2.3.4', '1.2.3.4.', '1..3.4', '1.2.3.-4'])
      expect(isIp(text), text).to.equal(false)
  })

  it('may have a prefix length within the address size, without leading zeros', () => {
    for (const text of ['10.0.0.0/8', '10.0.0.1/8', '0.0.0.0/0', '::/0', '::ffff:1.2.3.4/120', '::1/128'])
      expect(isIpOrCidr(text), text).to.equal(true)
    for (const text of ['10.0.0.0/33', '::/129', '10.0.0.0/08', '10.0.0.0/010', '10.0.0.0/', '10.0.0.0/ 8', '10.0.0.0/+8', '10.0.0.0/8/8', '127.1/8'])
      expect(isIpOrCidr(text), text).to.equal(false)
  })

  it('have one canonical spelling', () => {
    expect(['2001:DB8:0::1', '2001:db8:0:0:0:0:0:1/64', '10.0.0.1', 'a.example.com', 'unix:///a:b'].map(canonicalAddress)).to.deep.equal([
      '2001:db8::1',
      '2001:db8::1/64',
      '10.0.0.1',
      'a.example.com',
      'unix:///a:b',
    ])
  })

  it('include unix sockets with a path of 1 to 107 bytes', () => {
    expect([`unix:///${'x'.repeat(106)}`, 'unix://@a', 'a.example.com', '10.0.0.1'].map(unixFault)).to.deep.equal([
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    expect(unixFault(`unix:///${'x'.repeat(107)}`)).to.equal('the path of the unix socket has 108 bytes; 1 to 107 are allowed')
    expect(unixFault('unix://')).to.match(/0 bytes/)
  })
})
