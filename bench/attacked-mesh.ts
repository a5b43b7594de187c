/**
 * A control plane of the built package, sidecars and an agent that behave well, and what they notice of attacks: how long changes and
 * readiness take, what is dropped, and the memory of both.
 */
import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { makeSigningRequest } from '../src/ca/signing-request.ts'
import { scanFields, textField } from '../src/xds/slab/wire.ts'
import { messageFrame } from '../src/xds/stream/frames.ts'
import type { Targets } from './attackers.ts'
import type { Shown } from './clients.ts'
import { freePort } from './ports.ts'
import { processUsage, startCommand } from './server.ts'
import type { WatchedReport } from './watched-sidecars.ts'

/** The namespace and the service account of all well-behaved clients. */
const namespace = 'bench'
/** Milliseconds between two changes, and between two requests for readiness. */
const [changeMs, readyMs] = [1000, 250]
/** The time after which a request for readiness is given up, in milliseconds. */
const giveUpMs = 20_000

/** What well-behaved clients noticed during an attack. Times are milliseconds, memory is MiB. */
export interface Noticed {
  /** The longest time from a change to its arrival at a sidecar. */
  readonly change: number
  readonly dropped: number
  /** The longest time until `/ready` of discovery, and the readiness of the agent, were answered with 200. */
  readonly ready: number
  readonly agentReady: number
  readonly memory: Readonly<Record<'discovery' | 'agent', { readonly before: number; readonly most: number; readonly after: number }>>
  /** The number of actors of discovery that ended. */
  readonly ended: number
}

/** Asks a page again and again, and keeps the longest time until an answer with status 200. */
class Watch {
  readonly #url: string
  #most = 0
  #began = Number.POSITIVE_INFINITY
  readonly #timer: NodeJS.Timeout

  constructor(url: string) {
    this.#url = url
    this.#timer = setInterval(() => this.#ask(), readyMs)
  }

  /** The longest time since the last call: until an answer of 200, or until now while one is missing. */
  take(): number {
    const most = Math.max(this.#most, performance.now() - this.#began)
    this.#most = 0
    return most
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #ask(): void {
    const at = performance.now()
    const asking = request(this.#url, { agent: false, timeout: giveUpMs }, (answer) => {
      answer.resume()
      if (answer.statusCode === 200) this.#answered(at)
      else this.#failed(at)
    })
    asking.on('timeout', () => asking.destroy())
    asking.on('error', () => this.#failed(at))
    asking.end()
  }

  /** A failure lasts until the next request that succeeds. */
  #failed(at: number): void {
    this.#began = Math.min(this.#began, at)
  }

  #answered(at: number): void {
    const began = Math.min(this.#began, at)
    this.#most = Math.max(this.#most, performance.now() - began)
    if (at > this.#began) this.#began = Number.POSITIVE_INFINITY
  }
}

/** A running mesh. */
export class AttackedMesh {
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-bench-attacked-'))
  readonly #command: (name: string) => string
  readonly #children: ChildProcess[] = []
  readonly #watches: Watch[] = []
  #discovery: ChildProcess | undefined
  #agent: ChildProcess | undefined
  #timer: NodeJS.Timeout | undefined
  #ports: Omit<Targets, 'token'> = { secure: 0, http: 0, agent: 0, dns: 0, keySets: 0, application: 0 }
  #token = ''
  /** The times at which changes were written, and the last change that each sidecar has, by number. */
  readonly #written: number[] = []
  readonly #has: number[] = []
  #slowest = 0
  #dropped: string[] = []

  private constructor(command: (name: string) => string) {
    this.#command = command
  }

