import { expect } from 'chai'
import { readRanges, refusal } from '../../../src/policy/key-addresses.ts'
import { sortedKeySet } from '../../../src/policy/key-set.ts'

describe('addresses of key set servers', () => {
  it('must not be loopback, link-local, metadata, multicast or translated addresses', () => {
    const refused = [
      '127.0.0.1',
      '127.9.9.9',
      '::1',
      '::ffff:127.0.0.1',
      '0.0.0.0',
      '::',
      '169.254.169.254',
      'fe80::1',
      '100.100.100.200',
      'fd00:ec2::254',
      'fd00:ec2::23',
      'fd20:ce::254',
      'fd20:00ce:0:0:0:0:0:254',
      'fd20:ce::254%eth0',
      'fd00:c1::a9fe:a9fe',
      'fd00:42::42',
      'fd00:a9fe:a9fe::1',
      'fd00:100::100:200',
      '100.96.0.96',
      '::ffff:100.96.0.96',
      '64:ff9b::6460:60',
      '224.0.0.1',
      '255.255.255.255',
      '168.63.129.16',
      '64:ff9b::a9fe:a9fe',
      '64:ff9b:1::1',
      '2002:7f00:1::1',
      '2001:0:1::1',
      '::ffff:0:127.0.0.1',
      '::127.0.0.1',
      '::8.8.8.8',
      'fec0::1',
      'feff::1',
      '100::1',
      'x',
    ]
    for (const address of refused) expect(refusal(address, []), address).to.be.a('string')
    for (const address of ['10.0.0.1', '192.168.1.1', '93.184.216.34', '2001:4860::1', 'fd00::1', 'fd20:ce::255', '100.96.0.97'])
      expect(refusal(address, []), address).to.equal(undefined)
  })

  it('may be loopback or link-local if the setting allows their range', () => {
    const allowed = readRanges('127.0.0.1, 169.254.0.0/16,::1')
    for (const address of ['127.0.0.1', '::ffff:127.0.0.1', '169.254.169.254', '::1']) expect(refusal(address, allowed), address).to.equal(undefined)
    expect(refusal('127.0.0.2', allowed)).to.include('loopback')
    expect(refusal('64:ff9b::808:808', readRanges('64:ff9b::/96')), 'where the network translates').to.equal(undefined)
    expect(() => readRanges('127.0.0.1/99')).to.throw('is not an IP address or range')
  })
})

describe('key sets', () => {
  it('have the same text if their keys are equal, in any order', () => {
    const [one, other] = [
      { kid: 'a', kty: 'EC' },
      { kty: 'RSA', kid: 'b' },
    ]
    expect(sortedKeySet(JSON.stringify({ keys: [one, other] }))).to.equal(
      sortedKeySet(JSON.stringify({ keys: [{ kid: 'b', kty: 'RSA' }, one], more: 1 })),
    )
  })
})
