import { expect } from 'chai'
import { cleanFlags, redirectFlags, redirectFlagsFor, redirectOrder } from '../../../src/cli/redirect-flags.ts'
import { readAgentFeatures } from '../../../src/config/agent-features.ts'
import { parseLine } from '../../harness/command-line.ts'
import { rejected } from '../../harness/rejected.ts'

/** Returns the redirection settings for a command line and an environment. */
async function order(line: readonly string[], environment: Record<string, string> = {}) {
  const { features } = readAgentFeatures(environment)
  const { flags, warnings } = await parseLine(line, { flags: redirectFlagsFor(features) }, environment)
  return redirectOrder(flags, environment, features, warnings)
}

const isDryClean = async (line: readonly string[], environment: Record<string, string>) =>
  (await parseLine(line, { flags: cleanFlags }, environment)).flags['dry-run']

describe('settings of traffic redirection', () => {
  it('take a given flag, even if it is empty, else the variable of its name unless that is empty', async () => {
    const environment = { MESH_SERVICE_CIDR: '*', PROXY_PORT: '16001', MESH_INBOUND_PORTS: '', ORCH_VIRT_INTERFACES: 'tap0' }
    expect((await order([], environment)).settings).to.include({
      'mesh-service-cidr': '*',
      'proxy-port': '16001',
      'mesh-inbound-ports': '',
      'orch-virt-interfaces': 'tap0',
    })
    const given = await order(['-i', '', '-p', '15001', '-b', '*'], environment)
    expect(given.settings).to.include({ 'mesh-service-cidr': '', 'proxy-port': '15001', 'mesh-inbound-ports': '*' })
    expect(Object.fromEntries(given.environment)).to.include({ PROXY_PORT: '16001', MESH_SERVICE_CIDR: '*', MESH_INBOUND_PORTS: '' })
  })

  it('include switches and durations, from flags and from variables', async () => {
    const environment = {
      DRY_RUN: 'true',
      RESTORE_FORMAT: '1',
      SKIP_RULE_APPLY: 'T',
      RUN_VALIDATION: 'true',
      PROBE_TIMEOUT: '1m',
      IPTABLES_PROBE_PORT: '16002',
    }
    expect(await order(['--restore-format=false'], environment)).to.include({
      isDryRun: true,
      restoreFormat: false,
      skipRuleApply: true,
      runValidation: true,
      probeTimeoutMs: 60_000,
      probePort: 16_002,
    })
    expect(await order([])).to.include({ isDryRun: false, restoreFormat: false, probeTimeoutMs: 5000, probePort: 15_002, proxyUser: 'mesh-proxy' })
    expect([await isDryClean([], { DRY_RUN: 'true' }), await isDryClean(['-n'], {}), await isDryClean([], {})]).to.deep.equal([true, true, false])
  })

  it('capture DNS if the agent does, unless flag or variable say otherwise', async () => {
    const capture = { MESH_META_DNS_CAPTURE: 'true' }
    const lines = [
      order([], capture),
      order([], { ...capture, REDIRECT_DNS: 'false' }),
      order([], { ...capture, REDIRECT_DNS: 'perhaps' }),
      order(['--redirect-dns=false'], capture),
      order([]),
    ]
    expect((await Promise.all(lines)).map((it) => it.redirectDns)).to.deep.equal([true, false, true, false, false])
  })

  it('leave out a variable that cannot be parsed with a warning, and reject such a flag', async () => {
    const { warnings, ...values } = await order([], { DRY_RUN: 'perhaps', PROBE_TIMEOUT: 'soon' })
    expect(values).to.include({ isDryRun: false, probeTimeoutMs: 5000 })
    expect(warnings).to.deep.equal([
      'environment variable DRY_RUN: "perhaps" cannot be read; it is left out',
      'environment variable PROBE_TIMEOUT: "soon" cannot be read; it is left out',
    ])
    expect(await rejected(order(['--probe-timeout', 'soon']))).to.contain('--probe-timeout')
    expect(await rejected(order(['--no-such-flag']))).to.contain('Nonexistent flag: --no-such-flag')
  })

  it('have the short flags of the specification', () => {
    const short = Object.entries(redirectFlags).flatMap(([name, spec]) => ('char' in spec ? [`${spec.char} ${name}`] : []))
    expect(short).to.have.members([
      'n dry-run',
      'p proxy-port',
      'z inbound-capture-port',
      'e inbound-tunnel-port',
      'm mesh-inbound-interception-mode',
      'b mesh-inbound-ports',
      't mesh-inbound-tproxy-mark',
      'r mesh-inbound-tproxy-route-table',
      'd mesh-local-exclude-ports',
      'o mesh-local-outbound-ports-exclude',
      'q mesh-outbound-ports',
      'i mesh-service-cidr',
      'x mesh-service-exclude-cidr',
      'k orch-virt-interfaces',
      'g proxy-gid',
      'u proxy-uid',
      'f restore-format',
    ])
  })
})
