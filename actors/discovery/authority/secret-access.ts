/** The Secrets of the control namespace, for the certificate authority: reads and writes with versions. */
import type { KeptSecret, SecretCall, SecretOutcome } from '../../../protocols/messages/secret-calls.ts'
import type { SecretTexts } from '../../../src/ca/secret-forms.ts'
import { StorageAwayError } from './storage.ts'

/** Reads and writes Secrets of one namespace. */
export class SecretAccess {
  readonly namespace: string
  readonly #call: (call: SecretCall) => Promise<SecretOutcome>

  /** `call` makes one call to the API server. */
  constructor(call: (call: SecretCall) => Promise<SecretOutcome>, namespace: string) {
    this.#call = call
    this.namespace = namespace
  }

  /** The name of a Secret in messages. */
  described(name: string): string {
    return `Secret ${this.namespace}/${name}`
  }

  /** Reads a Secret; undefined when the API server says that there is none. Rejects with {@link StorageAwayError}. */
  async get(name: string): Promise<KeptSecret | undefined> {
    const answer = await this.#ask({ verb: 'get', name })
    return answer.outcome === 'done' ? answer.secret : undefined
  }

  /**
   * Writes a Secret if it still has its version, or creates it if it has none. Resolves with it as it is then; undefined when somebody else
   * was faster: nothing was written. Rejects with {@link StorageAwayError} when it is not known whether it was.
   */
  async write(secret: KeptSecret): Promise<KeptSecret | undefined> {
    const answer = await this.#ask({ verb: secret.resourceVersion === '' ? 'create' : 'update', secret })
    return answer.outcome === 'done' ? answer.secret : undefined
  }

  async #ask(call: SecretCall): Promise<Exclude<SecretOutcome, { outcome: 'failed' }>> {
    const answer = await this.#call(call).catch((error: Error): SecretOutcome => ({ outcome: 'failed', reason: error.message, mayPass: true }))
    if (answer.outcome === 'failed') throw new StorageAwayError(answer.reason)
    return answer
  }
}

/** A Secret that does not exist yet. */
export const newSecret = (name: string, type: string): KeptSecret => ({ name, type, data: {}, resourceVersion: '' })

/** Returns the values of a Secret as texts. */
export function textsOf({ data }: KeptSecret): SecretTexts {
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, Buffer.from(value, 'base64').toString('utf8')]))
}

/** Returns a Secret with these texts as all of its values. */
export function withTexts(secret: KeptSecret, texts: SecretTexts): KeptSecret {
  return { ...secret, data: Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text, 'utf8').toString('base64')])) }
}
