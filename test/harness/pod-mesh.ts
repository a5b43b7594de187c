/**
 * A mesh of pods: the real discovery service with its certificate authority on the node, and in each pod an application beside the real
 * agent and proxy, which run as their own user.
 */
import type { ChildProcess } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { agentScript, discoveryScript } from './commands.ts'
import { Output } from './output.ts'
import { type Pod, PodNetwork, type PodProgram, users } from './pod.ts'
import { runCommand } from './service.ts'
import { patienceMs, until } from './until.ts'

const discoveryName = 'meshd.mesh-system.svc'

/** Formats a document of the mesh in the namespace `shop`. */
export const meshDocument = (api: 'networking' | 'security', kind: string, name: string, spec: string) =>
  `apiVersion: ${api}.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}\n`

/** The settings of a pod. */
export interface MeshPodOptions {
  readonly families?: 'ipv4' | 'ipv6' | 'both'
  /** Flags of `mesh-iptables` in addition to those of an injected container. Without it nothing is redirected. */
  readonly redirect?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** A capability of the agent and the proxy, which do not run as root. */
  readonly capability?: string
}

/** The mesh. */
export class PodMesh {
  readonly network = new PodNetwork()
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-pods-'))
  readonly output = new Output()
  readonly #binary: string
  readonly #env: Readonly<Record<string, string>>
  readonly #pods: MeshPod[] = []
  #discovery: ChildProcess | undefined
  /** A program on the node that runs as root and stands in for the orchestrator, for example for probes. */
  node!: PodProgram

  /** `env` are variables of the discovery service. */
  constructor(binary: string, env: Readonly<Record<string, string>> = {}) {
    this.#binary = binary
    this.#env = env
    for (const name of ['config', 'authority', 'run']) mkdirSync(join(this.dir, name))
    for (const name of ['mesh-config', 'networks']) writeFileSync(join(this.dir, name), '')
    chmodSync(join(this.dir, 'run'), 0o700)
    chmodSync(join(this.dir, 'authority'), 0o700)
  }

  get places(): Record<string, string> {
    return { MESHD_CA_STATE_DIR: join(this.dir, 'authority'), MESHD_ADMIN_SOCKET: join(this.dir, 'run/admin.sock') }
  }

