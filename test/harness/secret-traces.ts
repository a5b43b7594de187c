/** Finds traces of secrets in the output and the pages of a process. */
import { createPrivateKey } from 'node:crypto'

/** Secrets by name, each in every encoding in which it could appear. */
export class SecretTraces {
  readonly #forms: { readonly name: string; readonly form: string }[] = []

  /**
   * Adds a private key in PEM: its lines, its base64 encoding (as in a Secret document), and its private numbers. The public parts of the
   * key are not secret.
   */
  addKey(name: string, pem: string): void {
    const { d, p, q, n, x, y } = createPrivateKey(pem).export({ format: 'jwk' })
    const shared = Buffer.concat([n, x, y].map((number = '') => Buffer.from(number, 'base64url')))
    const isPublic = (text: string) => shared.includes(Buffer.from(text, 'base64').subarray(4, 16))
    const lines = pem.split('\n').filter((line) => line.length >= 32 && !line.startsWith('-'))
    for (const line of lines) if (!isPublic(line.slice(0, 32))) this.#add(name, line.slice(0, 32))
    const again = Buffer.from(pem).toString('base64')
    for (let from = 60; from + 40 < again.length; from += 40) this.#add(name, again.slice(from, from + 40))
    for (const number of [d, p, q]) if (number !== undefined) this.#addBytes(name, Buffer.from(number, 'base64url'))
  }

  /** Adds a signed token: its payload and its signature. */
  addToken(name: string, token: string): void {
    const [, payload = '', signature = ''] = token.split('.')
    this.#add(name, payload.slice(0, 40))
    this.#add(name, signature.slice(0, 40))
  }

  /** Returns the names of the secrets with a trace in a text. */
  in(text: string): string[] {
    return [...new Set(this.#forms.flatMap(({ name, form }) => (text.includes(form) ? name : [])))]
  }

  #addBytes(name: string, bytes: Buffer): void {
    for (const encoding of ['base64url', 'base64', 'hex'] as const) this.#add(name, bytes.toString(encoding).slice(0, 32))
    this.#add(name, JSON.stringify([...bytes.subarray(0, 16)]).slice(1, -1))
  }

  #add(name: string, form: string): void {
    if (form.length < 16) throw new Error(`${name}: ${JSON.stringify(form)} is too short: it may occur by chance`)
    this.#forms.push({ name, form })
  }
}
