/** The actor of an agent's secrets in a folder of its own, with authorities and Envoys that ask for secrets. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { actor } from '../../actors/agent/sds/secret-agent.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { Registry } from '../../actors/runtime/metrics.ts'
import type { CertificateConfig, SecretAgentConfig, SecretState } from '../../protocols/messages/agent.ts'
import type { CallCredentials, ServerAddress, ServerConnection } from '../../protocols/messages/credentials.ts'
import { startActor } from './actor.ts'
import { SecretClient, sidecar } from './secret-client.ts'
import { SigningService } from './signing-service.ts'

/** Whose certificate it is. */
export const workload = 'spiffe://cluster.local/ns/shop/sa/web'

/** A folder with a token and roots, and what was started in it. */
export class AgentSecrets {
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-agent-'))
  /** Lines that agents logged, without those for debugging. */
  readonly lines: string[] = []
  metrics = new Registry()
  readonly #agents: Behaviour<never>[] = []
  readonly #services: SigningService[] = []
  readonly #clients: SecretClient[] = []

  constructor() {
    this.write('token', 'a.good.token\n')
  }

  path(name: string): string {
    return join(this.dir, name)
  }

  /** Writes a file of the folder, and makes its directories. Returns its path. */
  write(name: string, content: string): string {
    mkdirSync(dirname(this.path(name)), { recursive: true })
    writeFileSync(this.path(name), content)
    return this.path(name)
  }

  /** The content of a file of the folder; undefined when there is none. */
  read(name: string): string | undefined {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8') : undefined
  }

  /** Starts an authority; its roots become those of the folder. */
  async authority(options: { isPlain?: boolean } = {}): Promise<SigningService> {
    const service = await new SigningService(workload, options).start()
    this.#services.push(service)
    this.write('roots.pem', service.bundle)
    return service
  }

  /** How an authority is called; roots and token are those of the folder unless others are given. */
  connection(service: SigningService, changes: Partial<CallCredentials> = {}, address: Partial<ServerAddress> = {}): ServerConnection {
    const roots = { files: [this.path('roots.pem')], isPinned: false, learned: undefined }
    return {
      address: { ...service.address, ...address },
      credentials: { roots, tokenFile: this.path('token'), pair: undefined, ...changes },
    }
  }

  /** Starts an agent. */
  async agent(service: SigningService, changes: Partial<CertificateConfig> = {}, parts: Partial<SecretAgentConfig> = {}): Promise<() => SecretState> {
    const certificate: CertificateConfig = {
      authority: this.connection(service),
      clusterId: 'east',
      identity: workload,
      key: { type: 'ec', format: 'traditional' },
      ttlSeconds: 600,
      graceRatio: 0.5,
      keptIn: undefined,
      ...changes,
    }
    return this.start({ certificate, ...parts })
  }

  /** Starts an agent that asks no authority unless it is told. */
  async start(parts: Partial<SecretAgentConfig>): Promise<() => SecretState> {
    const config = {
      socket: this.path('run/SDS'),
      certificate: undefined,
      fetcher: undefined,
      notices: [],
      mounted: undefined,
      output: undefined,
      fileQuietMs: 20,
      ...parts,
    }
    this.metrics = new Registry()
    const agent = await startActor(actor, config, {
      logged: ({ level, message }) => level !== 'debug' && this.lines.push(`${level} ${message}`),
      metrics: this.metrics,
    })
    this.#agents.push(agent)
    return agent.asks?.state as () => SecretState
  }

  /** A stream that wants some secrets. */
  envoy(names: readonly string[], isDelta = false): SecretClient {
    const client = new SecretClient(this.path('run/SDS'), isDelta)
    this.#clients.push(client)
    if (isDelta) client.sendDelta({ node: sidecar, resourceNamesSubscribe: [...names] })
    else client.send({ node: sidecar, resourceNames: [...names] })
    return client
  }

  /** The same; it accepts every response. */
  accepting(names: readonly string[], isDelta = false): SecretClient {
    const client = this.envoy(names, isDelta)
    client.onResponse = ({ nonce: responseNonce }) =>
      isDelta ? client.sendDelta({ responseNonce }) : client.send({ resourceNames: [...names], responseNonce })
    return client
  }

  /** A stream that has not asked for anything. */
  stream(): SecretClient {
    const client = new SecretClient(this.path('run/SDS'))
    this.#clients.push(client)
    return client
  }

  /** The sum of a metric over its labels. */
  count(name: string): number {
    const found = this.metrics.collect().find((one) => one.name === `mesh_agent_${name}`)
    return (found?.series ?? []).reduce((sum, { values }) => sum + (values[0] ?? 0), 0)
  }

  /** Ends agents and the streams to them. */
  async stopAgents(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.close()
    await Promise.all(this.#agents.splice(0).map((agent) => agent.drain?.()))
  }

  async dispose(): Promise<void> {
    await this.stopAgents()
    await Promise.all(this.#services.splice(0).map((service) => service.stop()))
    rmSync(this.dir, { recursive: true, force: true })
  }
}

/** Accepts the last response, and goes on wanting what is named. */
export function acknowledge(client: SecretClient, names: readonly string[]): void {
  client.send({ resourceNames: [...names], responseNonce: client.responses.at(-1)?.nonce as string })
}
