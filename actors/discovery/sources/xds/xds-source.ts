/**
 * The source actor for another control plane (`configSources`, `xds://<host>:<port>`): emits its configuration objects to the push queue
 * (`ConfigChanged`, `ConfigUnusable`). What was received stays while the other one cannot be reached (docs/operation.md, F13).
 */
import { randomInt, X509Certificate } from 'node:crypto'
import type { ControlPlaneSourceConfig } from '../../../../protocols/messages/config.ts'
import { attentionNote, unknownNote } from '../../../../protocols/messages/notes.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import { type ConfigSourceTls, hostAndPort } from '../../../../src/config/config-sources.ts'
import type { Features } from '../../../../src/config/features.ts'
import { readOptOuts } from '../../../../src/config/opt-outs.ts'
import { uriNames } from '../../../../src/identity/client-trust.ts'
import { parseWorkload } from '../../../../src/identity/spiffe-id.ts'
import { BackOff } from '../../../../src/model/back-off.ts'
import { status } from '../../../../src/model/status-codes.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'
import { configGenerator } from '../../../../src/xds/config-objects/config-resource.ts'
import { bytesField } from '../../../../src/xds/slab/struct.ts'
import { textField, varintField } from '../../../../src/xds/slab/wire.ts'
import { nodeMessage } from '../../../../src/xds/status/status-messages.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../../runtime/actor.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { Peer } from '../../../runtime/link.ts'
import { after, deadlineAfter, type Timer } from '../../../runtime/timers.ts'
import { sendEvent } from '../../events/source-events.ts'
import type { FilesPage } from '../files/file-watcher.ts'
import { measureSource } from '../source-metrics.ts'
import { ControlPlaneStream, readTlsFiles } from './control-plane-stream.ts'
import { ReceivedObjects } from './received-objects.ts'

/** Delays between attempts to connect. */
const pauses = { firstMs: 500, longestMs: 30_000, jitter: 0.5 }
/**
 * How long readiness waits at a start for a control plane that does not answer, in milliseconds. Two that read from each other would wait for
 * ever.
 */
const readinessMs = 20_000
/** Maximum number of problems on the page. */
const maxProblems = 1000

