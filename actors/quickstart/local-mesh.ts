/** A mesh of processes on this machine: the control plane, agents with their Envoys, and the applications, in one directory. */
import { join } from 'node:path'
import { proxyGuard } from '../agent/proxy-process/proxy-guard.ts'
import { untilAnswered } from './answers.ts'
import { type MeshPorts, packageFolder } from './example-files.ts'
import { MeshPart, type PartCommand } from './mesh-part.ts'
import { startApplications } from './workloads.ts'

/** What a mesh is made of. */
export interface MeshParts {
  /** The directory with the files of the example. */
  readonly directory: string
  readonly ports: MeshPorts
  /** The path of Envoy. */
  readonly envoy: string
}

const workloads = ['stock', 'shop', 'gateway'] as const

/** A mesh that is started once. */
export class LocalMesh {
  /** Rejects with the reason when a part ends by itself. */
  readonly failed: Promise<never>
  readonly #fail: (reason: unknown) => void
  readonly #mesh: MeshParts
  readonly #parts: MeshPart[] = []
  readonly #ends: (() => Promise<void>)[] = []
  #isEnding = false

  constructor(mesh: MeshParts) {
    this.#mesh = mesh
    const { promise, reject } = Promise.withResolvers<never>()
    // A part may end before somebody waits for that.
    promise.catch(() => undefined)
    this.failed = promise
    this.#fail = reject
  }

  /** Starts the control plane, and the agents when it is ready. Resolves when their processes run, which is before their Envoys serve. */
  async start(signal: AbortSignal): Promise<void> {
    const guard = await proxyGuard({ debug: () => undefined })
    this.#ends.push(await startApplications(this.#mesh.ports))
    const [discovery, ...agents] = commandsOf(this.#mesh)
    this.#launch([discovery], guard)
    await untilAnswered({ port: this.#mesh.ports.pages, path: '/ready', status: 200 }, signal)
    this.#launch(agents, guard)
  }

  /** Ends all parts, the control plane after the agents, which report to it. Resolves when all have ended. */
  async end(): Promise<void> {
    this.#isEnding = true
    const [discovery, ...agents] = this.#parts
    await Promise.all([...agents.map((agent) => agent.end()), ...this.#ends.map((end) => end())])
    await discovery?.end()
  }

  #launch(commands: readonly PartCommand[], guard: readonly string[]): void {
    if (this.#isEnding) return
    for (const command of commands) {
      const part = new MeshPart(command, guard)
      this.#parts.push(part)
      void part.ended.then(async (end) => this.#isEnding || this.#fail(await part.fault(end)))
    }
  }
}

/** The commands of the mesh, as a reader would type them in its directory; the control plane is the first. */
function commandsOf({ directory, ports, envoy }: MeshParts): [PartCommand, ...PartCommand[]] {
  // No settings of another mesh, such as the directory of its certificate authority.
  const { PATH, HOME, TMPDIR } = process.env
  const env = { PATH, HOME, TMPDIR }
  const script = (name: string) => join(packageFolder(), 'bin', name)
  const local = (port: number) => `127.0.0.1:${port}`
  const flags = {
    ...{ configDir: 'mesh', registries: '', ctrlz_port: '0' },
    ...{ httpAddr: local(ports.pages), monitoringAddr: local(ports.monitoring) },
    ...{ grpcAddr: local(ports.plain), secureGRPCAddr: local(ports.secured) },
  }
  const discovery = {
    name: 'the control plane',
    script: script('pilot-discovery.js'),
    args: ['discovery', ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)],
    cwd: directory,
    // Who tries things makes mistakes.
    env: { ...env, PILOT_ENABLE_ANALYSIS: 'true' },
    log: join(directory, 'log/discovery.log'),
  }
  const agents = workloads.map((name) => ({
    name: `the agent of ${name}`,
    script: script('pilot-agent.js'),
    args: ['proxy', name === 'gateway' ? 'router' : 'sidecar'],
    cwd: join(directory, name),
    env: { ...env, TERMINATION_DRAIN_DURATION_SECONDS: '0', PROXY_CONFIG: JSON.stringify({ binaryPath: envoy }) },
    log: join(directory, `log/${name}.log`),
  }))
  return [discovery, ...agents]
}
