/**
 * The real command with a certificate authority of its own: a serving certificate from files, an issuer whose tokens it accepts, and a wall
 * clock that the test shifts.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../bench/ports.ts'
import type { AuthorityStatus } from '../../protocols/messages/authority-status.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { CertificateClient } from './certificate-client.ts'
import { Issuer } from './issuer.ts'
import { type CommandResult, runCommand, Service } from './service.ts'
import { ServingCertificates } from './serving-certificates.ts'
import { keys } from './signing-requests.ts'
import { until } from './until.ts'

/** The service, and what clients of its authority need. */
export class OwnAuthority {
  readonly service = new Service()
  readonly port: number
  /** The roots of the serving certificate, PEM. */
  readonly roots: string
  readonly #issuer: Issuer
  readonly #clients: { close(): void }[] = []

  private constructor(port: number, issuer: Issuer, writers: number) {
    this.port = port
    this.#issuer = issuer
    const made = new ServingCertificates(this.service.dir)
    made.authority('ca')
    made.issue('server', 'ca')
    this.roots = made.text('ca.pem')
    this.service.flags.push('--writers', String(writers), '--secureGRPCAddr', `127.0.0.1:${port}`, ...made.servingFlags())
    Object.assign(this.service.env, {
      NODE_OPTIONS: `--require ${fileURLToPath(new URL('shifted-clock.cjs', import.meta.url))}`,
      SHIFT_FILE: join(this.service.dir, '.shift'),
      JWT_RULE: JSON.stringify({ issuer: issuer.name, jwks: issuer.jwks, audiences: ['mesh-ca'] }),
    })
  }

  /** Makes one that is not started yet. */
  static async make(writers: number): Promise<OwnAuthority> {
    return new OwnAuthority(await freePort(), await new Issuer('https://issuer.test').rotateOnly('ES256'), writers)
  }

  /** Starts the service and waits for the authority. */
  async start(): Promise<void> {
    await this.service.start()
    await until('the authority', async () => (await this.ca('show')).code === 0)
  }

  /** Runs the command `ca`. */
  ca(...args: string[]): Promise<CommandResult> {
    return runCommand(['ca', ...args], this.service.env)
  }

  /** What `ca show` prints as JSON. */
  async page(): Promise<AuthorityStatus> {
    return JSON.parse((await this.ca('show', '-o', 'json')).stdout) as AuthorityStatus
  }

  /** Sets by how many milliseconds the wall clock of the service is ahead. */
  shift(ms: number): void {
    writeFileSync(this.service.env.SHIFT_FILE as string, String(ms))
  }

  /** Requests a certificate of the service account `cart` in `shop`, with claims of its token besides these. */
  async certificate(claims: Readonly<Record<string, unknown>> = {}): Promise<readonly string[]> {
    const token = await this.#issuer.token({ sub: 'system:serviceaccount:shop:cart', aud: 'mesh-ca', ...claims })
    const client = this.closing(new CertificateClient(this.port, { roots: this.roots, token }))
    const outcome = await client.obtain(makeSigningRequest(keys.p256, []))
    if ('chain' in outcome) return outcome.chain
    throw new Error(`${outcome.code} ${outcome.details}`)
  }

  /** Closes a client at the end. Returns it. */
  closing<Client extends { close(): void }>(client: Client): Client {
    this.#clients.push(client)
    return client
  }

  async dispose(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.close()
    await this.service.dispose()
  }
}
