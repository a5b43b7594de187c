/** Pods as network namespaces, each with its own address and DNS servers. A bridge in a namespace of its own connects them. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { agentScript } from './commands.ts'
import type { Orders } from './pod-program.ts'
import type { CommandResult } from './service.ts'
import { until } from './until.ts'

const program = fileURLToPath(new URL('./pod-program.ts', import.meta.url))

/** The user ids of the proxy and its agent, of the application, and of root. */
export const users = { proxy: 1337, application: 1000, root: 0 } as const
export type User = keyof typeof users

/** Returns the command prefix that runs a program as a user. */
const asUser = (user: User, ...more: string[]) => {
  const id = String(users[user])
  return user === 'root' ? [] : ['setpriv', '--reuid', id, '--regid', id, '--clear-groups', ...more]
}

/**
 * Returns the options of `setpriv` for a process's capabilities. When the application's user cannot read the checkout, the capability to
 * read all files is added.
 */
function rights(...wanted: readonly string[]): string[] {
  const [program = '', ...args] = [...asUser('application'), 'test', '-r', agentScript, '-a', '-x', process.execPath]
  const all = [...wanted, ...(spawnSync(program, args).status === 0 ? [] : ['dac_read_search'])].map((name) => `+${name}`).join(',')
  return all === '' ? [] : ['--inh-caps', all, '--ambient-caps', all]
}

