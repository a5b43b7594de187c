import { expect } from 'chai'
import { redirectRules } from '../../../src/iptables/rules.ts'
import { commandLines } from '../../../src/iptables/text.ts'
import { listing, read } from './given.ts'

const injected = {
  'proxy-port': '15001',
  'inbound-capture-port': '15006',
  'proxy-uid': '1337',
  'mesh-inbound-interception-mode': 'REDIRECT',
  'mesh-service-cidr': '*',
  'mesh-inbound-ports': '*',
  'mesh-local-exclude-ports': '15090,15021,15020',
}

const resolvConf = 'search shop.svc.cluster.local\nnameserver 10.96.0.10\nnameserver fd00:10::a\n'

const base = [
  '-A MESH_INBOUND -p tcp --dport 15008 -j RETURN',
  '-A MESH_REDIRECT -p tcp -j REDIRECT --to-ports 15001',
  '-A MESH_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006',
]
const chains = ['-N MESH_INBOUND', '-N MESH_REDIRECT', '-N MESH_IN_REDIRECT', '-N MESH_OUTPUT']
const owner = (kind: string, id: string, dns = '') => [
  `-A MESH_OUTPUT -o lo ! -d 127.0.0.1/32${dns} -m owner --${kind}-owner ${id} -j MESH_IN_REDIRECT`,
  `-A MESH_OUTPUT -o lo${dns} -m owner ! --${kind}-owner ${id} -j RETURN`,
  `-A MESH_OUTPUT -m owner --${kind}-owner ${id} -j RETURN`,
]
const output = ['-A OUTPUT -p tcp -j MESH_OUTPUT', '-A MESH_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN']

/** The complete output for an injected container. */
const complete = `* nat
-N MESH_INBOUND
-N MESH_REDIRECT
-N MESH_IN_REDIRECT
-N MESH_OUTPUT
-A MESH_INBOUND -p tcp --dport 15008 -j RETURN
-A MESH_REDIRECT -p tcp -j REDIRECT --to-ports 15001
-A MESH_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
-A PREROUTING -p tcp -j MESH_INBOUND
-A MESH_INBOUND -p tcp --dport 22 -j RETURN
-A MESH_INBOUND -p tcp --dport 15090 -j RETURN
-A MESH_INBOUND -p tcp --dport 15021 -j RETURN
-A MESH_INBOUND -p tcp --dport 15020 -j RETURN
-A MESH_INBOUND -p tcp -j MESH_IN_REDIRECT
-A OUTPUT -p tcp -j MESH_OUTPUT
-A MESH_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN
-A MESH_OUTPUT -o lo ! -d 127.0.0.1/32 -m owner --uid-owner 1337 -j MESH_IN_REDIRECT
-A MESH_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN
-A MESH_OUTPUT -m owner --uid-owner 1337 -j RETURN
-A MESH_OUTPUT -o lo ! -d 127.0.0.1/32 -m owner --gid-owner 1337 -j MESH_IN_REDIRECT
-A MESH_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN
-A MESH_OUTPUT -m owner --gid-owner 1337 -j RETURN
-A MESH_OUTPUT -d 127.0.0.1/32 -j RETURN
-A MESH_OUTPUT -j MESH_REDIRECT
COMMIT`