class ControlPlaneSource implements Behaviour<never, SourceEvent> {
  readonly asks = { files: (): FilesPage => this.#page() }
  readonly #context: ActorContext<ControlPlaneSourceConfig>
  readonly #tls: ConfigSourceTls
  readonly #objects: ReceivedObjects
  readonly #backOff = new BackOff(pauses)
  #stream: ControlPlaneStream | undefined
  #retry: Timer | undefined
  /** Why the other one cannot be read at present. */
  #trouble: string | undefined = 'not connected yet'
  #queue: Peer<SourceEvent> | undefined
  /** Whether the last replay was incomplete, so that nothing was withdrawn; and whether readiness waits for it. */
  #isReplayIncomplete = false
  #holdsReadiness: boolean

  constructor(context: ActorContext<ControlPlaneSourceConfig>) {
    const { config, log, metrics } = context
    const { MESH_DOMAIN, MESH_POLICY_OPT_OUTS, REVISION } = config.features as Features
    this.#context = context
    this.#tls = config.tlsSettings as ConfigSourceTls
    this.#holdsReadiness = !config.allowUnreadable
    this.#objects = new ReceivedObjects({
      ...{ source: config.address, names: meshNames(MESH_DOMAIN), optOuts: readOptOuts(MESH_POLICY_OPT_OUTS), revision: REVISION },
      emit: (event) => {
        if (this.#queue) sendEvent(this.#queue, event)
      },
      warn: (line) => log('validation').warn(line),
    })
    measureSource(config.address, { size: () => this.#objects.size, isComplete: () => this.#objects.isCurrent }, metrics)
    if (this.#holdsReadiness) deadlineAfter(readinessMs, () => this.#waitNoLonger()).unref()
    this.#note()
    void this.#connect()
  }

  linked(peer: Peer<SourceEvent>): void {
    if (peer.kind === 'push-queue') this.#replay(peer)
  }

  receive(): void {}

  async drain(): Promise<void> {
    this.#retry?.cancel()
    this.#stream?.close()
  }

  async #connect(): Promise<void> {
    try {
      const address = hostAndPort(this.#context.config.address)
      if (!address) throw new Error('the address has no host and port')
      const texts = await readTlsFiles(this.#tls)
      const node = nodeOf(texts.certificate)
      this.#stream = new ControlPlaneStream(address, this.#tls, texts, {
        opened: () => this.#subscribe(node),
        message: (message) => this.#take(message),
        ended: (reason) => this.#ended(reason),
      })
    } catch (error) {
      this.#ended((error as Error).message)
    }
  }

  /** Subscribes to all kinds, with what is known of them. */
  #subscribe(node: Buffer): void {
    for (const [index, typeUrl] of this.#objects.typeUrls.entries()) {
      const known = this.#objects
        .versions(typeUrl)
        .map(([name, version]) => bytesField(5, Buffer.concat([textField(1, name), textField(2, version)])))
      this.#stream?.send(Buffer.concat([...(index === 0 ? [bytesField(1, node)] : []), textField(2, typeUrl), ...known]))
    }
  }

  #take(message: Buffer): void {
    const { typeUrl, nonce, refused } = this.#objects.take(message)
    const error = refused === undefined ? [] : [bytesField(7, Buffer.concat([varintField(1, status.invalidArgument), textField(2, refused)]))]
    this.#stream?.send(Buffer.concat([textField(2, typeUrl), textField(6, nonce), ...error]))
    if (!this.#objects.isCurrent || this.#trouble === undefined) return
    this.#trouble = undefined
    this.#backOff.succeeded()
    this.#context.log('mcp').info(`${this.#context.config.address} is connected, and has ${this.#objects.size} objects`)
    this.#holdsReadiness = false
    this.#note()
    if (this.#queue && this.#isReplayIncomplete) this.#replay(this.#queue)
  }

  #ended(reason: string): void {
    this.#stream = undefined
    this.#objects.disconnected()
    const { address } = this.#context.config
    const wait = this.#backOff.failed(monotonicMs(), randomInt(1000) / 1000)
    if (reason !== this.#trouble) this.#context.log('mcp').warn(`${address} cannot be read: ${reason}; its last state stays, and it is asked again`)
    this.#trouble = reason
    this.#note()
    this.#retry = after(wait, () => void this.#connect()).unref()
  }

  #waitNoLonger(): void {
    if (!this.#holdsReadiness) return
    this.#holdsReadiness = false
    const { address } = this.#context.config
    this.#context
      .log('mcp')
      .warn(`${address} has not answered for ${readinessMs / 1000} s: the process goes on without its objects, its policies too`)
    this.#note()
    if (this.#queue) this.#replay(this.#queue)
  }

  #note(): void {
    const line = this.#trouble === undefined ? [] : [`${this.#context.config.address} cannot be read: ${this.#trouble}`]
    this.#context.note(unknownNote, this.#holdsReadiness ? line : [])
    this.#context.note(attentionNote, this.#holdsReadiness ? [] : line)
  }

  /** Sends everything. What is not known to be complete withdraws nothing; while readiness waits, the replay stays open. */
  #replay(queue: Peer<SourceEvent>): void {
    this.#queue = queue
    const replay = queue.replay()
    for (const event of this.#objects.events()) sendEvent(queue, event)
    this.#isReplayIncomplete = !this.#objects.isKnown
    if (!this.#holdsReadiness || !this.#isReplayIncomplete) replay.finish(!this.#isReplayIncomplete)
  }

  #page(): FilesPage {
    const { address } = this.#context.config
    const unreadable = this.#trouble === undefined ? [] : [{ path: address, reason: this.#trouble }]
    return {
      waiting: this.#holdsReadiness && this.#trouble !== undefined ? [`${address}: ${this.#trouble}`] : [],
      unreadable,
      problems: this.#objects.problems().slice(0, maxProblems),
      sources: [{ source: address, directory: '', files: this.#objects.size, isComplete: this.#objects.isCurrent }],
      standIns: this.#objects.standIns(),
    }
  }
}

/** The node of this client: that of the identity in its certificate. Throws an Error without one. */
function nodeOf(pem: string): Buffer {
  const { subjectAltName = '' } = new X509Certificate(pem)
  const workload = uriNames(subjectAltName)
    .map(parseWorkload)
    .find((found) => found !== undefined)
  if (!workload) throw new Error('clientCertificate has no identity of a workload (spiffe://<trust domain>/ns/<namespace>/sa/<account>)')
  const { namespace, account } = workload
  const metadata = { GENERATOR: configGenerator, NAMESPACE: namespace, SERVICE_ACCOUNT: account }
  return nodeMessage({ id: `sidecar~0.0.0.0~${account}.${namespace}~${namespace}.svc.cluster.local`, metadata, locality: '' })
}

/** The actor definition of a source that is another control plane. */
export const actor: ActorDefinition<ControlPlaneSourceConfig, never, SourceEvent> = {
  kind: 'source',
  start: (context) => new ControlPlaneSource(context),
}
