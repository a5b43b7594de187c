import { expect } from 'chai'
import type { KernelIpv6 } from '../../../actors/agent/kernel-ipv6.ts'
import { cleanRedirection } from '../../../actors/agent/redirect/clean.ts'
import type { HostAccess, Outcome } from '../../../actors/agent/redirect/programs.ts'
import { redirect } from '../../../actors/agent/redirect/redirect.ts'
import { redirectFlags, redirectOrder } from '../../../src/cli/redirect-flags.ts'
import { readAgentFeatures } from '../../../src/config/agent-features.ts'
import { parseLine } from '../../harness/command-line.ts'

const { features } = readAgentFeatures({})
const { flags: standards } = await parseLine([], { flags: redirectFlags })
const order = (flags: Record<string, string | boolean>) =>
  redirectOrder({ ...standards, 'mesh-service-cidr': '*', 'mesh-inbound-ports': '*', ...flags }, {}, features, [])

/** A host whose programs give the answers that belong to the beginning of their command lines. Records commands, output and warnings. */
function host(answers: Record<string, Partial<Outcome>> = {}, { routesLoopback = true, ipv6 = 'absent' as KernelIpv6 } = {}) {
  const ran: string[] = []
  const said: string[] = []
  const warned: string[] = []
  const surroundings: HostAccess = {
    readHost: ({ proxyUser }) => ({ address: '10.0.0.1', ipv6, passwd: '', group: '', proxyUser, resolvConf: undefined, routesLoopback }),
    kernelIpv6: () => ipv6,
    run: (program, args) => {
      const line = [program, ...args].join(' ')
      ran.push(line)
      const [, answer] = Object.entries(answers).find(([beginning]) => line.startsWith(beginning)) ?? []
      return { output: '', error: '', ...answer }
    },
    say: (line) => said.push(...line.split('\n')),
    warn: (line) => warned.push(line),
  }
  return { surroundings, ran, said, warned }
}

/** The lines that remove chains. */
const chainsOf = (...chains: string[]) => [...chains.map((chain) => `-F ${chain}`), ...chains.map((chain) => `-X ${chain}`)]

/** Returns exit status and message of the error that a promise is rejected with. */
async function failureOf(promise: Promise<void>): Promise<[status: unknown, message: string]> {
  const error = await promise.then(
    () => undefined,
    (reason) => reason,
  )
  return [error?.exitStatus, String(error?.message)]
}

