/**
 * The agent's secrets as an actor: has a certificate issued for a key of its own, renews it in time, and serves both with the roots to
 * Envoy. It has no peers. Asks: `state`, {@link SecretState}.
 */
import { generateKeyPair, type KeyObject, randomInt } from 'node:crypto'
import { promisify } from 'node:util'
import type { SecretAgentConfig, SecretState } from '../../../protocols/messages/agent.ts'
import { BadAnswer, type Issued, readIssued } from '../../../src/agent/issued.ts'
import { metricPrefix } from '../../../src/agent/metric-prefix.ts'
import { type Moment, WorkloadSecrets } from '../../../src/agent/workload-secrets.ts'
import { makeSigningRequest } from '../../../src/ca/signing-request.ts'
import { status } from '../../grpc/status-codes.ts'
import { type OutgoingRequests, outgoingMetrics } from '../../http/outgoing-metrics.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { monotonicMs, wallClockMs } from '../../runtime/clock.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { readPair, readRoots, readToken } from '../credentials/credential-file.ts'
import { CallFailed, type Credentials, createCertificate } from './certificate-client.ts'
import { SecretServer } from './secret-server.ts'

/** Longest time between two looks at the clocks, in milliseconds: timers stand still while the machine sleeps. */
const lookMs = 60_000

const now = (): Moment => ({ wall: wallClockMs(), monotonic: monotonicMs() })
const chance = () => randomInt(1_000_000) / 1_000_000

class SecretAgent implements Behaviour<never> {
  readonly asks = { state: () => this.#state() }
  readonly #context: ActorContext<SecretAgentConfig>
  readonly #secrets: WorkloadSecrets
  readonly #server: SecretServer
  readonly #calls: OutgoingRequests
  /** Whether the next call presents the certificate: after one that failed with it, the token alone is tried. */
  #presents = true
  #fault: string | undefined
  #timer: Timer | undefined
  #isOver = false

  constructor(context: ActorContext<SecretAgentConfig>) {
    this.#context = context
    this.#secrets = new WorkloadSecrets(context.config.graceRatio)
    this.#server = new SecretServer(context.config.socket, () => this.#secrets.served(now()), { log: context.log('sds'), metrics: context.metrics })
    this.#calls = outgoingMetrics(context.metrics, metricPrefix)('csr')
  }

  /** Rejects when the socket cannot be listened on. */
  async start(): Promise<this> {
    await this.#server.open()
    this.#look()
    return this
  }

  receive(): void {}

  async drain(): Promise<void> {
    this.#isOver = true
    this.#timer?.cancel()
    await this.#server.close()
  }

  #look(): void {
    if (this.#isOver) return
    const wait = this.#secrets.wait(now())
    if (wait > 0) this.#timer = after(Math.min(wait, lookMs), () => this.#look())
    else void this.#renew()
  }

  async #renew(): Promise<void> {
    const log = this.#context.log('citadelclient')
    this.#secrets.asked()
    const finished = this.#calls.started(this.#secrets.failures > 0)
    try {
      const { issued, key } = await this.#ask()
      finished(true)
      if (this.#isOver) return
      this.#secrets.issued(issued, key, now(), chance())
      this.#presents = true
      this.#fault = undefined
      this.#server.push()
      const wait = Math.round(this.#secrets.wait(now()) / 1000)
      log.info(`certificate of ${issued.identity}, valid until ${new Date(issued.notAfter).toISOString()}; the next is asked for in ${wait} s`)
    } catch (error) {
      finished(false)
      if (this.#isOver) return
      this.#presents = !this.#presents
      this.#fault = error instanceof Error ? error.message : String(error)
      const wait = this.#secrets.failed(error instanceof CallFailed ? error.retryAfterMs : 0, now(), chance())
      const { host, port } = this.#context.config.authority.address
      log.warn(`no certificate from ${host}:${port}: ${this.#fault}; asked again in ${(wait / 1000).toFixed(1)} s`)
    }
    this.#look()
  }

  /** Has a certificate issued for a new key. */
  async #ask(): Promise<{ readonly issued: Issued; readonly key: string }> {
    const { authority, identity, key: kind, ttlSeconds, clusterId } = this.#context.config
    const key = await newKey(kind.type)
    const csr = makeSigningRequest(key, identity === undefined ? [] : [{ uri: identity }])
    const chain = await createCertificate(authority.address, { csr, ttlSeconds, clusterId }, await this.#credentials())
    const type = kind.format === 'pkcs8' ? 'pkcs8' : kind.type === 'rsa' ? 'pkcs1' : 'sec1'
    return { issued: readAnswer(chain, key), key: key.export({ type, format: 'pem' }).toString() }
  }

  async #credentials(): Promise<Credentials> {
    const { address, credentials } = this.#context.config.authority
    const token = credentials.tokenFile === undefined ? undefined : await this.#given(readToken(credentials.tokenFile), 'token')
    const roots = address.isPlain
      ? undefined
      : await readRoots(credentials.roots, this.#secrets.roots).catch((error: Error) => {
          throw new CallFailed(status.unavailable, `roots of the authority: ${error.message}`)
        })
    const provisioned = credentials.pair && (await this.#given(readPair(credentials.pair), 'provisioned certificate'))
    const pair = this.#presents || token === undefined ? (this.#secrets.pair(now()) ?? provisioned) : undefined
    return { token, pair, roots }
  }

  /** What was read; undefined, with a warning, when it cannot be used. */
  #given<T>(read: Promise<T>, what: string): Promise<T | undefined> {
    return read.catch((error: Error) => void this.#context.log('citadelclient').warn(`no ${what} is sent: ${error.message}`))
  }

  #state(): SecretState {
    const pair = this.#secrets.pair(now())
    return { notAfter: pair?.notAfter, identity: pair?.identity, fault: this.#fault }
  }
}

const generate = promisify(generateKeyPair)

/** A new private key; made on a thread of the system's pool. */
async function newKey(type: 'rsa' | 'ec'): Promise<KeyObject> {
  const { privateKey } = type === 'rsa' ? await generate('rsa', { modulusLength: 2048 }) : await generate('ec', { namedCurve: 'P-256' })
  return privateKey
}

function readAnswer(chain: readonly string[], key: KeyObject): Issued {
  try {
    return readIssued(chain, key, wallClockMs())
  } catch (error) {
    if (error instanceof BadAnswer) throw new CallFailed(status.internal, error.message)
    throw error
  }
}

/** The agent's secrets as an actor. */
export const actor: ActorDefinition<SecretAgentConfig, never, never> = {
  kind: 'secret-agent',
  start: (context) => new SecretAgent(context).start(),
}