  /** Starts the discovery service and waits until it is ready. */
  async startDiscovery(): Promise<void> {
    if (!this.node) {
      this.node = await this.network.node.program('root')
      await this.node.do('knowNoNames', { port: 53 })
    }
    const file = (name: string) => join(this.dir, name)
    const flags = [
      ...['--registries', 'Mock', '--configDir', file('config'), '--meshConfig', file('mesh-config'), '--networksConfig', file('networks')],
      ...['--httpAddr', '127.0.0.1:8080', '--monitoringAddr', '127.0.0.1:15014', '--grpcAddr', '127.0.0.1:15010', '--secureGRPCAddr', ':15012'],
    ]
    const env = { PILOT_MOCK_SERVICES: '0', PILOT_DEBOUNCE_AFTER: '10ms', ...this.places, ...this.#env }
    const child = this.network.node.spawn([process.execPath, discoveryScript, 'discovery', ...flags], { user: 'root', cwd: this.dir, env })
    this.#discovery = child
    this.output.follow(child)
    await until('discovery to be ready', async () => {
      if (child.exitCode !== null) throw new Error(`discovery ended: ${this.output.soFar()}`)
      return (await this.node.do('call', { url: 'http://127.0.0.1:8080/ready' })).status === 200
    })
  }

  /** Stops the discovery service. */
  async stopDiscovery(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#discovery
    this.#discovery = undefined
    if (child) await endOf(child, () => child.kill(signal))
  }

  /** Writes the mesh configuration. */
  configure(text: string): void {
    writeFileSync(join(this.dir, 'mesh-config'), text)
  }

  /** Writes a configuration file. */
  write(name: string, ...documents: readonly string[]): void {
    // A file that is written in place may be read while it is empty, which takes its objects away for a moment.
    const partial = join(this.dir, `.${name}`)
    writeFileSync(partial, documents.join('---\n'))
    renameSync(partial, join(this.dir, 'config', name))
  }

  /** Runs a command of `pilot-discovery` and returns its output. Throws when it fails. */
  async command(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runCommand(args, this.places)
    if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`)
    return stdout
  }

  /** Creates a pod for a workload in the namespace `shop`, with a service account of the same name and an application. */
  async pod(name: string, options: MeshPodOptions = {}): Promise<MeshPod> {
    const pod = new MeshPod(this, name, this.#binary, options)
    this.#pods.push(pod)
    await pod.prepare()
    return pod
  }

  async dispose(): Promise<void> {
    await this.network.dispose()
    for (const { dir } of this.#pods) rmSync(dir, { recursive: true, force: true })
    rmSync(this.dir, { recursive: true, force: true })
  }
}

/** The pod of a workload. */
export class MeshPod {
  readonly name: string
  readonly pod: Pod
  readonly dir: string
  readonly output = new Output()
  app!: PodProgram
  readonly #mesh: PodMesh
  readonly #binary: string
  readonly #options: MeshPodOptions
  #agent: ChildProcess | undefined

  constructor(mesh: PodMesh, name: string, binary: string, options: MeshPodOptions) {
    this.#mesh = mesh
    this.name = name
    this.#binary = binary
    this.#options = options
    this.pod = mesh.network.pod(options.families, { [discoveryName]: options.families === 'ipv6' ? mesh.network.node.ipv6 : mesh.network.node.ipv4 })
    this.dir = mkdtempSync(join(tmpdir(), `mesh-${name}-`))
    chownSync(this.dir, users.proxy, users.proxy)
  }

  get address(): string {
    return this.#options.families === 'ipv6' ? this.pod.ipv6 : this.pod.ipv4
  }

  /** Writes a file in the agent's directory. File and new directories belong to the agent's user. */
  write(path: string, content: string): void {
    const file = join(this.dir, path)
    const made = mkdirSync(dirname(file), { recursive: true })
    for (let folder = dirname(file); made && folder.length >= made.length; folder = dirname(folder)) chownSync(folder, users.proxy, users.proxy)
    writeFileSync(file, content, { mode: 0o600 })
    chownSync(file, users.proxy, users.proxy)
  }

  /** Writes roots and token for the agent, applies the redirect rules, and starts the application. */
  async prepare(): Promise<void> {
    await this.roots()
    await this.token()
    this.write('etc/mesh/pod/labels', `app="${this.name}"\n`)
    if (this.#options.redirect) {
      const flags = ['-p', '15001', '-z', '15006', '-u', '1337', '-i', '*', '-x', '', '-b', '*', '-d', '15090,15021,15020', ...this.#options.redirect]
      const { code, stderr } = await this.pod.agentCommand(['mesh-iptables', ...flags], { user: 'root' })
      if (code !== 0) throw new Error(`mesh-iptables: ${stderr}`)
    }
    this.app = await this.pod.program('application')
  }

  /** Writes the authority's roots for the agent. */
  async roots(): Promise<void> {
    const exported = mkdtempSync(join(tmpdir(), 'mesh-roots-'))
    await this.#mesh.command('ca', 'export', '--to', exported)
    this.write('var/run/secrets/mesh/root-cert.pem', readFileSync(join(exported, 'root-cert.pem'), 'utf8'))
    rmSync(exported, { recursive: true, force: true })
  }

  /** Writes a token for the agent. */
  async token(ttl = '1h'): Promise<void> {
    const token = await this.#mesh.command('token', '-n', 'shop', '--service-account', this.name, '--ttl', ttl)
    this.write('var/run/secrets/tokens/mesh-token', token)
  }

  /** Starts the agent without waiting. */
  launch(env: Readonly<Record<string, string>> = {}): ChildProcess {
    const config = {
      binaryPath: this.#binary,
      discoveryAddress: `${discoveryName}:15012`,
      concurrency: 1,
      terminationDrainDuration: '1s',
    }
    const own = {
      PROXY_CONFIG: JSON.stringify(config),
      POD_NAME: `${this.name}-0`,
      POD_NAMESPACE: 'shop',
      SERVICE_ACCOUNT: this.name,
      INSTANCE_IP: this.address,
      MESH_META_DNS_CAPTURE: 'true',
      MESH_META_DNS_AUTO_ALLOCATE: 'true',
      MESH_META_INTERCEPTION_MODE: 'REDIRECT',
    }
    const command = [process.execPath, agentScript, 'proxy', 'sidecar', '--serviceCluster', `${this.name}.shop`]
    const { capability } = this.#options
    const user = { user: 'proxy' as const, ...(capability ? { capability } : {}) }
    const child = this.pod.spawn(command, { ...user, cwd: this.dir, env: { ...own, ...this.#options.env, ...env } })
    this.#agent = child
    this.output.follow(child)
    return child
  }

  /** Starts the agent and waits until the proxy is ready. */
  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const child = this.launch(env)
    const waited = this.pod.agentCommand(['wait', '--timeoutSeconds', String(patienceMs / 1000), '--periodMillis', '100'], { user: 'application' })
    const { code, stderr } = await Promise.race([waited, endOf(child, () => {}).then((code) => ({ code: code ?? -1, stderr: 'it has ended' }))])
    if (code !== 0) throw new Error(`${this.name} is not ready (agent: ${child.exitCode}): ${stderr}${this.output.soFar()}`)
  }

  /** Sends a signal to the agent and resolves with its exit status. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#agent
    return child ? endOf(child, () => child.kill(signal)) : null
  }

  /** Resolves with the agent's exit status when it has exited. */
  async ended(): Promise<number | null> {
    return this.#agent ? endOf(this.#agent, () => {}) : null
  }

  /** The pid of the proxy's process. */
  proxyPid(): number {
    const found = this.pod.processes().find((pid) => readlinkSync(`/proc/${pid}/exe`) === realpathSync(this.#binary))
    if (found === undefined) throw new Error(`${this.name} has no proxy`)
    return found
  }

  /** Fetches a page of the proxy's admin interface. */
  async admin(path: string): Promise<string> {
    return (await this.app.do('call', { url: `http://127.0.0.1:15000${path}` })).body
  }
}

function endOf(child: ChildProcess, end: () => void): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode)
  const ended = new Promise<number | null>((resolve) => child.on('exit', (code) => resolve(code)))
  end()
  return ended
}