describe('redirection rules', () => {
  it('for an injected container are the rules that users know', () => {
    expect(listing(injected)).to.deep.equal(complete.split('\n'))
  })

  it('are the same as single commands: chains first, then rules', () => {
    const { options } = read(injected)
    const lines = complete.split('\n').slice(1, -1)
    expect(commandLines('iptables', redirectRules(options, 4))).to.deep.equal(lines.map((line) => `iptables -t nat ${line}`))
  })

  it('without inbound and outbound capture only distinguish the sender', () => {
    expect(listing({})).to.deep.equal([
      '* nat',
      ...chains,
      ...base,
      ...output,
      ...owner('uid', '1337'),
      ...owner('gid', '1337'),
      '-A MESH_OUTPUT -d 127.0.0.1/32 -j RETURN',
      'COMMIT',
    ])
  })

  it('capture listed ports and ranges and skip excluded ones, with several users, groups and interfaces', () => {
    const flags = {
      'inbound-tunnel-port': '16008',
      'mesh-inbound-ports': '80,8000:8010',
      'mesh-local-exclude-ports': '81',
      'mesh-local-outbound-ports-exclude': '3306,5432',
      'mesh-outbound-ports': '9200,9300',
      'mesh-service-cidr': '10.1.2.3/8,192.168.0.0/16,fd00::/8',
      'mesh-service-exclude-cidr': '10.9.0.0/16,fd01::/16',
      'orch-virt-interfaces': 'tap0,tap1',
      'proxy-uid': '1337,1338',
      'proxy-gid': '1400',
    }
    expect(listing(flags)).to.deep.equal([
      '* nat',
      ...chains,
      '-I PREROUTING 1 -i tap0 -j RETURN',
      '-I PREROUTING 1 -i tap1 -j RETURN',
      '-A MESH_INBOUND -p tcp --dport 16008 -j RETURN',
      ...base.slice(1),
      '-A PREROUTING -p tcp -j MESH_INBOUND',
      '-A MESH_INBOUND -p tcp --dport 80 -j MESH_IN_REDIRECT',
      '-A MESH_INBOUND -p tcp --dport 8000:8010 -j MESH_IN_REDIRECT',
      output[0],
      '-A MESH_OUTPUT -p tcp --dport 3306 -j RETURN',
      '-A MESH_OUTPUT -p tcp --dport 5432 -j RETURN',
      output[1],
      ...owner('uid', '1337'),
      ...owner('uid', '1338'),
      ...owner('gid', '1400'),
      '-A MESH_OUTPUT -d 127.0.0.1/32 -j RETURN',
      '-A MESH_OUTPUT -d 10.9.0.0/16 -j RETURN',
      '-A MESH_OUTPUT -p tcp --dport 9200 -j MESH_REDIRECT',
      '-A MESH_OUTPUT -p tcp --dport 9300 -j MESH_REDIRECT',
      '-I PREROUTING 1 -i tap0 -d 10.0.0.0/8 -j MESH_REDIRECT',
      '-I PREROUTING 1 -i tap1 -d 10.0.0.0/8 -j MESH_REDIRECT',
      '-A MESH_OUTPUT -d 10.0.0.0/8 -j MESH_REDIRECT',
      '-I PREROUTING 1 -i tap0 -d 192.168.0.0/16 -j MESH_REDIRECT',
      '-I PREROUTING 1 -i tap1 -d 192.168.0.0/16 -j MESH_REDIRECT',
      '-A MESH_OUTPUT -d 192.168.0.0/16 -j MESH_REDIRECT',
      '-A MESH_OUTPUT -j RETURN',
      'COMMIT',
    ])
  })

  it('treat traffic from virtual machine interfaces as outbound, before all other rules', () => {
    const lines = listing({ 'mesh-service-cidr': '*', 'orch-virt-interfaces': 'tap0' })
    expect(lines.slice(-3)).to.deep.equal(['-A MESH_OUTPUT -j MESH_REDIRECT', '-I PREROUTING 1 -i tap0 -j MESH_REDIRECT', 'COMMIT'])
    expect(lines).to.include('-I PREROUTING 1 -i tap0 -j RETURN')
  })

  it("leave an application's traffic to itself to later rules if a loopback range is captured", () => {
    const lines = listing({ 'mesh-service-cidr': '127.1.2.0/24' })
    expect(lines.filter((line) => line.includes('! --uid-owner'))).to.deep.equal([])
    expect(listing({ 'mesh-service-cidr': '127.1.2.0/24' }, { ipv6: 'on' }, 6)).to.include(
      '-A MESH_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN',
    )
  })

  it('redirect DNS over TCP and UDP to the agent, except that of the proxy', () => {
    const notDns = ' -p tcp ! --dport 53'
    expect(listing({ 'mesh-service-cidr': '*' }, { resolvConf })).to.deep.equal([
      '* nat',
      ...chains,
      ...base,
      ...output,
      ...owner('uid', '1337', notDns),
      ...owner('gid', '1337', notDns),
      '-A MESH_OUTPUT -p tcp --dport 53 -d 10.96.0.10/32 -j REDIRECT --to-ports 15053',
      '-A MESH_OUTPUT -d 127.0.0.1/32 -j RETURN',
      '-A MESH_OUTPUT -j MESH_REDIRECT',
      '-A OUTPUT -p udp --dport 53 -m owner --uid-owner 1337 -j RETURN',
      '-A OUTPUT -p udp --dport 53 -m owner --gid-owner 1337 -j RETURN',
      '-A OUTPUT -p udp --dport 53 -d 10.96.0.10/32 -j REDIRECT --to-port 15053',
      'COMMIT',
    ])
  })
})

