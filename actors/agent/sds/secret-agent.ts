/**
 * The agent's secrets as an actor: requests and renews a certificate for a key that it generates, watches secrets in files, and serves all
 * secrets to Envoy over SDS. Consumes: `TrustBundleChanged`, from the relay. Asks: `state`, {@link SecretState}.
 */
import type { SecretAgentConfig, SecretState } from '../../../protocols/messages/agent.ts'
import type { TrustBundleChanged } from '../../../protocols/messages/trust-bundle.ts'
import { type PairSecret, pairName, type RootsSecret, rootsName, type SecretResource } from '../../../src/agent/secret-resources.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { within } from '../../runtime/timers.ts'
import { type FileListener, FileSecrets } from './file-secrets.ts'
import { type FileMetrics, fileMetrics } from './metrics.ts'
import { MountedSecrets } from './mounted-secrets.ts'
import { OutputFiles } from './output-files.ts'
import { SecretServer } from './secret-server.ts'
import { TokenFetcher } from './token-fetcher.ts'
import { WorkloadCertificate } from './workload-certificate.ts'

/** The maximum number of remembered directories whose watch failure was logged. */
const maxUnwatched = 256
/** How long the first start of a workload waits for its token from the discovery service of the machine, in milliseconds. */
const firstTokenMs = 15_000

class SecretAgent implements Behaviour<TrustBundleChanged, never> {
  readonly asks = { state: () => this.#state() }
  readonly #context: ActorContext<SecretAgentConfig>
  readonly #server: SecretServer
  readonly #files: FileSecrets
  readonly #mounted: MountedSecrets | undefined
  readonly #certificate: WorkloadCertificate | undefined
  readonly #output: OutputFiles | undefined
  readonly #fetcher: TokenFetcher | undefined
  readonly #metrics: FileMetrics
  /** Directories whose watch failure was logged. Watching them is retried every ten seconds without further log lines. */
  readonly #unwatched = new Set<string>()
  /** Which secrets the mounted files contained when that was last logged. */
  #held = ''
  #isServing = false
  /** Whether the first fetch of a token has ended (always true without a fetcher), so that the authority may be called. */
  #mayAsk = false

  constructor(context: ActorContext<SecretAgentConfig>) {
    const { config, log, metrics } = context
    this.#context = context
    this.#metrics = fileMetrics(metrics)
    this.#files = new FileSecrets(
      config.fileQuietMs,
      this.#listener(() => this.#server.push()),
    )
    this.#mounted =
      config.mounted === undefined
        ? undefined
        : new MountedSecrets(
            config.mounted,
            config.fileQuietMs,
            this.#listener(() => this.#mountedChanged()),
          )
    this.#certificate =
      config.certificate &&
      new WorkloadCertificate(config.certificate, { log, metrics, token: () => this.#fetcher?.token, changed: () => this.#changed() })
    this.#fetcher =
      config.fetcher &&
      new TokenFetcher(config.fetcher, log(config.fetcher.from === 'cloud' ? 'cloudcred' : 'token'), () => this.#certificate?.retry())
    const { output } = config
    this.#output =
      output &&
      new OutputFiles(output, (reason) => {
        this.#metrics.failed()
        log('cache').error(`the certificate is not written to ${output.directory}: ${reason}; it is served to the proxy, and writing is retried`)
      })
    this.#server = new SecretServer(
      config,
      { find: (name) => this.#find(name), want: (name) => this.#files.want(name), forget: (name) => this.#files.forget(name) },
      { log: log('sds'), metrics },
    )
  }

  /** Starts to serve. Rejects when it cannot listen on the socket. */
  async start(): Promise<this> {
    for (const notice of this.#context.config.notices) this.#context.log('default').warn(notice)
    await Promise.all([this.#certificate?.restore(), this.#mounted?.read()])
    await this.#server.open().catch(async (error: unknown) => {
      await this.drain()
      throw error
    })
    this.#isServing = true
    // A call without a token would fail, so calls to the authority wait for the first token. Nothing else waits for it.
    void (this.#fetcher?.tried ?? Promise.resolve()).then(() => {
      this.#mayAsk = true
      this.#mountedChanged()
    })
    this.#mountedChanged()
    await this.#awaitFirstToken()
    return this
  }

  /** A first start has nothing to serve before there is a token: until then the proxy and its relay would only fail. */
  async #awaitFirstToken(): Promise<void> {
    if (!this.#fetcher || this.#context.config.fetcher?.from !== 'local' || this.#pair) return
    await within(firstTokenMs, this.#fetcher.tried)
  }

  receive({ roots }: TrustBundleChanged): void {
    this.#certificate?.announce(roots)
  }

  async drain(): Promise<void> {
    this.#isServing = false
    this.#fetcher?.close()
    this.#certificate?.close()
    this.#mounted?.close()
    this.#files.close()
    this.#output?.close()
    await this.#server.close()
  }

  #find(name: string): SecretResource | undefined {
    if (name === pairName) return this.#pair?.secret
    return name === rootsName ? this.#roots?.secret : this.#files.get(name)
  }

  /** Precedence: mounted files that exist, the authority's certificate, then the last content of mounted files that have been removed. */
  get #pair(): PairSecret | undefined {
    return this.#mounted?.current.pair ?? this.#certificate?.pair ?? this.#mounted?.last.pair
  }

  get #roots(): RootsSecret | undefined {
    return this.#mounted?.current.roots ?? this.#certificate?.roots ?? this.#mounted?.last.roots
  }

  /** Called when the mounted files have changed. While they contain a pair and roots, no certificate is requested. */
  #mountedChanged(): void {
    if (!this.#isServing) return
    const { pair, roots } = this.#mounted?.current ?? {}
    const held = [...(pair ? ['certificate'] : []), ...(roots ? ['roots'] : [])].join(' and ')
    if (this.#mounted && held !== this.#held)
      this.#context
        .log('cache')
        .info(
          `${this.#context.config.mounted}: ${held === '' ? 'no longer contains usable certificates; those of the authority are served' : `its ${held} come before those of the authority`}`,
        )
    this.#held = held
    this.#certificate?.want(this.#mayAsk && (pair === undefined || roots === undefined))
    this.#changed()
  }

  /** Called when the workload's own secrets may have changed: sends them to Envoy and writes the output files. */
  #changed(): void {
    this.#server.push()
    const pair = this.#pair
    this.#output?.write({ 'key.pem': pair?.key, 'cert-chain.pem': pair?.chain, 'root-cert.pem': this.#roots?.pem })
  }

  #listener(changed: () => void): FileListener {
    const log = this.#context.log('cache')
    return {
      changed,
      refused: (name, reason) => {
        this.#metrics.failed()
        log.warn(`${name.slice(0, 500)}: its content cannot be used, and the previous content stays in use: ${reason.slice(0, 1000)}`)
      },
      unwatchable: (directory, error) => {
        this.#metrics.unwatchable()
        if (this.#unwatched.has(directory)) return
        if (this.#unwatched.size >= maxUnwatched) this.#unwatched.clear()
        this.#unwatched.add(directory)
        log.warn(`${directory}: cannot be watched, and is checked every ten seconds instead: ${error.message}`)
      },
    }
  }

  #state(): SecretState {
    return this.#certificate?.state ?? { notAfter: undefined, identity: undefined, fault: undefined }
  }
}

/** Definition of the actor. */
export const actor: ActorDefinition<SecretAgentConfig, TrustBundleChanged, never> = {
  kind: 'secret-agent',
  start: (context) => new SecretAgent(context).start(),
}
