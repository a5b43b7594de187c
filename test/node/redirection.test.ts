import { expect } from 'chai'
import { type Pod, PodNetwork, type PodProgram, type User } from '../harness/pod.ts'

const injected = ['-p', '15001', '-z', '15006', '-u', '1337', '-m', 'REDIRECT', '-i', '*', '-x', '', '-b', '*', '-d', '15020,8081']

/** Returns the name of the program that answered. */
const whoIn = (text: string) => {
  try {
    return (JSON.parse(text) as { name: string }).name
  } catch {
    return text
  }
}

/** A pod with an application, and a program that stands in for the proxy and the agent's DNS server. */
class ServedPod {
  readonly pod: Pod
  app!: PodProgram
  proxy!: PodProgram

  constructor(pod: Pod) {
    this.pod = pod
  }

  async start(): Promise<this> {
    ;[this.app, this.proxy] = await Promise.all([this.pod.program('application'), this.pod.program('proxy')])
    for (const port of [22, 8080, 8081]) await this.app.do('listen', { port, name: 'app' })
    for (const [port, name] of [
      [15001, 'outbound'],
      [15006, 'inbound'],
      [15053, 'dns'],
    ] as const)
      await this.proxy.do('listen', { port, name })
    await this.proxy.do('listenUdp', { port: 15053, name: 'dns' })
    return this
  }

  /** Runs a command of the agent and returns its output. Throws if the exit status is not `status`. */
  async command(args: readonly string[], user: User = 'root', status = 0, env: Record<string, string> = {}): Promise<string> {
    const { code, stdout, stderr } = await this.pod.agentCommand(args, { user, env })
    if (code !== status) throw new Error(`${args.join(' ')}: status ${code} instead of ${status}: ${stderr}${stdout}`)
    return stdout + stderr
  }
}

