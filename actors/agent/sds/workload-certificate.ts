/**
 * The workload's certificate: requested from the certificate authority for a generated key, renewed before its expiry, and stored for a
 * restart (docs/certificates.md, N1 to N7, H1 to H4).
 */
import { generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import type { CertificateConfig, CloudAuthority, SecretState } from '../../../protocols/messages/agent.ts'
import { BadAnswer, type Issued, leadsTo, readAnnounced, readIssued } from '../../../src/agent/issued.ts'
import { type KeptSecrets, keyText, restore } from '../../../src/agent/kept-secrets.ts'
import { callPauses } from '../../../src/agent/renewal.ts'
import type { PairSecret, RootsSecret } from '../../../src/agent/secret-resources.ts'
import { WorkloadSecrets } from '../../../src/agent/workload-secrets.ts'
import { makeSigningRequest } from '../../../src/ca/signing-request.ts'
import { count } from '../../../src/model/counts.ts'
import { status } from '../../../src/model/status-codes.ts'
import { federatedRequest, readFederated } from '../../../src/sts/cloud-exchange.ts'
import { type OutgoingRequests, outgoingMetrics } from '../../http/outgoing-metrics.ts'
import { chance } from '../../runtime/chance.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { Logger, ScopedLogger } from '../../runtime/logger.ts'
import type { MetricRegistry } from '../../runtime/metrics.ts'
import { Renewal } from '../../runtime/renewal.ts'
import { readPair, readRoots, readToken } from '../credentials/credential-file.ts'
import { exchange } from '../exchange-client.ts'
import { CallFailed, termsOf } from '../unary-call.ts'
import { CertificateClient, type Credentials } from './certificate-client.ts'
import { readKeptFile, writeKeptFile } from './kept-file.ts'

/** The time over which agents renew certificates that lead to no root any more, in milliseconds (docs/certificates.md, R17). */
const untrustedMs = 10_000

/** The dependencies of {@link WorkloadCertificate}. */
export interface CertificateParts {
  readonly log: Logger
  readonly metrics: MetricRegistry
  /** The fetched token, which takes precedence over the token file. Undefined while there is none. */
  readonly token: () => string | undefined
  /** Called when the certificate or the roots have changed. */
  readonly changed: () => void
}

/** An issued certificate and its private key (PEM). */
interface Answer {
  readonly issued: Issued
  readonly key: string
}

/** Requests, renews and stores the certificate. */
export class WorkloadCertificate {
  readonly #config: CertificateConfig
  readonly #log: ScopedLogger
  readonly #fetchedToken: () => string | undefined
  readonly #changed: () => void
  readonly #secrets: WorkloadSecrets
  readonly #client: CertificateClient
  readonly #calls: OutgoingRequests
  readonly #exchanges: OutgoingRequests
  /** Ends a running exchange of tokens when it is aborted. */
  readonly #closed = new AbortController()
  readonly #renewal: Renewal<Answer>
  #fault: string | undefined
  /** What is stored. */
  #kept: KeptSecrets | undefined
  /** The roots that were announced since the last call began. */
  #announced: string | undefined
  /** The last logged reason why the certificate could not be stored. */
  #keptFault: string | undefined

  constructor(config: CertificateConfig, { log, metrics, token, changed }: CertificateParts) {
    this.#config = config
    this.#log = log('citadelclient')
    this.#fetchedToken = token
    this.#changed = changed
    this.#secrets = new WorkloadSecrets(config.graceRatio)
    this.#client = new CertificateClient(config.authority.address, config.cloud)
    const outgoing = outgoingMetrics(metrics)
    this.#calls = outgoing('csr')
    this.#exchanges = outgoing('token_exchange')
    this.#renewal = new Renewal({
      pauses: callPauses,
      obtain: (failures) => this.#ask(failures),
      use: (answer) => this.#use(answer),
      failed: (error, _, waitMs) => this.#failed(error, waitMs),
      terms: (error) => ({ ...termsOf(error), longestMs: this.#secrets.longestPause(wallClockMs()) }),
    })
  }

  /** The certificate that may be served at present, with its key. */
  get pair(): PairSecret | undefined {
    return this.#secrets.pair(wallClockMs())
  }

  /** The roots of the last response, or those announced since. */
  get roots(): RootsSecret | undefined {
    return this.#secrets.roots
  }

  get state(): SecretState {
    const pair = this.#secrets.pair(wallClockMs())
    return { notAfter: pair?.notAfter, identity: pair?.identity, fault: this.#fault }
  }

  /** Restores the stored secrets, if they may be used. */
  async restore(): Promise<void> {
    const { keptIn, identity } = this.#config
    if (keptIn === undefined || identity === undefined) return
    try {
      const kept = await readKeptFile(keptIn)
      if (!kept) return
      const fault = this.#restore(kept)
      if (fault !== undefined) this.#log.warn(`the saved certificate in ${keptIn} is not used: ${fault}; its roots are`)
    } catch (error) {
      this.#log.warn(`the saved certificate and roots in ${keptIn} are not used: ${(error as Error).message}`)
    }
  }

  /** Uses stored secrets. Returns why the certificate is not used. Throws an Error with the reason when none of them is. */
  #restore(kept: KeptSecrets): string | undefined {
    const { roots, pair, isDue } = restore(kept, this.#config, this.#authority, wallClockMs())
    this.#kept = kept
    this.#secrets.useRoots(roots)
    if (typeof pair === 'string') return pair
    const renewalMs = this.#secrets.issued(pair.issued, pair.key, kept.issuedAt, wallClockMs(), chance())
    this.#renewal.dueIn(isDue ? 0 : renewalMs)
    const { identity: holder, notAfter } = pair.issued
    const wait = Math.round(this.#renewal.waitMs / 1000)
    this.#log.info(
      `certificate of ${holder} loaded from ${this.#config.keptIn}, valid until ${new Date(notAfter).toISOString()}; renewal in ${wait} s`,
    )
    return undefined
  }

  /** Uses the stored certificate if it is valid now: the wall clock may have been wrong when it was not. */
  #useKept(): void {
    if (this.#kept && !this.#secrets.pair(wallClockMs()) && this.#restore(this.#kept) === undefined) this.#changed()
  }

  /** Sets whether certificates are to be requested from the authority. */
  want(isWanted: boolean): void {
    if (isWanted) this.#renewal.start()
    else this.#renewal.stop()
  }

  /** Retries a failed call at once, because its credentials have changed. */
  retry(): void {
    this.#renewal.retryNow()
  }

  /** Takes the roots (PEM) that discovery announces in place of those of the last response (docs/certificates.md, R17). */
  announce(roots: string): void {
    this.#announced = roots
    // Without a response there is nothing to replace; the first one has the roots.
    if (!this.#secrets.roots) return
    try {
      this.#trust(readAnnounced(roots))
    } catch (error) {
      if (!(error instanceof BadAnswer)) throw error
      this.#log.warn(`the announced roots are not used, and the previous ones stay in use: ${error.message}`)
    }
  }

  #trust(roots: string): void {
    if (roots === this.#secrets.roots?.pem) return
    this.#secrets.useRoots(roots)
    this.#log.info(`the roots of the mesh have changed: ${count(roots.split('-----BEGIN').length - 1, 'root')}`)
    const pair = this.#secrets.pair(wallClockMs())
    if (pair && !leadsTo(pair.chain, roots, wallClockMs())) {
      this.#renewal.dueWithin(chance() * untrustedMs)
      const wait = (this.#renewal.waitMs / 1000).toFixed(1)
      this.#log.warn(`the certificate of ${pair.identity} leads to none of the roots, so peers refuse it; renewal in ${wait} s`)
    }
    this.#changed()
    if (this.#kept) this.#keep({ ...this.#kept, roots })
  }

  close(): void {
    this.#renewal.close()
    this.#closed.abort()
  }

  get #authority(): string {
    const { host, port } = this.#config.authority.address
    return `${host}:${port}`
  }

  /** Requests a certificate for a new key. */
  async #ask(failures: number): Promise<Answer> {
    this.#announced = undefined
    const finished = this.#calls.started(failures > 0)
    try {
      const { identity, key: kind, ttlSeconds, clusterId } = this.#config
      const key = await newKey(kind.type)
      const csr = makeSigningRequest(key, identity === undefined ? [] : [{ uri: identity }])
      const chain = await this.#client.create({ csr, ttlSeconds, clusterId }, await this.#credentials(failures))
      const issued = readAnswer(chain, key)
      finished(true)
      return { issued, key: keyText(key, kind) }
    } catch (error) {
      finished(false)
      throw error
    }
  }

  /** Puts a certificate into use. Returns the delay until its renewal in milliseconds. */
  #use({ issued, key }: Answer): number {
    const now = wallClockMs()
    const renewalMs = this.#secrets.issued(issued, key, now, now, chance())
    this.#fault = undefined
    const wait = Math.round(renewalMs / 1000)
    this.#log.info(`certificate of ${issued.identity}, valid until ${new Date(issued.notAfter).toISOString()}; renewal in ${wait} s`)
    this.#changed()
    this.#keep({ chain: issued.chain, roots: issued.roots, key, issuedAt: now })
    // The response may have been made before the roots changed.
    if (this.#announced !== undefined) this.announce(this.#announced)
    return renewalMs
  }

  #failed({ message }: Error, waitMs: number): void {
    this.#fault = message
    this.#log.warn(`no certificate from ${this.#authority}: ${message}; retry in ${(waitMs / 1000).toFixed(1)} s`)
    this.#useKept()
  }

  async #credentials(failures: number): Promise<Credentials> {
    const { address, credentials } = this.#config.authority
    const own = this.#fetchedToken() ?? (credentials.tokenFile && (await this.#given(readToken(credentials.tokenFile), 'token')))
    const roots = address.isPlain
      ? undefined
      : await readRoots(credentials.roots, this.#secrets.roots?.pem).catch((error: Error) => {
          throw new CallFailed(status.unavailable, `roots of the authority: ${error.message}`)
        })
    const { cloud } = this.#config
    if (cloud) return { token: await this.#federated(cloud, own), roots, pair: undefined }
    const provisioned = credentials.pair && (await this.#given(readPair(credentials.pair), 'provisioned certificate'))
    const pairs = [this.#secrets.pair(wallClockMs()), provisioned].filter((pair) => pair !== undefined)
    // Attempts alternate between the available client certificates and the token alone (docs/certificates.md, N4).
    const ways = own === undefined ? pairs : [...pairs, undefined]
    return { token: own, roots, pair: ways[failures % Math.max(1, ways.length)] }
  }

  /** Exchanges the token of the workload for one that the certificate service of the cloud accepts (docs/certificates.md, N8). */
  async #federated(cloud: CloudAuthority, token: string | undefined): Promise<string> {
    if (token === undefined) throw new CallFailed(status.unauthenticated, 'there is no token to exchange')
    try {
      const request = federatedRequest(cloud, { subjectToken: token, scope: '' })
      return readFederated(await exchange(request, this.#exchanges, this.#log, this.#closed.signal), wallClockMs()).token
    } catch (error) {
      throw new CallFailed(status.unavailable, `the token could not be exchanged: ${(error as Error).message}`)
    }
  }

  /** Resolves with the result, or with undefined after a logged warning when the file cannot be used. */
  #given<T>(read: Promise<T>, what: string): Promise<T | undefined> {
    return read.catch((error: Error) => void this.#log.warn(`the ${what} cannot be used, so none is sent: ${error.message}`))
  }

  #keep(kept: Omit<KeptSecrets, 'identity' | 'authority'>): void {
    const { keptIn, identity } = this.#config
    if (keptIn === undefined || identity === undefined) return
    try {
      this.#kept = { ...kept, identity, authority: this.#authority }
      writeKeptFile(keptIn, this.#kept)
      this.#keptFault = undefined
    } catch (error) {
      const { message } = error as Error
      if (this.#keptFault === message) return
      this.#keptFault = message
      this.#log.warn(`the certificate could not be saved for a restart: ${message}`)
    }
  }
}

const generate = promisify(generateKeyPair)

/** Generates a private key, on a thread of libuv's pool. */
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
