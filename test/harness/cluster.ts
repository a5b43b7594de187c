/** A real cluster of the orchestrator for a test file: an API server with all that belongs to it (test/cluster/README.md). */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildCluster } from '../cluster/build.js'
import { patienceMs } from './until.ts'

/** The first port of API servers on this machine; a cluster has the port that its number adds. */
const firstPort = 16_443
/** The largest number of clusters at a time. */
const most = 50

/** An entry of `images.json`. */
export interface ClusterImage {
  readonly argv: readonly string[]
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly workingDir?: string
  readonly user?: number
  readonly files?: Readonly<Record<string, string>>
}

/** A running cluster. */
export class TestCluster {
  readonly dir: string
  readonly #bin: string
  /** Its number, of which its addresses are made. */
  readonly index: number
  /** The process that holds the cluster, which it ends when its standard input is closed. */
  readonly #owner: ChildProcess
  /** Holds the number of the cluster. */
  readonly #claim: Server
  #roleConfig: string | undefined

  private constructor(dir: string, bin: string, index: number, owner: ChildProcess, claim: Server) {
    this.dir = dir
    this.#bin = bin
    this.index = index
    this.#owner = owner
    this.#claim = claim
  }

  /** Builds the programs if need be, and starts a cluster, which takes about 7 s. `nodes`: `n1=region1/zone1,n2=region1/zone2`. */
  static async start(nodes = 'n1=region1/zone1'): Promise<TestCluster> {
    const bin = buildCluster()
    const dir = mkdtempSync(join(tmpdir(), 'mesh-cluster-'))
    writeFileSync(
      join(dir, 'images.json'),
      JSON.stringify({ echo: { argv: [join(bin, 'echo')] }, idle: { argv: ['/bin/sleep'], args: ['infinity'] } }),
    )
    let said = ''
    for (let index = 0; index < most; index++) {
      const claim = await claimNumber(index)
      if (!claim) continue
      if (await isTaken(firstPort + index)) {
        claim.close()
        continue
      }
      const args = ['up', '--dir', dir, '--name', `mesh${index}`, '--cidr-index', `${index}`, '--nodes', nodes, '--until-eof']
      // Its programs collect garbage more rarely: a tenth less CPU for a quarter more memory.
      const owner = spawn(join(bin, 'cluster'), args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, GOGC: '400' } })
      said = ''
      for (const stream of [owner.stdout, owner.stderr]) stream?.on('data', (bytes) => (said += bytes))
      const isReady = await new Promise((resolve) => {
        owner.stdout?.on('data', () => /^ready$/m.test(said) && resolve(true))
        owner.on('close', () => resolve(false))
      })
      if (isReady) return new TestCluster(dir, bin, index, owner, claim)
      claim.close()
      // A cluster whose test was killed may still be ending.
      if (!/address already in use|is in use|File exists/.test(said)) break
    }
    rmSync(dir, { recursive: true, force: true })
    throw new Error(`no cluster could be started: ${said}`)
  }

  /** The address of the API server on this machine. */
  get server(): string {
    return `https://127.0.0.1:${firstPort + this.index}`
  }

  /** The address of the API server for pods of other clusters. */
  get nodeServer(): string {
    return `https://172.30.${this.index}.1:${firstPort + this.index}`
  }

  /** The network namespace of its nodes. */
  get network(): string {
    return `kc-mesh${this.index}`
  }

  /** The folder of kubectl. */
  get bin(): string {
    return this.#bin
  }

  /** The file that connects as the administrator, as users and other programs do. Discovery has {@link kubeconfig}. */
  get adminConfig(): string {
    return join(this.dir, 'kubeconfig/admin')
  }

  /** The file that connects as discovery does: with the account and the role of `manifests/access.yaml`, which it makes when it is first asked for. */
  get kubeconfig(): string {
    this.#roleConfig ??= this.roleConfig()
    return this.#roleConfig
  }

  /** Makes a program of this machine an image. `files`: files and folders of this machine by their paths in the container. */
  image(name: string, argv: readonly string[], files: Readonly<Record<string, string>> = {}): void {
    this.imageOf(name, { argv, files })
  }

  /** Makes an image of all that `images.json` has fields for (test/cluster/README.md). */
  imageOf(name: string, image: ClusterImage): void {
    const path = join(this.dir, 'images.json')
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), [name]: image }))
  }

  /** Runs kubectl as the administrator. Throws an Error with what it said when it fails. */
  kubectl(args: readonly string[], input = ''): string {
    // It ends before it would have to collect garbage.
    const env = { ...process.env, HOME: this.dir, KUBECONFIG: this.adminConfig, GOGC: 'off' }
    const { status, stdout, stderr } = spawnSync(join(this.#bin, 'kubectl'), args, { input, encoding: 'utf8', env, maxBuffer: 64 * 1024 * 1024 })
    if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`)
    return stdout
  }

  /** Waits until objects are as `--for` of `kubectl wait` says: `waitFor('condition=Ready', '-n', 'shop', 'pod/client')`. */
  waitFor(state: string, ...objects: readonly string[]): void {
    this.kubectl(['wait', `--for=${state}`, '--timeout', `${patienceMs}ms`, ...objects])
  }

  /** Applies documents. */
  apply(...documents: readonly string[]): void {
    this.kubectl(['apply', '-f', '-'], documents.join('\n---\n'))
  }

  /** Writes a file that connects with a token. Returns its path. */
  tokenConfig(name: string, token: string, server = this.server): string {
    return this.userConfig(name, `{token: ${token}}`, server)
  }

  /** Writes a file that connects as a user. Returns its path. */
  userConfig(name: string, user: string, server = this.server): string {
    const path = join(this.dir, name)
    const ca = readFileSync(join(this.dir, 'pki/ca.crt')).toString('base64')
    const cluster = `{name: c, cluster: {server: "${server}", certificate-authority-data: ${ca}}}`
    writeFileSync(
      path,
      `current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [${cluster}]\nusers: [{name: u, user: ${user}}]\n`,
    )
    return path
  }

  /**
   * Gives discovery the account and the role of `manifests/access.yaml`, all of it where something was taken away. Returns a file that connects as it,
   * through `server`. `control`: the namespace of the control plane, of which a cluster has one.
   */
  roleConfig(server = this.server, control = 'mesh-system'): string {
    this.apply(readFileSync(new URL('../../manifests/access.yaml', import.meta.url), 'utf8').replaceAll('mesh-system', control))
    const token = this.kubectl(['create', 'token', '-n', control, 'meshd', '--duration', '2h']).trim()
    return this.tokenConfig(`meshd-${control}-${new URL(server).port}`, token, server)
  }

  /** Takes a resource out of the role of discovery: of its ClusterRole, or of its Role in the namespace of the control plane. */
  forbid(resource: string, kind: 'ClusterRole' | 'Role' = 'ClusterRole'): void {
    const found = this.kubectl(['get', kind, 'meshd', '-o', 'json', ...(kind === 'Role' ? ['-n', 'mesh-system'] : [])])
    const role = JSON.parse(found) as { rules: { resources: string[] }[] }
    const rules = role.rules
      .map((rule) => ({ ...rule, resources: rule.resources.filter((each) => each !== resource) }))
      .filter(({ resources }) => resources.length > 0)
    this.apply(JSON.stringify({ ...role, rules }))
  }

  /** Sends a signal to the API server. It is started again when it ends. */
  signalServer(signal: NodeJS.Signals): void {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const args = commandLine(pid)
      if (args[1] === 'apiserver' && args.includes(`--secure-port=${firstPort + this.index}`)) process.kill(Number(pid), signal)
    }
  }

  /** Stops what else acts on objects, until the end of the cluster: controllers, the scheduler and the proxy of the nodes. */
  stopControllers(): void {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const args = commandLine(pid)
      const isMeant = ['controller-manager', 'scheduler', 'proxy'].includes(args[1] ?? '')
      if (isMeant && args.some((each) => each.includes(this.dir))) process.kill(Number(pid), 'SIGSTOP')
    }
  }

  /** Removes from the store all that is older than its present state, as the API server does every five minutes. */
  compactStore(): void {
    const code = `const ask = async (path, body) => (await fetch('http://127.0.0.1:2379/v3/' + path, { method: 'POST', body: JSON.stringify(body) })).json()
      const { header } = await ask('maintenance/status', {})
      const answer = await ask('kv/compaction', { revision: header.revision, physical: true })
      if (!answer.header) throw new Error(JSON.stringify(answer))`
    const args = ['exec', '--dir', this.dir, '--', process.execPath, '--input-type=module', '--eval', code]
    const { status, stderr } = spawnSync(join(this.#bin, 'cluster'), args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`the store was not compacted: ${stderr}`)
  }

  /** The log of a component, for a failed test. */
  log(component: string): string {
    return readFileSync(join(this.dir, 'logs', `${component}.log`), 'utf8')
  }

  /** Ends the cluster and removes all of it. */
  async dispose(): Promise<void> {
    const ended = new Promise((resolve) => this.#owner.on('close', resolve))
    this.#owner.stdin?.destroy()
    await ended
    this.#claim.close()
    rmSync(this.dir, { recursive: true, force: true })
  }
}

function commandLine(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return []
  }
}

/**
 * Takes a number for this process, or resolves with undefined where another one has it. Test files start clusters at the same time, and one that
 * begins has neither a port nor a process yet. The name is an abstract socket, which goes with its process.
 */
function claimNumber(index: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer().unref()
    server.once('error', () => resolve(undefined))
    server.listen(`\0mesh-test-cluster-${index}`, () => resolve(server))
  })
}

/** Whether something listens on a port of this machine. */
function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
