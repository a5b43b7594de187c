/** The agent's secrets actor in a directory of its own, with certificate authorities and SDS clients. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { actor } from '../../actors/agent/sds/secret-agent.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { CertificateConfig, SecretAgentConfig, SecretState } from '../../protocols/messages/agent.ts'
import type { CallCredentials, ServerAddress, ServerConnection } from '../../protocols/messages/credentials.ts'
import type { TrustBundleChanged } from '../../protocols/messages/trust-bundle.ts'
import { RecordingPeer, startActor } from './actor.ts'
import { SecretClient, sidecar } from './secret-client.ts'
import { SigningService } from './signing-service.ts'

/** The identity of the certificate. */
export const workload = 'spiffe://cluster.local/ns/shop/sa/web'

/** A directory with a token and roots, and everything that was started in it. */
export class AgentSecrets {
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-agent-'))
  /** The log lines of the agents, without debug lines. */
  readonly lines: string[] = []
  /** The scopes of all lines. */
  readonly scopes = new Set<string>()
  metrics = new MetricRegistry()
  readonly #agents: Behaviour<TrustBundleChanged>[] = []
  readonly #services: SigningService[] = []
  readonly #clients: SecretClient[] = []

  constructor() {
    this.write('token', 'a.good.token\n')
  }

  path(name: string): string {
    return join(this.dir, name)
  }

  /** Writes a file in the directory and creates its parent directories. Returns its path. */
  write(name: string, content: string): string {
    mkdirSync(dirname(this.path(name)), { recursive: true })
    writeFileSync(this.path(name), content)
    return this.path(name)
  }

  /** The content of a file in the directory. Undefined when there is none. */
  read(name: string): string | undefined {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8') : undefined
  }

  /** Starts an authority and writes its roots to the directory. */
  async authority(options: { isPlain?: boolean } = {}): Promise<SigningService> {
    const service = await new SigningService(workload, options).start()
    this.#services.push(service)
    this.write('roots.pem', service.bundle)
    return service
  }

  /** How an authority is called. Roots and token are those of the directory unless others are given. */
  connection(service: SigningService, changes: Partial<CallCredentials> = {}, address: Partial<ServerAddress> = {}): ServerConnection {
    const roots = { files: [this.path('roots.pem')], isPinned: false, learned: undefined }
    return {
      address: { ...service.address, ...address },
      credentials: { roots, tokenFile: this.path('token'), pair: undefined, ...changes },
    }
  }

  /** Starts an agent that requests certificates from `service`. */
  async agent(service: SigningService, changes: Partial<CertificateConfig> = {}, parts: Partial<SecretAgentConfig> = {}): Promise<() => SecretState> {
    const certificate: CertificateConfig = {
      authority: this.connection(service),
      cloud: undefined,
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

  /** Starts an agent, by default without an authority. */
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
    this.metrics = new MetricRegistry()
    const agent = await startActor(actor, config, {
      logged: ({ level, scope, message }) => {
        this.scopes.add(scope)
        if (level !== 'debug') this.lines.push(`${level} ${message}`)
      },
      metrics: this.metrics,
    })
    this.#agents.push(agent)
    return agent.asks?.state as () => SecretState
  }

  /** Announces roots to the last agent, as its relay does. */
  announce(roots: string): void {
    this.#agents.at(-1)?.receive({ type: 'TrustBundleChanged', roots }, new RecordingPeer('xds-relay'))
  }

  /** Opens a stream that subscribes to secrets. */
  envoy(names: readonly string[], isDelta = false): SecretClient {
    const client = new SecretClient(this.path('run/SDS'), isDelta)
    this.#clients.push(client)
    if (isDelta) client.sendDelta({ node: sidecar, resourceNamesSubscribe: [...names] })
    else client.send({ node: sidecar, resourceNames: [...names] })
    return client
  }

  /** Like {@link envoy}, with a stream that acknowledges every response. */
  accepting(names: readonly string[], isDelta = false): SecretClient {
    const client = this.envoy(names, isDelta)
    client.onResponse = ({ nonce: responseNonce }) =>
      isDelta ? client.sendDelta({ responseNonce }) : client.send({ resourceNames: [...names], responseNonce })
    return client
  }

  /** Opens a stream without a subscription. */
  stream(): SecretClient {
    const client = new SecretClient(this.path('run/SDS'))
    this.#clients.push(client)
    return client
  }

  /** The sum of a metric over all label values. */
  count(name: string): number {
    const found = this.metrics.collect().find((one) => one.name === name)
    return (found?.series ?? []).reduce((sum, { values }) => sum + (values[0] ?? 0), 0)
  }

  /** Stops the agents and closes the streams. */
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

/** Acknowledges the last response and keeps the subscription to `names`. */
export function acknowledge(client: SecretClient, names: readonly string[]): void {
  client.send({ resourceNames: [...names], responseNonce: client.responses.at(-1)?.nonce as string })
}
