/** Issues tokens and serves the keys that verify them. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair, type JWTHeaderParameters, type JWTPayload, SignJWT } from 'jose'
import { freePort } from '../../bench/ports.ts'

type Key = {
  readonly kid: string
  readonly alg: string
  readonly private: Awaited<ReturnType<typeof generateKeyPair>>['privateKey']
  readonly jwk: object
}

/** An issuer with one key, which can be replaced. */
export class Issuer {
  readonly name: string
  #key: Key | undefined
  #server: Server | undefined
  #count = 0
  port = 0
  /** The number of requests received. */
  fetches = 0
  /** Answers requests in place of the key set. */
  answer: ((request: IncomingMessage, response: ServerResponse) => void) | undefined

  constructor(name: string) {
    this.name = name
  }

  /** Generates a key and serves it over HTTP. */
  async start(): Promise<this> {
    await this.rotate()
    this.port = await freePort()
    this.#server = createServer((request, response) => {
      this.fetches++
      if (this.answer) return this.answer(request, response)
      if (request.url === '/.well-known/openid-configuration') return response.end(JSON.stringify({ issuer: this.name, jwks_uri: this.jwksUri }))
      response.end(this.jwks)
    })
    await new Promise<void>((resolve) => this.#server?.listen(this.port, '127.0.0.1', resolve))
    return this
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections()
    await new Promise((resolve) => (this.#server ? this.#server.close(resolve) : resolve(undefined)))
  }

  /** Replaces the key. */
  async rotate(alg = 'RS256'): Promise<void> {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
    const kid = `${this.name}-${++this.#count}`
    this.#key = { kid, alg, private: privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
  }

  /** Replaces the key of an issuer that does not serve it. */
  async rotateOnly(alg: string): Promise<this> {
    await this.rotate(alg)
    return this
  }

  get jwksUri(): string {
    return `http://127.0.0.1:${this.port}/jwks`
  }

  /** The key set as JSON. */
  get jwks(): string {
    return JSON.stringify({ keys: [this.#key?.jwk] })
  }

  /** Issues a token that is valid for an hour, unless the claims override that. */
  async token(claims: JWTPayload = {}, header: Partial<JWTHeaderParameters> = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    const { alg, kid, private: key } = this.#key as Key
    const payload = { iss: this.name, sub: 'subject', iat: now, exp: now + 3600, ...claims }
    return new SignJWT(payload).setProtectedHeader({ alg, kid, typ: 'JWT', ...header }).sign(key)
  }
}