describe('redirection rules in TPROXY mode', () => {
  const tproxy = { ...injected, 'mesh-inbound-interception-mode': 'TPROXY' }
  const marked = [
    '-A PREROUTING -p tcp -m mark --mark 1337 -j CONNMARK --save-mark',
    '-A OUTPUT -p tcp -m connmark --mark 1337 -j CONNMARK --restore-mark',
    '-I MESH_INBOUND 1 -p tcp -m mark --mark 1337 -j RETURN',
  ]
  const mangle = (lines: readonly string[]) => lines.slice(lines.indexOf('* mangle'))

  it('divert inbound connections in the mangle table, and keep the outbound rules', () => {
    const lines = listing(tproxy)
    expect(mangle(lines)).to.deep.equal([
      '* mangle',
      '-N MESH_DIVERT',
      '-N MESH_TPROXY',
      '-N MESH_INBOUND',
      '-A MESH_DIVERT -j MARK --set-mark 1337',
      '-A MESH_DIVERT -j ACCEPT',
      '-A MESH_TPROXY ! -d 127.0.0.1/32 -p tcp -j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006',
      '-A PREROUTING -p tcp -j MESH_INBOUND',
      '-A MESH_INBOUND -p tcp --dport 22 -j RETURN',
      '-A MESH_INBOUND -p tcp --dport 15090 -j RETURN',
      '-A MESH_INBOUND -p tcp --dport 15021 -j RETURN',
      '-A MESH_INBOUND -p tcp --dport 15020 -j RETURN',
      '-A MESH_INBOUND -p tcp -m conntrack --ctstate RELATED,ESTABLISHED -j MESH_DIVERT',
      '-A MESH_INBOUND -p tcp -j MESH_TPROXY',
      ...marked,
      'COMMIT',
    ])
    const inbound = complete.split('\n').slice(8, 14)
    const passedThrough = '-A MESH_OUTPUT -o lo -p tcp -m mark --mark 1337 -j RETURN'
    expect(lines.slice(0, lines.indexOf('* mangle')).filter((line) => line !== passedThrough)).to.deep.equal(
      complete.split('\n').filter((line) => !inbound.includes(line)),
    )
    expect(lines.indexOf(passedThrough)).to.equal(lines.indexOf('-A MESH_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN') + 1)
  })

  it('divert only listed ports, with the configured mark and port', () => {
    const flags = { ...tproxy, 'mesh-inbound-ports': '80,81', 'mesh-inbound-tproxy-mark': '0x10', 'inbound-capture-port': '16006' }
    const lines = mangle(listing(flags))
    expect(lines).to.include('-A MESH_TPROXY ! -d 127.0.0.1/32 -p tcp -j TPROXY --tproxy-mark 0x10/0xffffffff --on-port 16006')
    expect(lines.filter((line) => line.startsWith('-A MESH_INBOUND'))).to.deep.equal([
      '-A MESH_INBOUND -p tcp --dport 80 -m conntrack --ctstate RELATED,ESTABLISHED -j MESH_DIVERT',
      '-A MESH_INBOUND -p tcp --dport 80 -j MESH_TPROXY',
      '-A MESH_INBOUND -p tcp --dport 81 -m conntrack --ctstate RELATED,ESTABLISHED -j MESH_DIVERT',
      '-A MESH_INBOUND -p tcp --dport 81 -j MESH_TPROXY',
    ])
  })

  it('divert nothing without inbound ports', () => {
    expect(mangle(listing({ ...tproxy, 'mesh-inbound-ports': '' }))).to.deep.equal(['* mangle', '-N MESH_INBOUND', ...marked, 'COMMIT'])
  })

  it('divert inbound IPv6 connections as those of IPv4', () => {
    const ipv6 = listing(tproxy).map((line) => line.replaceAll('127.0.0.6/32', '::6/128').replaceAll('127.0.0.1/32', '::1/128'))
    expect(listing(tproxy, { ipv6: 'on' }, 6)).to.deep.equal(ipv6)
  })
})

describe('redirection rules of IPv6', () => {
  it('equal those of IPv4 with IPv6 addresses', () => {
    const ipv6 = complete.replaceAll('127.0.0.6/32', '::6/128').replaceAll('127.0.0.1/32', '::1/128')
    expect(listing(injected, { ipv6: 'on' }, 6)).to.deep.equal(ipv6.split('\n'))
    expect(listing(injected, { ipv6: 'on' })).to.deep.equal(complete.split('\n'))
  })

  it('are created wherever the kernel has IPv6, unless it is passed on request', () => {
    const rules = (ipv6: 'absent' | 'off' | 'on', flag = '') => redirectRules(read({ ...injected, 'mesh-ipv6': flag }, { ipv6 }).options, 6)
    expect([rules('on').length, rules('on', 'capture').length, rules('off').length]).to.deep.equal([19, 19, 19])
    expect([rules('absent'), rules('on', 'pass')]).to.deep.equal([[], []])
    expect(() => rules('on', 'reject')).to.throw('--mesh-ipv6: "reject" is not capture or pass')
  })

  it('capture IPv6 ranges, and DNS of IPv6 nameservers', () => {
    const lines = listing(
      { 'mesh-service-cidr': '10.0.0.0/8,FD00:1::1/32', 'mesh-service-exclude-cidr': 'fd00:2::/32' },
      { ipv6: 'on', resolvConf },
      6,
    )
    expect(lines).to.include.members([
      '-A MESH_OUTPUT -d fd00:2::/32 -j RETURN',
      '-A MESH_OUTPUT -d fd00:1::/32 -j MESH_REDIRECT',
      '-A MESH_OUTPUT -p tcp --dport 53 -d fd00:10::a/128 -j REDIRECT --to-ports 15053',
      '-A OUTPUT -p udp --dport 53 -d fd00:10::a/128 -j REDIRECT --to-port 15053',
    ])
    expect(lines.join('\n')).not.to.include('10.')
  })
})
