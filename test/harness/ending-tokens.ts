/** Tokens of service accounts with lives of seconds: made as the API server of a cluster makes them, with its key, since it gives none of less than ten minutes. */
import { createPrivateKey } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SignJWT } from 'jose'
import type { TestCluster } from './cluster.ts'

/** For how many seconds after its end the API server takes a token. Discovery itself takes it no longer (docs/identity.md, K7). */
const leewaySeconds = 60

const issuer = 'https://kubernetes.default.svc.cluster.local'

/** A file with a token of a service account, which is replaced as the kubelet replaces those of pods. */
export class EndingToken {
  readonly #path: string
  readonly #lifeSeconds: number
  readonly #audience: string
  readonly #account: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly #key
  #renewal: NodeJS.Timeout | undefined

  /** `account`: `<namespace>/<name>`. `lifeSeconds`: until nobody takes it. `audience`: that of the API server if it is not given. */
  constructor(cluster: TestCluster, path: string, account: string, lifeSeconds: number, audience = issuer) {
    const [namespace = '', name = ''] = account.split('/')
    const uid = cluster.kubectl(['get', 'serviceaccount', '-n', namespace, name, '-o', 'jsonpath={.metadata.uid}'])
    this.#account = { namespace, name, uid }
    this.#path = path
    this.#lifeSeconds = lifeSeconds
    this.#audience = audience
    this.#key = createPrivateKey(readFileSync(join(cluster.dir, 'pki/service-account.key')))
    mkdirSync(dirname(path), { recursive: true })
  }

  /** Replaces the token. */
  async renew(): Promise<void> {
    const { namespace, name, uid } = this.#account
    const now = Math.floor(Date.now() / 1000)
    const exp = now + this.#lifeSeconds - (this.#audience === issuer ? leewaySeconds : 0)
    const text = await new SignJWT({ 'kubernetes.io': { namespace, serviceaccount: { name, uid } } })
      .setProtectedHeader({ alg: 'ES256' })
      .setIssuer(issuer)
      .setSubject(`system:serviceaccount:${namespace}:${name}`)
      .setAudience([this.#audience])
      .setIssuedAt(now - leewaySeconds)
      .setNotBefore(now - leewaySeconds)
      .setExpirationTime(exp)
      .sign(this.#key)
    writeFileSync(`${this.#path}.new`, text)
    renameSync(`${this.#path}.new`, this.#path)
  }

  /** Replaces the token now and every `seconds`, until {@link stop}. */
  async renewEvery(seconds: number): Promise<void> {
    await this.renew()
    this.#renewal = setInterval(() => void this.renew(), seconds * 1000)
  }

  stop(): void {
    clearInterval(this.#renewal)
  }
}