/** Runs a command of the system. Throws an Error with its standard error when it fails. */
function system(...command: string[]): string {
  const { status, stdout, stderr } = spawnSync(command[0] as string, command.slice(1), { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command.join(' ')}: ${stderr}`)
  return stdout
}

/** How a process is started in a pod. */
export interface ProcessOptions {
  readonly user: User
  /** A capability of a user other than root, in the notation of `setpriv`: `net_admin`. */
  readonly capability?: string
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** The network namespaces of a test. */
export class PodNetwork {
  /** The namespace with the bridge and everything outside of pods. */
  readonly node: Pod
  readonly #pods: Pod[] = []
  #count = 0

  constructor() {
    removeLeftovers()
    this.node = new Pod(`mesh-${process.pid}-node`, '10.77.0.1', 'fd77::1')
    this.node.open()
    this.node.system('ip', 'link', 'add', 'bridge', 'type', 'bridge')
    this.node.system('ip', 'link', 'set', 'bridge', 'up')
    this.node.addresses('bridge', 'both')
  }

  /**
   * Creates a pod. Its DNS servers are the node's addresses; `families` selects its address families, and `hosts` are entries of its hosts
   * file.
   */
  pod(families: 'ipv4' | 'ipv6' | 'both' = 'ipv4', hosts: Readonly<Record<string, string>> = {}): Pod {
    const number = ++this.#count + 1
    const pod = new Pod(`mesh-${process.pid}-${number}`, `10.77.0.${number}`, `fd77::${number}`)
    this.#pods.push(pod)
    const resolvers = [...(families === 'ipv6' ? [] : [this.node.ipv4]), ...(families === 'ipv4' ? [] : [this.node.ipv6])]
    mkdirSync(`/etc/netns/${pod.name}`, { recursive: true })
    writeFileSync(`/etc/netns/${pod.name}/resolv.conf`, `${resolvers.map((resolver) => `nameserver ${resolver}\n`).join('')}options ndots:1\n`)
    const known = Object.entries(hosts).map(([name, address]) => `${address} ${name}\n`)
    writeFileSync(`/etc/netns/${pod.name}/hosts`, `127.0.0.1 localhost\n::1 localhost\n${known.join('')}`)
    pod.open()
    const [inside, outside] = ['eth0', `veth${number}`]
    system('ip', '-n', this.node.name, 'link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', pod.name)
    system('ip', '-n', this.node.name, 'link', 'set', outside, 'master', 'bridge', 'up')
    pod.system('ip', 'link', 'set', inside, 'up')
    pod.addresses(inside, families)
    return pod
  }

  /** Kills all processes and removes all namespaces. */
  async dispose(): Promise<void> {
    for (const pod of [...this.#pods, this.node]) await pod.close()
  }
}

/** Removes the namespaces of killed test runs, with their processes. */
function removeLeftovers(): void {
  for (const line of system('ip', 'netns', 'list').split('\n')) {
    const [name, pid] = /^mesh-(\d+)-\w+/.exec(line) ?? []
    if (name === undefined || existsSync(`/proc/${pid}`)) continue
    // Another test run may be removing the same namespace.
    for (const left of spawnSync('ip', ['netns', 'pids', name], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean)) endProcess(Number(left))
    spawnSync('ip', ['netns', 'del', name])
    rmSync(`/etc/netns/${name}`, { recursive: true, force: true })
  }
}

/** A network namespace and its processes. */
export class Pod {
  readonly name: string
  readonly ipv4: string
  readonly ipv6: string
  readonly #children: ChildProcess[] = []

  constructor(name: string, ipv4: string, ipv6: string) {
    this.name = name
    this.ipv4 = ipv4
    this.ipv6 = ipv6
  }

  /** Creates the namespace. Every user may listen on every port, as in pods. */
  open(): void {
    system('ip', 'netns', 'add', this.name)
    this.system('ip', 'link', 'set', 'lo', 'up')
    this.system('sysctl', '-qw', 'net.ipv4.ip_unprivileged_port_start=0')
  }

  /** Sets the addresses and default routes of an interface. */
  addresses(link: string, families: 'ipv4' | 'ipv6' | 'both'): void {
    if (families !== 'ipv6') this.system('ip', 'addr', 'add', `${this.ipv4}/24`, 'dev', link)
    if (families !== 'ipv4') this.system('ip', '-6', 'addr', 'add', `${this.ipv6}/64`, 'dev', link, 'nodad')
    else this.system('sysctl', '-qw', `net.ipv6.conf.${link}.disable_ipv6=1`)
    if (families !== 'ipv6') this.system('ip', 'route', 'add', 'default', 'dev', link)
    if (families !== 'ipv4') this.system('ip', '-6', 'route', 'add', 'default', 'dev', link)
  }

  /** Runs a command of the system in the pod, as root. */
  system(...command: string[]): string {
    return system('ip', 'netns', 'exec', this.name, ...command)
  }

  /** The iptables rules of an address family, without comments and counters. */
  rules(family: 4 | 6 = 4): string[] {
    return this.system(family === 6 ? 'ip6tables-save' : 'iptables-save')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.replace(/ \[\d+:\d+\]$/, ''))
  }

  /** Starts a process. */
  spawn(command: readonly string[], { user, capability, cwd = '/', env = {} }: ProcessOptions, channel: 'ipc' | 'ignore' = 'ignore'): ChildProcess {
    const child = spawn('ip', ['netns', 'exec', this.name, ...asUser(user, ...rights(...(capability ? [capability] : []))), ...command], {
      cwd,
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe', channel],
    })
    this.#children.push(child)
    return child
  }

  /** Runs `pilot-agent` to its end. */
  async agentCommand(args: readonly string[], options: ProcessOptions): Promise<CommandResult> {
    const started = performance.now()
    const child = this.spawn([process.execPath, agentScript, ...args], options)
    let stdout = ''
    let stderr = ''
    child.stdout?.on('data', (bytes) => (stdout += bytes))
    child.stderr?.on('data', (bytes) => (stderr += bytes))
    return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr, ms: performance.now() - started })))
  }

  /** Starts a program that executes orders of the test. */
  async program(user: User): Promise<PodProgram> {
    const child = this.spawn([process.execPath, program], { user }, 'ipc')
    const started = new PodProgram(child)
    await started.ready
    return started
  }

  /** The pids of all processes in the pod. */
  processes(): number[] {
    return system('ip', 'netns', 'pids', this.name).split('\n').filter(Boolean).map(Number)
  }

  /** Kills the processes and removes the namespace. */
  async close(): Promise<void> {
    for (const child of this.#children)
      if (child.exitCode === null && child.signalCode === null) {
        const ended = new Promise((resolve) => child.on('exit', resolve))
        child.kill('SIGKILL')
        await ended
      }
    for (const pid of this.processes()) endProcess(pid)
    await until('the processes of a pod to end', () => this.processes().length === 0)
    system('ip', 'netns', 'del', this.name)
    rmSync(`/etc/netns/${this.name}`, { recursive: true, force: true })
  }
}

/** Kills a process that another one has started, such as the proxy of an agent. */
function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has exited already.
  }
}

/** A program in a pod. */
export class PodProgram {
  readonly ready: Promise<void>
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, { resolve(value: never): void; reject(error: Error): void }>()
  #last = 0

  constructor(child: ChildProcess) {
    this.#child = child
    const started = Promise.withResolvers<void>()
    this.ready = started.promise
    let errors = ''
    child.stderr?.on('data', (bytes) => (errors += bytes))
    child.on('exit', () => {
      const error = new Error(`the program of the pod ended: ${errors}`)
      started.reject(error)
      for (const { reject } of this.#waiting.values()) reject(error)
    })
    child.on('message', (message: 'ready' | { id: number; value?: never; error?: string }) => {
      if (message === 'ready') return started.resolve()
      const waiting = this.#waiting.get(message.id)
      this.#waiting.delete(message.id)
      if (message.error === undefined) waiting?.resolve(message.value as never)
      else waiting?.reject(new Error(message.error))
    })
  }

  /** Sends an order and resolves with its outcome. */
  do<Order extends keyof Orders>(order: Order, ...given: Parameters<Orders[Order]>): Promise<Awaited<ReturnType<Orders[Order]>>> {
    const id = ++this.#last
    this.#child.send({ id, order, given: given[0] })
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve: resolve as (value: never) => void, reject }))
  }
}
