/**
 * Keeps the CA bundles of the injection webhooks: has the main thread write the certificates in force into each MutatingWebhookConfiguration of this
 * revision that has others (docs/injection.md, N15).
 */
import type { WebhooksConfig } from '../../../protocols/messages/admission.ts'
import type { BundleOutcome, InjectorWebhooksEvent } from '../../../protocols/messages/injection.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import type { Features } from '../../../src/config/features.ts'
import { outdatedWebhooks, pathsWithout, type WebhookObject } from '../../../src/orchestrator/webhook-object.ts'
import type { ActorContext } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** The time after which a failed write is repeated, in milliseconds. */
const retryMs = 2000
/** The number of paths of a configuration that are told, and the letters of each. */
const most = { paths: 4, letters: 200 }

/** Writes bundles. */
export class WebhookBundles {
  readonly #context: ActorContext<WebhooksConfig>
  readonly #usesCluster: boolean
  readonly #cluster: string | undefined
  readonly #noted: (faults: readonly string[]) => void
  readonly #objects = new Map<string, WebhookObject>()
  /** PEM in base64; empty: not known. */
  #bundle = ''
  #underWay = false
  #retry: Timer | undefined
  #isClosed = false
  #trouble = ''
  /** What was told of paths, by configuration. */
  readonly #paths = new Map<string, string>()

  /** `cluster`: another cluster whose configurations they are; undefined: the own one. */
  constructor(
    context: ActorContext<WebhooksConfig>,
    { PILOT_CERT_PROVIDER }: Features,
    noted: (faults: readonly string[]) => void,
    cluster?: string,
  ) {
    this.#cluster = cluster
    this.#context = context
    this.#noted = noted
    this.#usesCluster = PILOT_CERT_PROVIDER === 'orchestrator'
  }

  receive(message: InjectorWebhooksEvent | TrustEvent): void {
    if (message.type === 'InjectorWebhooksChanged') {
      if (message.state) this.#objects.set(message.name, message.state)
      else this.#objects.delete(message.name)
      this.#tellPaths(message)
    } else {
      const pem = this.#bundleOf(message)
      if (pem === undefined) return
      this.#bundle = Buffer.from(pem).toString('base64')
    }
    void this.#work()
  }

  close(): void {
    this.#isClosed = true
    this.#retry?.cancel()
  }

  /** The certificates that verify the port: the roots of the own authority, or those of the files, where its certificate is a file. */
  #bundleOf({ source, announced, roots }: TrustEvent): string | undefined {
    if (this.#usesCluster) return undefined
    const isOfFiles = this.#context.config.port?.ownHosts === undefined
    return (isOfFiles ? source === 'certificate-watcher' && roots[''] : announced) || undefined
  }

  async #work(): Promise<void> {
    if (this.#underWay || this.#isClosed) return
    this.#underWay = true
    this.#retry?.cancel()
    const failures: string[] = []
    try {
      if (this.#usesCluster) await this.#askCluster()
      for (const [name, object] of [...this.#objects]) {
        const webhooks = this.#bundle === '' ? [] : outdatedWebhooks(object, this.#bundle)
        if (webhooks.length === 0) continue
        const { result, reason } = await this.#write(name, object, webhooks)
        if (result === 'failed') failures.push(`the CA bundle of MutatingWebhookConfiguration ${name}${this.#where} cannot be written: ${reason}`)
        else if (this.#objects.get(name) === object) this.#objects.delete(name)
      }
    } catch (error) {
      failures.push(`the CA bundle of injection webhooks is not known: ${(error as Error).message}`)
    }
    this.#underWay = false
    if (this.#isClosed) return
    this.#tell(failures)
    // What came meanwhile, and was not looked at, is looked at too.
    const isLeft = this.#bundle !== '' && [...this.#objects.values()].some((object) => outdatedWebhooks(object, this.#bundle).length > 0)
    if (failures.length > 0) this.#retry = after(retryMs, () => void this.#work()).unref()
    else if (isLeft) void this.#work()
  }

  async #write(name: string, { uid }: WebhookObject, webhooks: readonly { readonly index: number; readonly name: string }[]): Promise<BundleOutcome> {
    const order = { cluster: this.#cluster, name, uid, webhooks, bundle: this.#bundle }
    const outcome = await this.#context
      .askFor(patient, 'writeWebhookBundle', order)
      .catch((error: Error): BundleOutcome => ({ result: 'failed', reason: error.message }))
    if (outcome.result === 'written')
      this.#context.log('validationServer').info(`MutatingWebhookConfiguration ${name}${this.#where} has the certificates that verify this service`)
    return outcome
  }

  get #where(): string {
    return this.#cluster === undefined ? '' : ` of the cluster ${this.#cluster}`
  }

  /** Tells of webhooks of another cluster whose pods are given the cluster of the values of injection, and are refused then. */
  #tellPaths({ name, state }: InjectorWebhooksEvent): void {
    const paths = state && this.#cluster !== undefined ? pathsWithout(state, this.#cluster).slice(0, most.paths) : []
    const told = paths.map((path) => JSON.stringify(path.slice(0, most.letters))).join(', ')
    if (told === (this.#paths.get(name) ?? '')) return
    if (told === '') return void this.#paths.delete(name)
    this.#paths.set(name, told)
    this.#context
      .log('validationServer')
      .warn(
        `MutatingWebhookConfiguration ${name}${this.#where}: the path ${told} does not name this cluster, so that pods there are given the cluster of the values of injection (global.multiCluster.clusterName), and are refused unless that is it; the path /inject/cluster/${this.#cluster} names it`,
      )
  }

  async #askCluster(): Promise<void> {
    const { ca } = await this.#context.askFor(patient, 'clusterAccess', false)
    if (ca !== undefined) this.#bundle = Buffer.from(ca).toString('base64')
  }

  #tell(failures: readonly string[]): void {
    const text = failures.join('\n')
    if (text === this.#trouble) return
    this.#trouble = text
    for (const failure of failures) this.#context.log('validationServer').error(failure)
    this.#noted(failures)
  }
}