describe('the redirection commands', () => {
  it('run nothing in a dry run, and print the commands that they would run', async () => {
    const tried = host()
    await redirect(order({ 'dry-run': true, 'mesh-inbound-interception-mode': 'TPROXY' }), tried.surroundings)
    await cleanRedirection(true, tried.surroundings)
    expect(tried.ran).to.deep.equal([])
    expect(tried.said.slice(0, 3)).to.deep.equal(['Environment:', '------------', 'PROXY_PORT='])
    expect(tried.said).to.include.members([
      'INBOUND_INTERCEPTION_MODE=TPROXY',
      'ip -f inet rule add fwmark 1337 lookup 133',
      'ip -f inet route add local default dev lo table 133',
      'iptables -t nat -N MESH_INBOUND',
      'iptables -t mangle -A PREROUTING -p tcp -j MESH_INBOUND',
      'iptables-save',
      'iptables -t nat -D OUTPUT -p tcp -j MESH_OUTPUT',
      'ip6tables -t nat -X MESH_IN_REDIRECT',
    ])
  })

  it('test all rules before they change any, and stop at the first failure', async () => {
    const refused = host({ 'iptables-restore --noflush --wait=30 --test': { error: 'status 1: line 3 failed' } })
    expect(await failureOf(redirect(order({}), refused.surroundings))).to.deep.equal([
      2,
      'iptables-restore --noflush --wait=30 --test failed: status 1: line 3 failed',
    ])
    expect(refused.ran.filter((line) => line.includes('restore'))).to.deep.equal(['iptables-restore --noflush --wait=30 --test'])
    const taken = host({}, { ipv6: 'on' })
    await redirect(order({}), taken.surroundings)
    expect(taken.ran.filter((line) => line.includes('restore') || line.endsWith('save'))).to.deep.equal([
      'iptables-save',
      'ip6tables-save',
      'ip6tables-restore --noflush --wait=30 --test',
      'iptables-restore --noflush --wait=30 --test',
      'ip6tables-restore --noflush --wait=30',
      'iptables-restore --noflush --wait=30',
      'iptables-save',
      'ip6tables-save',
    ])
    const alone = host()
    await redirect(order({}), alone.surroundings)
    expect(alone.ran.filter((line) => /ip6tables|inet6| -6 /.test(line))).to.deep.equal([])
  })

  it('take back what they have done when IPv4 cannot be redirected after IPv6', async () => {
    const half = host({ 'iptables-restore --noflush --wait=30': { error: 'status 4' } }, { ipv6: 'on' })
    const inputs: string[] = []
    const run: HostAccess['run'] = (program, args, input = '') => {
      inputs.push([program, ...args, input].join(' '))
      return args.includes('--test') ? { output: '', error: '' } : half.surroundings.run(program, args, input)
    }
    const failed = redirect(order({ 'mesh-inbound-interception-mode': 'TPROXY', 'orch-virt-interfaces': 'tap0' }), { ...half.surroundings, run })
    expect(await failureOf(failed)).to.deep.equal([2, 'iptables-restore --noflush --wait=30 failed: status 4'])
    const after = inputs.slice(inputs.findIndex((line) => line.startsWith('iptables-restore --noflush --wait=30 *')) + 1)
    expect(after[0]?.split('\n')).to.deep.equal([
      ...['ip6tables-restore --noflush --wait=30 * nat', '-D PREROUTING -i tap0 -j RETURN', '-D OUTPUT -p tcp -j MESH_OUTPUT'],
      ...['-D PREROUTING -i tap0 -j MESH_REDIRECT', ...chainsOf('MESH_INBOUND', 'MESH_REDIRECT', 'MESH_IN_REDIRECT', 'MESH_OUTPUT'), 'COMMIT'],
      ...['* mangle', '-D PREROUTING -p tcp -j MESH_INBOUND', '-D PREROUTING -p tcp -m mark --mark 1337 -j CONNMARK --save-mark'],
      ...['-D OUTPUT -p tcp -m connmark --mark 1337 -j CONNMARK --restore-mark', ...chainsOf('MESH_DIVERT', 'MESH_TPROXY', 'MESH_INBOUND'), 'COMMIT'],
      '',
    ])
    expect(after.slice(1).map((line) => line.trim())).to.deep.equal([
      'ip -f inet route del local default dev lo table 133',
      'ip -f inet rule del fwmark 1337 lookup 133',
      'ip -f inet6 route del local default dev lo table 133',
      'ip -f inet6 rule del fwmark 1337 lookup 133',
      'ip -6 addr del ::6/128 dev lo',
    ])
  })

  it('exit with 2 without iptables, and without ip6tables where the host has IPv6', async () => {
    const bare = host({ 'iptables-save': { error: 'iptables-save is not on this host' } })
    expect(await failureOf(redirect(order({}), bare.surroundings))).to.deep.equal([2, 'iptables-save failed: iptables-save is not on this host'])
    const half = { 'ip6tables-save': { error: 'ip6tables-save is not on this host' } }
    const on = host(half, { ipv6: 'on' })
    const [status, message] = await failureOf(redirect(order({}), on.surroundings))
    expect(status).to.equal(2)
    expect(message).to.match(/^ip6tables-save failed: ip6tables-save is not on this host; this network namespace has IPv6.*: install ip6tables/)
    expect(on.ran.filter((line) => !line.startsWith('ip -f inet rule'))).to.deep.equal(['iptables-save', 'ip6tables-save'])
    await redirect(order({ 'mesh-ipv6': 'pass' }), on.surroundings)
    expect(on.warned).to.deep.equal(['warning: --mesh-ipv6 pass: traffic over IPv6 goes past the proxy and all policies'])
    const old = { 'ip6tables-restore': { error: 'status 3: table nat does not exist' } }
    for (const [ipv6, answers] of [
      ['off', half],
      ['off', old],
      ['absent', half],
    ] as const) {
      const tried = host(answers, { ipv6 })
      await redirect(order({ 'restore-format': true }), tried.surroundings)
      expect(tried.warned).to.deep.equal([])
      expect(tried.ran).to.not.include('ip6tables-restore --noflush --wait=30')
      expect(tried.said).to.include('ENABLE_INBOUND_IPV6=false')
      await cleanRedirection(false, tried.surroundings)
    }
  })

  it('capture IPv6 also while it is switched off, when no address can be set', async () => {
    const off = host({}, { ipv6: 'off' })
    await redirect(order({}), off.surroundings)
    expect(off.ran).to.include('ip6tables-restore --noflush --wait=30')
    expect(off.ran.filter((line) => line.startsWith('ip -6 addr add'))).to.deep.equal([])
  })

  it('say what to do where the kernel cannot redirect IPv6', async () => {
    const old = host({ 'ip6tables-restore': { error: 'status 3: table nat does not exist' } }, { ipv6: 'on' })
    expect((await failureOf(redirect(order({}), old.surroundings)))[1]).to.match(/^ip6tables-restore .*table nat does not exist; this network/)
    expect(old.ran.slice(-1)).to.deep.equal(['ip -6 addr del ::6/128 dev lo'])
  })

  it('exit with 2 if every range is excluded, and with the status for invalid arguments otherwise', async () => {
    const tried = host()
    expect((await failureOf(redirect(order({ 'mesh-service-exclude-cidr': '*' }), tried.surroundings)))[0]).to.equal(2)
    expect((await failureOf(redirect(order({ 'proxy-port': 'x' }), tried.surroundings)))[0]).to.equal(undefined)
    expect(tried.ran).to.deep.equal([])
  })

  it('warn that TPROXY needs route_localnet for replies from loopback addresses', async () => {
    const strict = host({}, { routesLoopback: false })
    await redirect(order({ 'mesh-inbound-interception-mode': 'TPROXY' }), strict.surroundings)
    await redirect(order({}), strict.surroundings)
    expect(strict.warned).to.have.length(1)
    expect(strict.warned[0]).to.include('net.ipv4.conf.all.route_localnet is 0')
  })

  it('print all routes if a route cannot be set', async () => {
    const busy = host({ 'ip -f inet route add': { error: 'status 2' }, 'ip route show table all': { output: 'default via 10.0.0.1' } })
    const [status] = await failureOf(redirect(order({ 'mesh-inbound-interception-mode': 'TPROXY' }), busy.surroundings))
    expect(status).to.equal(2)
    expect(busy.said.slice(-2)).to.deep.equal(['ip route show table all', 'default via 10.0.0.1'])
  })

  it('clean up nothing of IPv6 without ip6tables, and fail if its rules cannot be read', async () => {
    const saved = '*nat\n:MESH_OUTPUT - [0:0]\n-A OUTPUT -p tcp -j MESH_OUTPUT\nCOMMIT\n'
    const absent = host({ 'ip6tables-save': { error: 'ip6tables-save is not on this host', isAbsent: true } }, { ipv6: 'on' })
    await cleanRedirection(false, absent.surroundings)
    const failing = host({ 'iptables-save': { output: saved }, 'ip6tables-save': { error: 'status 4: try again' } }, { ipv6: 'on' })
    expect(await failureOf(cleanRedirection(false, failing.surroundings))).to.deep.equal([2, 'ip6tables-save failed: status 4: try again'])
    expect(failing.ran).to.include('iptables-restore --noflush --wait=30')
  })

  it('clean up as much as possible, and fail if something remains', async () => {
    const saved = '*nat\n:MESH_OUTPUT - [0:0]\n-A OUTPUT -p tcp -j MESH_OUTPUT\nCOMMIT\n'
    const held = host({
      'iptables-save': { output: saved },
      'ip6tables-save': { output: saved },
      'ip -6 addr show': { output: 'inet6 ::6/128 scope global' },
      'iptables-restore': { error: 'status 4' },
      'ip -f inet rule show': { output: '32765: from all fwmark 0x539 lookup 133\n' },
      'ip -f inet route show': { output: 'local default dev lo scope host\n' },
    })
    expect(await failureOf(cleanRedirection(false, held.surroundings))).to.deep.equal([
      2,
      'iptables-restore --noflush --wait=30 --test failed: status 4',
    ])
    expect(held.ran).to.include.members([
      'ip -f inet rule del fwmark 1337 lookup 133',
      'ip -f inet route del local default dev lo table 133',
      'ip6tables-restore --noflush --wait=30',
      'ip -6 addr del ::6/128 dev lo',
    ])
  })
})