describe('redirection in a pod', () => {
  let network: PodNetwork
  let other: Pod
  let served: ServedPod
  let caller: PodProgram

  before(async () => {
    network = new PodNetwork()
    other = network.pod('both')
    served = new ServedPod(network.pod())
    const [node] = await Promise.all([
      network.node.program('root'),
      served.start(),
      other.program('application').then((program) => (caller = program)),
    ])
    for (const port of [80, 3306]) await caller.do('listen', { port, name: 'other' })
    await node.do('listen', { port: 53, name: 'resolver' })
    await node.do('listenUdp', { port: 53, name: 'resolver' })
  })
  after(() => network.dispose())

  const to = async (program: PodProgram, host: string, port: number) => whoIn(await program.do('dial', { host, port }))
  const query = async (program: PodProgram, resolver = network.node.ipv4) => [
    whoIn(await program.do('ask', { host: resolver, port: 53 })),
    whoIn(await program.do('dial', { host: resolver, port: 53 })),
  ]

  it('sends inbound and outbound connections of the application to the proxy, except excluded and local ones', async () => {
    const { pod, app, proxy } = served
    await served.command(['mesh-iptables', ...injected, '-o', '3306'])
    expect(await to(caller, pod.ipv4, 8080)).to.equal('inbound')
    expect(await to(app, other.ipv4, 80)).to.equal('outbound')
    // Excluded ports, and SSH.
    expect([await to(caller, pod.ipv4, 8081), await to(caller, pod.ipv4, 22), await to(app, other.ipv4, 3306)]).to.deep.equal(['app', 'app', 'other'])
    // Not redirected: connections of the application to its own pod, and of the proxy, except to the address of its own pod.
    expect([await to(app, pod.ipv4, 8080), await to(app, '127.0.0.1', 8080), await to(proxy, '127.0.0.1', 8080)]).to.deep.equal(['app', 'app', 'app'])
    expect([await to(proxy, other.ipv4, 80), await to(proxy, pod.ipv4, 8080)]).to.deep.equal(['other', 'inbound'])
    expect(whoIn(await proxy.do('dial', { host: pod.ipv4, port: 8080, from: '127.0.0.6' }))).to.equal('app')
    expect(await query(app)).to.deep.equal(['resolver', 'outbound'])
  })

  it('with DNS is replaced by a second run, and is removed completely without touching foreign rules', async () => {
    const { pod, app, proxy } = served
    const own = ['-A PREROUTING -i eth9 -j RETURN', '-A OUTPUT -p udp -m udp --dport 53 -m owner --uid-owner 1000 -j RETURN']
    await served.command(['mesh-clean-iptables'])
    const before = pod.rules()
    expect(before.filter((line) => line.includes('MESH'))).to.deep.equal([])
    for (const rule of own) pod.system('iptables', '-t', 'nat', ...rule.split(' '))
    const dns = [...injected, '--redirect-dns', '-k', 'tap0']
    await served.command(['mesh-iptables', ...dns])
    const once = pod.rules()
    pod.system('iptables', '-t', 'nat', '-D', ...(own[1] as string).split(' ').slice(1))
    expect(await query(app)).to.deep.equal(['dns', 'dns'])
    expect(await query(proxy)).to.deep.equal(['resolver', 'resolver'])
    await served.command(['mesh-iptables', ...dns, '--restore-format'], 'root', 0, { PROXY_PORT: '1' })
    expect(pod.rules().toSorted()).to.deep.equal(once.filter((line) => line !== own[1]).toSorted())
    await served.command(['mesh-clean-iptables'])
    expect(pod.rules()).to.deep.equal(before.toSpliced(before.lastIndexOf('COMMIT'), 0, own[0] as string))
    expect([await to(caller, pod.ipv4, 8080), await to(app, other.ipv4, 80), ...(await query(app))]).to.deep.equal([
      'app',
      'other',
      'resolver',
      'resolver',
    ])
    pod.system('iptables', '-t', 'nat', '-D', ...(own[0] as string).split(' ').slice(1))
  })

  it('preserves source addresses in TPROXY mode, and removes its routes with its rules', async () => {
    const { pod } = served
    const routes = () => [pod.system('ip', 'rule'), pod.system('ip', 'route', 'show', 'table', 'all')]
    const before = routes()
    const tproxy = ['-i', '*', '-b', '8080', '-z', '15007', '-m', 'TPROXY']
    for (const mark of ['1337', '1338', '1338']) await served.command(['mesh-iptables', ...tproxy, '-t', mark])
    const marked = pod
      .system('ip', 'rule')
      .split('\n')
      .filter((line) => line.includes('fwmark'))
    expect(marked.map((line) => line.replace(/^\d+:\s+/, '').trim())).to.deep.equal(['from all fwmark 0x53a lookup 133'])
    await startTransparent(pod, '0.0.0.0')
    expect(await caller.do('dial', { host: pod.ipv4, port: 8080 })).to.equal(`${pod.ipv4} 8080 from ${other.ipv4}`)
    expect(await to(caller, pod.ipv4, 8081)).to.equal('app')
    await served.command(['mesh-clean-iptables'])
    expect(routes()).to.deep.equal(before)
    expect(pod.rules().filter((line) => line.includes('MESH') || line.includes('mark'))).to.deep.equal([])
  })

  it('passes validation as the user of the proxy, and fails with an exit status if it is absent or not permitted', async () => {
    const { pod } = served
    const ports = ['-p', '16001', '-z', '16006']
    await served.command(['mesh-iptables', '-i', '*', '-b', '*', ...ports, '-n', '--run-validation', '--probe-timeout', '100ms'], 'proxy', 126)
    await served.command(['mesh-iptables', '-i', '*', '-b', '*', ...ports])
    expect(await served.command(['mesh-iptables', ...ports, '--skip-rule-apply', '--run-validation'], 'proxy')).to.include('Validation passed')
    expect(await served.command(['mesh-iptables', '-i', '*'], 'proxy', 2)).to.include('Error: iptables-save failed')
    await served.command(['mesh-iptables', '-i', '*', '-f'], 'root', 1, { TMPDIR: '/etc/hosts' })
    await served.command(['mesh-clean-iptables'])
    expect(pod.rules().filter((line) => line.includes('MESH'))).to.deep.equal([])
  })

  it('works for IPv6 including DNS, and is removed completely', async () => {
    const six = await new ServedPod(network.pod('ipv6')).start()
    const { pod, app, proxy } = six
    const before = pod.rules(6)
    const loopback = () => pod.system('ip', '-6', '-o', 'addr', 'show', 'dev', 'lo')
    const addresses = loopback()
    for (const flags of [['-m', 'TPROXY'], ['--redirect-dns']]) await six.command(['mesh-iptables', ...injected, ...flags])
    expect([
      await to(caller, pod.ipv6, 8080),
      await to(caller, pod.ipv6, 8081),
      await to(app, other.ipv6, 80),
      await to(proxy, other.ipv6, 80),
    ]).to.deep.equal(['inbound', 'app', 'outbound', 'other'])
    expect(whoIn(await proxy.do('dial', { host: pod.ipv6, port: 8080, from: '::6' }))).to.equal('app')
    expect([await query(app, network.node.ipv6), await query(proxy, network.node.ipv6)]).to.deep.equal([
      ['dns', 'dns'],
      ['resolver', 'resolver'],
    ])
    await six.command(['mesh-clean-iptables'])
    expect(pod.rules(6).filter((line) => /MESH|15053/.test(line))).to.deep.equal(before)
    expect(loopback()).to.equal(addresses)
  })

  it('captures both families in a pod with both, also TPROXY, and passes validation for both', async () => {
    const both = await new ServedPod(network.pod('both')).start()
    const { pod, app, proxy } = both
    const state = () => [
      ...([4, 6] as const).flatMap((family) => pod.rules(family).filter((line) => line.startsWith('-A'))),
      ...[4, 6].flatMap((family) => [
        pod.system('ip', `-${family}`, 'rule'),
        /.* table 133 .*/.exec(pod.system('ip', `-${family}`, 'route', 'show', 'table', 'all'))?.[0],
      ]),
      pod.system('ip', '-6', '-o', 'addr', 'show', 'dev', 'lo'),
    ]
    const before = state()
    await both.command(['mesh-iptables', ...injected, '--redirect-dns'])
    for (const family of ['ipv4', 'ipv6'] as const) {
      expect([
        await to(caller, pod[family], 8080),
        await to(caller, pod[family], 8081),
        await to(app, other[family], 80),
        await to(proxy, other[family], 80),
        await to(app, pod[family], 8080),
        await to(proxy, pod[family], 8080),
      ]).to.deep.equal(['inbound', 'app', 'outbound', 'other', 'app', 'inbound'])
      expect([...(await query(app, network.node[family])), ...(await query(proxy, network.node[family]))]).to.deep.equal([
        'dns',
        'dns',
        'resolver',
        'resolver',
      ])
    }
    // Link-local addresses are addresses too.
    expect(await to(caller, `${linkLocalOf(pod)}%eth0`, 8080)).to.equal('inbound')
    const neighbour = { host: `${linkLocalOf(other)}%eth0`, port: 80, timeoutMs: 3000 }
    // The kernel cannot redirect these: no answer passes the loopback interface. They do not go past the proxy.
    expect(await app.do('dial', neighbour)).to.equal('ETIMEDOUT')
    expect(whoIn(await proxy.do('dial', neighbour))).to.equal('other')
    await both.command(['mesh-iptables', ...injected, '-x', 'fe80::/10'])
    expect(whoIn(await app.do('dial', neighbour))).to.equal('other')
    await both.command(['mesh-clean-iptables'])
    for (const mark of ['1337', '1338', '1338'])
      await both.command(['mesh-iptables', '-i', '*', '-b', '8080', '-z', '15007', '-m', 'TPROXY', '-t', mark])
    for (const address of ['0.0.0.0', '::'] as const) await startTransparent(pod, address)
    for (const family of ['ipv4', 'ipv6'] as const)
      expect(await caller.do('dial', { host: pod[family], port: 8080 })).to.equal(`${pod[family]} 8080 from ${other[family]}`)
    await both.command(['mesh-clean-iptables'])
    expect(state()).to.deep.equal(before)
    const ports = ['-p', '16001', '-z', '16006']
    await both.command(['mesh-iptables', '-i', '*', '-b', '*', ...ports])
    const passed = await both.command(['mesh-iptables', ...ports, '--skip-rule-apply', '--run-validation'], 'proxy')
    expect(passed.match(/Validation passed/g)).to.have.length(2)
    pod.system('ip6tables', '-t', 'nat', '-F', 'MESH_IN_REDIRECT')
    const failed = await both.command(['mesh-iptables', ...ports, '--skip-rule-apply', '--run-validation', '--probe-timeout', '1s'], 'proxy', 126)
    expect(failed).to.include('no connection to ::6 port 15002 arrived')
    await both.command(['mesh-clean-iptables'])
  })

  it('captures an address that comes later', async () => {
    const later = await new ServedPod(network.pod('ipv4')).start()
    const { pod } = later
    await later.command(['mesh-iptables', ...injected])
    pod.system('sysctl', '-qw', 'net.ipv6.conf.eth0.disable_ipv6=0')
    pod.system('ip', '-6', 'addr', 'add', `${pod.ipv6}/64`, 'dev', 'eth0', 'nodad')
    pod.system('ip', '-6', 'route', 'add', 'default', 'dev', 'eth0')
    expect([await to(caller, pod.ipv6, 8080), await to(later.app, other.ipv6, 80)]).to.deep.equal(['inbound', 'outbound'])
  })

  it('leaves IPv6 alone on request only, and captures it also where it is switched on later', async () => {
    const { pod, app } = await new ServedPod(network.pod('both')).start()
    const command = async (...flags: string[]) => pod.agentCommand(['mesh-iptables', ...injected, ...flags], { user: 'root' })
    const passed = await command('--mesh-ipv6', 'pass')
    expect([passed.code, passed.stderr]).to.satisfy(([code, text]: [number, string]) => code === 0 && text.includes('goes past the proxy'))
    expect([await to(app, other.ipv6, 80), await to(app, other.ipv4, 80)]).to.deep.equal(['other', 'outbound'])
    expect((await command()).code).to.equal(0)
    expect(await to(app, other.ipv6, 80)).to.equal('outbound')
    expect((await command('--mesh-ipv6', 'pass')).code).to.equal(0)
    expect(pod.rules(6).filter((line) => line.includes('MESH'))).to.deep.equal([])
    pod.system('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1')
    expect(await command()).to.include({ code: 0, stderr: '' })
    pod.system('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=0')
    pod.addresses('eth0', 'ipv6')
    expect([await to(app, other.ipv6, 80), await to(caller, pod.ipv6, 8080)]).to.deep.equal(['outbound', 'inbound'])
  })
})

