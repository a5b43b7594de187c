/** A machine outside a test cluster: a network namespace with a cable to it, an application, and the real agent and proxy beside that. */
import type { ChildProcess } from 'node:child_process'
import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestCluster } from './cluster.ts'
import { agentScript } from './commands.ts'
import { Output } from './output.ts'
import { Pod, users } from './pod.ts'
import { until } from './until.ts'

const discoveryName = 'meshd.mesh-system.svc'
/** The machine's address, and that of the cluster's end of the cable. */
const [address, gateway] = ['172.29.0.1', '172.29.0.2']

/** A machine whose workload is of a WorkloadGroup of its name in the namespace `shop`. It probes the file `well` of its directory. */
export class Machine {
  readonly address = address
  readonly output = new Output()
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-machine-'))
  readonly #cluster: TestCluster
  readonly #binary: string
  readonly #group: string
  readonly #pod = new Pod(`mesh-${process.pid}-machine`, address, '')
  #agent: ChildProcess | undefined

  constructor(cluster: TestCluster, binary: string, group: string) {
    this.#cluster = cluster
    this.#binary = binary
    this.#group = group
    chownSync(this.dir, users.proxy, users.proxy)
  }

  /** Connects the machine and starts its application on port 8080. Connections are redirected to the proxy as in a pod. */
  async prepare(): Promise<void> {
    const pod = this.#pod
    const etc = `/etc/netns/${pod.name}`
    mkdirSync(etc, { recursive: true })
    const discovery = this.#cluster.kubectl(['get', 'service', '-n', 'mesh-system', 'meshd', '-o', 'jsonpath={.spec.clusterIP}'])
    writeFileSync(`${etc}/hosts`, `127.0.0.1 localhost\n${discovery} ${discoveryName}\n`)
    pod.open()
    const [inside, outside] = ['eth0', 'machine']
    const { status, stderr } = spawnSync(
      'ip',
      ['-n', this.#cluster.network, 'link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', pod.name],
      { encoding: 'utf8' },
    )
    if (status !== 0) throw new Error(`the cable: ${stderr}`)
    for (const args of [
      ['addr', 'add', `${gateway}/30`, 'dev', outside],
      ['link', 'set', outside, 'up'],
    ])
      spawnSync('ip', ['-n', this.#cluster.network, ...args])
    pod.system('ip', 'addr', 'add', `${address}/30`, 'dev', inside)
    pod.system('ip', 'link', 'set', inside, 'up')
    pod.system('ip', 'route', 'add', 'default', 'via', gateway)
    const flags = ['-p', '15001', '-z', '15006', '-u', '1337', '-i', '*', '-x', '', '-b', '*', '-d', '15090,15021,15020']
    const { code, stderr: said } = await pod.agentCommand(['mesh-iptables', ...flags], { user: 'root' })
    if (code !== 0) throw new Error(`mesh-iptables: ${said}`)
    await (await pod.program('application')).do('serve', { port: 8080, name: this.#group })
    const roots = () =>
      this.#cluster.kubectl(['get', 'configmap', '-n', 'shop', 'mesh-ca-root-cert', '--ignore-not-found', '-o', 'jsonpath={.data.root-cert\\.pem}'])
    await until('the root certificates', () => roots() !== '')
    this.#write('var/run/secrets/mesh/root-cert.pem', roots())
  }

  /** Sets whether the probe of the workload succeeds. */
  set isWell(isWell: boolean) {
    if (isWell) this.#write('well', '')
    else rmSync(join(this.dir, 'well'), { force: true })
  }

  /** Starts the agent with a token of a service account of `shop`. */
  launch(account: string): void {
    this.#write('var/run/secrets/tokens/mesh-token', this.#cluster.kubectl(['create', 'token', account, '-n', 'shop', '--audience', 'mesh-ca']))
    const config = {
      ...{ binaryPath: this.#binary, discoveryAddress: `${discoveryName}:15012`, concurrency: 1, terminationDrainDuration: '1s' },
      readinessProbe: { exec: { command: ['test', '-e', join(this.dir, 'well')] }, periodSeconds: 1 },
    }
    const env = {
      PROXY_CONFIG: JSON.stringify(config),
      ...{ POD_NAME: `${this.#group}-0`, POD_NAMESPACE: 'shop', SERVICE_ACCOUNT: account, INSTANCE_IP: address },
      MESH_META_AUTO_REGISTER_GROUP: this.#group,
      MESH_META_INTERCEPTION_MODE: 'REDIRECT',
    }
    const command = [process.execPath, agentScript, 'proxy', 'sidecar', '--serviceCluster', `${this.#group}.shop`]
    this.#agent = this.#pod.spawn(command, { user: 'proxy', cwd: this.dir, env })
    this.output.follow(this.#agent)
  }

  /** Ends the agent and its proxy in order. */
  async end(): Promise<void> {
    const agent = this.#agent
    this.#agent = undefined
    if (!agent || agent.exitCode !== null || agent.signalCode !== null) return
    const ended = new Promise((resolve) => agent.on('exit', resolve))
    agent.kill('SIGTERM')
    await ended
  }

  /** Kills all that runs on the machine. */
  kill(): void {
    for (const pid of this.#pod.processes()) process.kill(pid, 'SIGKILL')
  }

  async dispose(): Promise<void> {
    if (existsSync(`/run/netns/${this.#pod.name}`)) await this.#pod.close()
    rmSync(this.dir, { recursive: true, force: true })
  }

  /** Writes a file of the agent's user. */
  #write(path: string, content: string): void {
    const file = join(this.dir, path)
    const made = mkdirSync(dirname(file), { recursive: true })
    for (let folder = dirname(file); made && folder.length >= made.length; folder = dirname(folder)) chownSync(folder, users.proxy, users.proxy)
    writeFileSync(file, content, { mode: 0o600 })
    chownSync(file, users.proxy, users.proxy)
  }
}
