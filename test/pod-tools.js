// What the tests with pods need of the machine: root, network namespaces, and the programs that make and fill them.
import { spawnSync } from 'node:child_process'

const programs = ['ip', 'iptables', 'ip6tables', 'iptables-restore', 'ip6tables-restore', 'setpriv', 'sysctl', 'python3']

/** Why pods cannot be made here, or undefined. */
export function missingForPods() {
  if (process.platform !== 'linux') return 'pods are network namespaces, which only Linux has'
  if (process.getuid?.() !== 0) return 'pods are network namespaces, which only root can make'
  const absent = programs.filter((program) => spawnSync(program, ['--version']).error?.code === 'ENOENT')
  if (absent.length > 0) return `not installed: ${absent.join(', ')} (Debian packages iproute2, iptables, util-linux, procps, python3)`
  const name = `mesh-${process.pid}-probe`
  const steps = [
    ['ip', 'netns', 'add', name],
    ['ip', 'netns', 'exec', name, 'iptables', '-t', 'nat', '-A', 'OUTPUT', '-p', 'tcp', '-m', 'owner', '--uid-owner', '1', '-j', 'RETURN'],
  ]
  try {
    for (const [program, ...args] of steps) {
      const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' })
      if (status !== 0) return `${[program, ...args].join(' ')}: ${stderr.trim()}`
    }
    return undefined
  } finally {
    spawnSync('ip', ['netns', 'del', name])
  }
}