  /** Starts everything. Resolves when all sidecars have their configuration and the agent is ready. */
  static async start(command: (name: string) => string, sidecars: number, writers: number): Promise<AttackedMesh> {
    const mesh = new AttackedMesh(command)
    try {
      await mesh.#startDiscovery(writers)
      const shown = await mesh.#credentials(sidecars)
      await mesh.#connect(shown)
      await mesh.#startAgent()
      mesh.#timer = setInterval(() => mesh.#change(), changeMs)
      mesh.#watches.push(new Watch(mesh.#readiness), new Watch(mesh.#agentReadiness))
      return mesh
    } catch (error) {
      await mesh.stop()
      throw error
    }
  }

  get targets(): Targets {
    return { ...this.#ports, token: this.#token }
  }

  /** The variables that say whose workload an agent is. */
  get homeEnv(): Readonly<Record<string, string>> {
    return { POD_NAME: 'bench', POD_NAMESPACE: namespace, SERVICE_ACCOUNT: namespace }
  }

  get #readiness(): string {
    return `http://127.0.0.1:${this.#ports.http}/ready`
  }

  get #agentReadiness(): string {
    return `http://127.0.0.1:${this.#ports.agent}/healthz/ready`
  }

  /** Writes a configuration file atomically; removes it without a text. */
  put(name: string, text: string | undefined): void {
    const path = join(this.dir, 'config', name)
    if (text === undefined) return rmSync(path, { force: true })
    writeFileSync(join(this.dir, 'config', `.${name}`), text)
    renameSync(join(this.dir, 'config', `.${name}`), path)
  }

