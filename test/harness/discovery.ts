/** Runs the discovery service in this process, so that tests can access its supervisor. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ActorSettings, type DiscoveryService, startDiscovery } from '../../actors/discovery/service.ts'
import type { ActorState } from '../../actors/runtime/supervisor.ts'
import { freePort } from '../../bench/ports.ts'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import { textOf } from './page-text.ts'

/** A discovery service with a configuration directory of its own, and environment variables that are set while it runs. */
export class LocalDiscovery {
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-actors-'))
  readonly #authorityDir = mkdtempSync(join(tmpdir(), 'mesh-actors-ca-'))
  readonly #actors: ActorSettings
  readonly #env: Readonly<Record<string, string>>
  #service: DiscoveryService | undefined
  grpcPort = 0
  httpPort = 0

  constructor(actors: ActorSettings, env: Readonly<Record<string, string>> = {}) {
    this.#actors = actors
    this.#env = { MESHD_CA_STATE_DIR: this.#authorityDir, ...env }
  }

  /** Starts the service. It may not be ready yet when the promise resolves. */
  async start(options: Partial<DiscoveryOptions> = {}): Promise<DiscoveryService> {
    Object.assign(process.env, this.#env)
    this.grpcPort = await freePort()
    this.httpPort = await freePort()
    const levels = { fallback: 'debug' as const, scopes: {} }
    // The service reads the variable at once, before another service of this process is started.
    process.env.MESHD_ADMIN_SOCKET = join(this.dir, '.run/admin.sock')
    this.#service = await startDiscovery(
      {
        secureGRPCAddr: '',
        tlsCertFile: '',
        tlsKeyFile: '',
        caCertFile: '',
        grpcAddr: `127.0.0.1:${this.grpcPort}`,
        httpAddr: `127.0.0.1:${this.httpPort}`,
        httpsAddr: '127.0.0.1:0',
        monitoringAddr: `127.0.0.1:${await freePort()}`,
        ctrlzAddr: '',
        allowUnreadableConfig: false,
        profile: false,
        configDir: this.dir,
        meshConfig: '',
        networksConfig: '',
        domain: 'cluster.local',
        appNamespace: [],
        registries: ['Mock'],
        clusterRegistriesNamespace: 'mesh-system',
        orchconfig: '',
        orchestratorApiBurst: 160,
        orchestratorApiQPS: 80,
        resync: 60_000,
        plugins: ['ext_authz', 'authn', 'authz'],
        trustDomain: '',
        clusterID: '',
        namespace: '',
        keepaliveInterval: 30_000,
        keepaliveTimeout: 10_000,
        keepaliveMaxServerConnectionAge: 1e15,
        writers: 2,
        notices: [],
        given: [],
        ...options,
      },
      {
        output: levels,
        stackTrace: { fallback: 'none', scopes: {} },
        callers: [],
        asJson: false,
        targets: [join(this.dir, 'log')],
        rotate: undefined,
      },
      this.#actors,
    )
    return this.#service
  }

  get service(): DiscoveryService {
    if (!this.#service) throw new Error('the service was not started')
    return this.#service
  }

  /** The log so far. */
  log(): string {
    return readFileSync(join(this.dir, 'log'), 'utf8')
  }

  write(name: string, content: string): void {
    writeFileSync(join(this.dir, name), content)
  }

  remove(name: string): void {
    rmSync(join(this.dir, name), { force: true })
  }

  /** Returns the supervisor's state of an actor. */
  state(name: string): ActorState {
    const found = this.service.supervisor.states().find((known) => known.name === name)
    if (!found) throw new Error(`there is no actor ${name}`)
    return found
  }

  /** The response of `/ready`. */
  async ready(): Promise<{ status: number; text: string }> {
    const answer = await fetch(`http://127.0.0.1:${this.httpPort}/ready`)
    return { status: answer.status, text: await textOf(answer) }
  }

  /** Fetches a debug page. */
  async debug<T>(page: string): Promise<T> {
    return (await (await fetch(`http://127.0.0.1:${this.httpPort}/debug/${page}`)).json()) as T
  }

  /** Stops the service and removes its directories. */
  async dispose(): Promise<void> {
    await this.#service?.stop()
    for (const name of Object.keys(this.#env)) delete process.env[name]
    for (const dir of [this.dir, this.#authorityDir]) rmSync(dir, { recursive: true, force: true })
  }
}