/** Returns the link-local address of a pod. */
const linkLocalOf = (pod: Pod): string => /inet6 (fe80:[^/]+)/.exec(pod.system('ip', '-6', 'addr', 'show', 'dev', 'eth0'))?.[1] as string

/** Starts a transparent server on port 15007. It answers each connection with the original destination and the source address. */
async function startTransparent(pod: Pod, address: '0.0.0.0' | '::'): Promise<void> {
  const python = pod.spawn(['python3', '-c', transparent, address], { user: 'root' })
  await new Promise((resolve) => python.stdout?.once('data', resolve))
}

/** IP_TRANSPARENT is 19, IPV6_TRANSPARENT 75. */
const transparent = `
import socket, sys
isIpv6 = ':' in sys.argv[1]
server = socket.socket(socket.AF_INET6 if isIpv6 else socket.AF_INET, socket.SOCK_STREAM)
server.setsockopt(socket.IPPROTO_IPV6 if isIpv6 else socket.SOL_IP, 75 if isIpv6 else 19, 1)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if isIpv6: server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
server.bind((sys.argv[1], 15007))
server.listen(8)
print('listening', flush=True)
while True:
  connection, peer = server.accept()
  own = connection.getsockname()
  connection.sendall(f'{own[0]} {own[1]} from {peer[0]}'.encode())
  connection.close()
`
