import { expect } from 'chai'
import { leadsToCaller } from '../../../src/config/addresses.ts'

describe('addresses that lead callers to their own machine or link', () => {
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
  for (const address of leading) it(`${address} does`, () => expect(leadsToCaller(address)).to.equal(true))
  for (const address of ordinary) it(`${JSON.stringify(address)} does not`, () => expect(leadsToCaller(address)).to.equal(false))
})
