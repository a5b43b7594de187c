import { expect } from 'chai'
import fc from 'fast-check'
import { excludesAll, nameServers, type RedirectSettings } from '../../../src/iptables/options.ts'
import { redirectRules } from '../../../src/iptables/rules.ts'
import { restoreText } from '../../../src/iptables/text.ts'
import { runs } from '../../harness/seed.ts'
import { read } from './given.ts'

const passwd = 'root:x:0:0:root:/root:/bin/sh\nmesh-proxy:x:1400:1400::/:/bin/false\nodd:x:minus:0::/:\n'
const flags: (keyof RedirectSettings)[] = [
  'proxy-port',
  'inbound-capture-port',
  'inbound-tunnel-port',
  'mesh-inbound-ports',
  'mesh-inbound-tproxy-mark',
  'mesh-inbound-tproxy-route-table',
  'mesh-local-exclude-ports',
  'mesh-local-outbound-ports-exclude',
  'mesh-outbound-ports',
  'orch-virt-interfaces',
  'proxy-gid',
  'proxy-uid',
]

describe('redirection options', () => {
  it('have the defaults that users of the proxy know', () => {
    const { options } = read()
    expect(options).to.include({ proxyPort: '15001', inboundPort: '15006', tunnelPort: '15008', mark: '1337', routeTable: '133', isTproxy: false })
    expect([options.uids, options.gids]).to.deep.equal([['1337'], ['1337']])
  })

  it("take the proxy's user from the host, and resolve users and groups by name", () => {
    expect(read({}, { passwd }).options).to.deep.include({ uids: ['1400'], gids: ['1400'] })
    expect(read({ 'proxy-uid': '7' }, { passwd }).options).to.deep.include({ uids: ['7'], gids: ['7'] })
    const given = read({ 'proxy-uid': 'root,1338,1338', 'proxy-gid': 'mesh' }, { passwd, group: 'mesh:x:55:\n' })
    expect(given.options).to.deep.include({ uids: ['0', '1338'], gids: ['55'] })
    expect(() => read({ 'proxy-uid': 'odd' }, { passwd })).to.throw('--proxy-uid: "odd" is not a numeric id, or a name that this host knows')
  })

  it('ignore empty list items', () => {
    expect(read({ 'mesh-inbound-ports': '80,, 81,' }).options.inboundPorts).to.deep.equal(['80', '81'])
  })

  it('are rejected with the flag if a value is not a valid port, user, interface, mark or table', () => {
    for (const [flag, value] of [
      ['proxy-port', '0'],
      ['proxy-port', '65536'],
      ['inbound-capture-port', '15006 -j ACCEPT'],
      ['inbound-tunnel-port', '-1'],
      ['mesh-inbound-ports', '80,*'],
      ['mesh-inbound-ports', '90:80'],
      ['mesh-outbound-ports', '80\nCOMMIT'],
      ['mesh-inbound-tproxy-mark', '0'],
      ['mesh-inbound-tproxy-mark', '010'],
      ['mesh-inbound-tproxy-mark', '1/1'],
      ['mesh-inbound-tproxy-route-table', '254'],
      ['mesh-inbound-tproxy-route-table', 'main'],
      ['orch-virt-interfaces', '-j'],
      ['orch-virt-interfaces', 'a234567890123456'],
      ['proxy-uid', '4294967295'],
      ['proxy-gid', '!'],
      ['proxy-uid', ','],
    ] as const)
      expect(() => read({ [flag]: value }), `${flag} ${value}`).to.throw(`--${flag}: `)
  })

  it('leave out invalid ranges with a warning, and are rejected if no range would be captured', () => {
    const { options, warnings } = read({ 'mesh-service-cidr': '10.0.0.0/8,10.0.0.1,10.0.0.0/33', 'mesh-service-exclude-cidr': 'fd00::/129' })
    expect(options.outboundRanges[4]).to.deep.equal(['10.0.0.0/8'])
    expect(warnings).to.deep.equal([
      '--mesh-service-cidr: "10.0.0.1" is not a range such as 10.0.0.0/8 or fd00::/8; it is left out',
      '--mesh-service-cidr: "10.0.0.0/33" is not a range such as 10.0.0.0/8 or fd00::/8; it is left out',
      '--mesh-service-exclude-cidr: "fd00::/129" is not a range such as 10.0.0.0/8 or fd00::/8; it is left out',
    ])
    expect(() => read({ 'mesh-service-cidr': '10.0.0.1' })).to.throw('nothing outbound would be captured')
  })

  it('warn about all ranges excluded, an unknown mode, and no DNS server', () => {
    expect([
      excludesAll(read({ 'mesh-service-exclude-cidr': '*' }).options),
      excludesAll(read({ 'mesh-service-exclude-cidr': '10.0.0.0/8,*' }).options),
    ]).to.deep.equal([true, true])
    expect(excludesAll(read({ 'mesh-service-exclude-cidr': '10.0.0.0/8' }).options)).to.equal(false)
    expect(read({ 'mesh-inbound-interception-mode': 'NONE' }).warnings[0]).to.include('"NONE" is neither REDIRECT nor TPROXY')
    expect(read({}, { resolvConf: 'nameserver fd00::1' }).warnings[0]).to.include('no query is redirected')
    expect(read({}, { resolvConf: 'nameserver fd00::1', ipv6: 'on' }).warnings).to.deep.equal([])
  })

  it('name each DNS server once, without link-local ones', () => {
    const text =
      '# nameserver 1.1.1.1\nnameserver 10.0.0.1\n nameserver\t10.0.0.1 # twice\nnameserver fe80::1%eth0\nnameserver fd00::1\nnameserver nine\n'
    expect(nameServers(text)).to.deep.equal({ 4: ['10.0.0.1'], 6: ['fd00::1'] })
  })

  it('never turn a value into another option, line or rule', () => {
    const hostile = fc.stringMatching(/^[0-9:,a-z*+!\-/ \n"'.]{1,12}$/)
    fc.assert(
      fc.property(fc.constantFrom(...flags), hostile, (flag, value) => {
        const text = () =>
          restoreText(
            redirectRules(
              read({ [flag]: value, 'mesh-service-cidr': '*', ...(flag === 'mesh-inbound-ports' ? {} : { 'mesh-inbound-ports': '*' }) }).options,
              4,
            ),
          )
        let lines: string[]
        try {
          lines = text().trimEnd().split('\n')
        } catch (error) {
          expect((error as Error).message.startsWith(`--${flag}: `)).to.equal(true)
          return
        }
        for (const line of lines) expect(line).to.match(/^(\* nat|COMMIT|-N MESH_\w+|-[AI] [A-Z_]+( 1)?( !? ?-[a-z-]+( [\w./:*+@-]+)?)+)$/)
      }),
      { numRuns: runs(500) },
    )
  })
})