  /**
   * Runs `attack` for `seconds` and returns what was noticed. The memory afterwards is the least within `restSeconds`, which end early when
   * it is back.
   */
  async notice(attack: () => () => Promise<void>, seconds: number, restSeconds: number): Promise<Noticed> {
    const [discovery, agent] = [this.#discovery?.pid as number, this.#agent?.pid as number]
    const memory = () => ({ discovery: rssOf(discovery), agent: rssOf(agent) })
    this.#take()
    const ended = this.#ended()
    const before = memory()
    const most = { ...before }
    const look = () => {
      const now = memory()
      for (const name of ['discovery', 'agent'] as const) most[name] = Math.max(most[name], now[name])
      return now
    }
    const end = attack()
    for (const until = performance.now() + seconds * 1000; performance.now() < until; ) {
      await pause(100)
      look()
    }
    const noticed = { ...this.#take(), ended: this.#ended() - ended }
    await end()
    const after = memory()
    for (const until = performance.now() + restSeconds * 1000; performance.now() < until; ) {
      await pause(250)
      const now = look()
      for (const name of ['discovery', 'agent'] as const) after[name] = Math.min(after[name], now[name])
      if (after.discovery <= before.discovery + backMib && after.agent <= before.agent + backMib) break
    }
    const of = (name: 'discovery' | 'agent') => ({ before: before[name], most: most[name], after: after[name] })
    const late = this.#take()
    return {
      ...noticed,
      change: Math.max(noticed.change, late.change),
      ready: Math.max(noticed.ready, late.ready),
      agentReady: Math.max(noticed.agentReady, late.agentReady),
      dropped: noticed.dropped + late.dropped,
      memory: { discovery: of('discovery'), agent: of('agent') },
    }
  }

  /** Ends all processes and removes all files. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    for (const watch of this.#watches) watch.stop()
    for (const child of this.#children.toReversed()) await end(child)
    rmSync(this.dir, { recursive: true, force: true })
  }

  /**
   * Starts an agent in a directory of its own. `port` is where it finds discovery; `env` has its variables. Its output is in `agent.log` of
   * the directory.
   */
  startAgent(home: string, port: number, config: object, env: Readonly<Record<string, string>>): ChildProcess {
    for (const folder of ['var/run/secrets/tokens', 'var/run/secrets/mesh']) mkdirSync(join(home, folder), { recursive: true })
    writeFileSync(join(home, 'var/run/secrets/tokens/mesh-token'), this.#token)
    this.#run('ca', 'export', '--to', join(home, 'var/run/secrets/mesh'))
    const log = openSync(join(home, 'agent.log'), 'a')
    const child = spawn(process.execPath, [this.#command('pilot-agent'), 'proxy', 'sidecar'], {
      cwd: home,
      env: {
        ...process.env,
        MESH_WRAPPER: String(process.pid),
        PROXY_CONFIG: JSON.stringify({ discoveryAddress: `localhost:${port}`, concurrency: 1, ...config }),
        ...this.homeEnv,
        ...env,
      },
      stdio: ['ignore', log, log, 'ipc'],
    })
    this.#children.push(child)
    return child
  }

  async #startDiscovery(writers: number): Promise<void> {
    mkdirSync(join(this.dir, 'config'))
    const [grpc, secure, http, monitoring] = [await freePort(), await freePort(), await freePort(), await freePort()]
    this.#ports = { secure, http, agent: await freePort(), dns: await freePort(), keySets: await freePort(), application: await freePort() }
    const flags = {
      registries: 'Mock',
      configDir: join(this.dir, 'config'),
      grpcAddr: `127.0.0.1:${grpc}`,
      secureGRPCAddr: `127.0.0.1:${secure}`,
      httpAddr: `127.0.0.1:${http}`,
      monitoringAddr: `127.0.0.1:${monitoring}`,
      ctrlz_port: '0',
      writers: String(writers),
      log_output_level: 'all:info',
      log_target: join(this.dir, 'discovery.log'),
    }
    const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
    this.#discovery = startCommand([this.#command('pilot-discovery'), 'discovery', ...args], 'ignore', { ...this.#env, PILOT_MOCK_SERVICES: '0' })
    this.#children.push(this.#discovery)
    await this.#ready(this.#readiness, this.#discovery)
  }

  get #env(): Record<string, string> {
    return {
      MESHD_CA_STATE_DIR: join(this.dir, 'ca'),
      MESHD_ADMIN_SOCKET: join(this.dir, 'run/admin.sock'),
      PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.0/8',
    }
  }

  #run(...args: string[]): void {
    const env = { ...process.env, ...this.#env }
    execFileSync(process.execPath, [this.#command('pilot-discovery'), ...args], { env, stdio: 'ignore' })
  }

  async #ready(url: string, child: ChildProcess): Promise<void> {
    while (
      !(await fetch(url).then(
        ({ ok }) => ok,
        () => false,
      ))
    ) {
      if (child.exitCode !== null) throw new Error(`${url}: the process ended`)
      await pause(100)
    }
  }

  /** Returns credentials for sidecars: half have certificates of the control plane, half have tokens. */
  async #credentials(count: number): Promise<Shown[]> {
    const file = join(this.dir, 'token')
    this.#run('token', '-n', namespace, '--service-account', namespace, '-o', file)
    this.#token = readFileSync(file, 'utf8').trim()
    const session = connect(`https://127.0.0.1:${this.#ports.secure}`, { rejectUnauthorized: false })
    try {
      const shown: Shown[] = []
      while (shown.length < count) shown.push(shown.length % 2 === 0 ? { token: this.#token } : await certificate(session, this.#token))
      return shown
    } finally {
      session.destroy()
    }
  }

  #connect(shown: readonly Shown[]): Promise<void> {
    const options = JSON.stringify({ port: this.#ports.secure, namespace, shown })
    const child = fork(fileURLToPath(new URL('./watched-sidecars.ts', import.meta.url)), [options])
    this.#children.push(child)
    for (let sidecar = 0; sidecar < shown.length; sidecar++) this.#has.push(-1)
    return new Promise((resolve, reject) => {
      child.on('exit', () => reject(new Error('the process of the sidecars ended')))
      child.on('message', (message: WatchedReport) => {
        if (message.type === 'connected') resolve()
        else if (message.type === 'dropped') this.#dropped.push(message.reason)
        else this.#arrived(message.sidecar, message.mark, message.at)
      })
    })
  }

  #arrived(sidecar: number, mark: number, at: number): void {
    // All changes up to this one have arrived with it.
    for (let one = (this.#has[sidecar] as number) + 1; one <= mark; one++)
      this.#slowest = Math.max(this.#slowest, at - (this.#written[one] as number))
    this.#has[sidecar] = Math.max(this.#has[sidecar] as number, mark)
  }

  async #startAgent(): Promise<void> {
    const program = envoy()
    const { agent: statusPort, application, dns } = this.#ports
    const probes = { '/app-health/app/readyz': { httpGet: { port: application, path: '/' } } }
    const child = this.startAgent(
      join(this.dir, 'agent'),
      this.#ports.secure,
      { binaryPath: program, proxyAdminPort: await freePort(), statusPort },
      {
        PROXY_STATUS_PORT: String(await freePort()),
        PROXY_PROMETHEUS_PORT: String(await freePort()),
        MESH_ORCH_APP_PROBERS: JSON.stringify(probes),
        MESH_METRICS_ANNOTATIONS: JSON.stringify({ path: '/metrics', port: String(application) }),
        MESH_META_DNS_CAPTURE: 'true',
        DNS_PROXY_ADDR: `localhost:${dns}`,
      },
    )
    this.#agent = child
    await this.#ready(this.#agentReadiness, child)
  }

  #change(): void {
    const number = this.#written.length
    this.#written.push(Date.now())
    this.put(
      'mark.yaml',
      `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: mark, namespace: ${namespace}}
spec: {hosts: [mark-${number}.test], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.1}]}
`,
    )
  }

  /** Returns what was noticed since the last call. */
  #take(): Pick<Noticed, 'change' | 'dropped' | 'ready' | 'agentReady'> {
    const missing = this.#has.map((mark) => Date.now() - (this.#written[mark + 1] ?? Date.now()))
    const [ready = 0, agentReady = 0] = this.#watches.map((watch) => watch.take())
    const noticed = { change: Math.max(this.#slowest, ...missing), dropped: this.#dropped.length, ready, agentReady }
    this.#slowest = 0
    this.#dropped = []
    return noticed
  }

  /** The number of actors of discovery that have ended so far. */
  #ended(): number {
    return readFileSync(join(this.dir, 'discovery.log'), 'utf8').split('ended, starts again').length - 1
  }
}

/** The memory above that of before at which a process counts as back, in MiB. */
export const backMib = 25

const rssOf = (pid: number): number => processUsage(pid).rss

/** Ends a process, at once if it does not end within five seconds. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.on('exit', resolve))
  child.kill()
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
  await ended
  clearTimeout(timer)
}

/** Requests a certificate for a new key. */
function certificate(session: ReturnType<typeof connect>, token: string): Promise<Shown> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const stream = session.request({
    ':method': 'POST',
    ':path': '/mesh.v1.auth.MeshCertificateService/CreateCertificate',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${token}`,
  })
  const parts: Buffer[] = []
  stream.on('data', (bytes: Buffer) => parts.push(bytes))
  stream.end(messageFrame(textField(1, makeSigningRequest(privateKey, []))))
  return new Promise((resolve, reject) => {
    stream.on('error', reject)
    stream.on('end', () => {
      const chain = [...scanFields(Buffer.concat(parts).subarray(5))].filter(({ field }) => field === 1).map(({ bytes }) => String(bytes))
      if (chain[0] === undefined) reject(new Error('no certificate was issued'))
      else resolve({ cert: chain.join(''), key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) })
    })
  })
}

/** Returns an available Envoy. Throws when there is none. */
function envoy(): string {
  const known = [process.env.ENVOY_BIN, fileURLToPath(new URL('../.cache/envoy/1.40/envoy', import.meta.url))]
  const found = known.find((path) => path && existsSync(path))
  if (found === undefined) throw new Error('the set attacks needs Envoy: set ENVOY_BIN, or run the tests of the layer envoy once')
  return found
}
