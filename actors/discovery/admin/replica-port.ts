/**
 * The connection between replicas of discovery (docs/operation.md, A2): TLS with a key that both derive from the Secret of the control plane, so that
 * each end proves to the other that it may read this Secret, and no certificate of the mesh is of use here.
 */
import { hkdfSync } from 'node:crypto'
// biome-ignore lint/style/noRestrictedImports: given to the one client
import { request } from 'node:https'
import type { TlsOptions } from 'node:tls'
import type { ProcessSecrets } from '../../../protocols/messages/config.ts'
import { unknownQuestion } from '../../../src/model/replica-silence.ts'
import { excessOf } from '../../../src/orchestrator/replica-answers.ts'
import { Page, PageServer } from '../../http/page-server.ts'
import { ask } from '../../http/single-request.ts'

/** The bounds of questions: the time until the answer of a replica is there, its size, that of a question, and the connections of the server. */
export const replicaBounds = { ms: 2000, bytes: 32 * 1024 * 1024, questionBytes: 65_536, connections: 64 }

/** The path of questions. */
const path = '/ask'

/** The one cipher suite: ephemeral keys of both ends, so that what was recorded stays unreadable when the key is known later. */
const suite = { ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const satisfies TlsOptions

/** Returns the key of the replicas of a revision in the namespace of the control plane. */
export function replicaKey({ versionKey }: ProcessSecrets, namespace: string, revision: string): Buffer {
  return Buffer.from(hkdfSync('sha256', Buffer.from(versionKey, 'hex'), '', `replicas|${namespace}|${revision}`, 32))
}

/** Answers a question. Rejects for one that is none. */
export type AnswerReplica = (question: string, details: readonly unknown[]) => Promise<unknown>

/** What a question is refused with that a replica does not know. */
export const noSuchQuestion = 'there is no such question'

/** Where this replica is asked. */
export class ReplicaPort {
  readonly #server: PageServer
  #answer: AnswerReplica = () => Promise.reject(new Error('this replica is starting'))

  constructor(key: Buffer) {
    const tls = { ...suite, handshakeTimeout: replicaBounds.ms, pskCallback: () => key }
    this.#server = new PageServer({
      tls,
      maxConnections: replicaBounds.connections,
      requestMs: replicaBounds.ms,
      formBytes: replicaBounds.questionBytes,
    })
    this.#server.add(path, { post: async (request) => this.#asked(await request.body()) })
  }

  /** Starts to listen. Rejects when the address cannot be bound. Resolves with the port. */
  async listen(host: string, port: number): Promise<number> {
    await this.#server.listen(host, port)
    return this.#server.port ?? port
  }

  /** What answers from now on. */
  answerWith(answer: AnswerReplica): void {
    this.#answer = answer
  }

  close(): Promise<void> {
    return this.#server.close()
  }

  async #asked(body: string): Promise<Page> {
    const asked: unknown = JSON.parse(body)
    const { question, details } = (typeof asked === 'object' && asked !== null ? asked : {}) as { question?: unknown; details?: unknown }
    if (typeof question !== 'string' || !Array.isArray(details)) return new Page('no question', undefined, 400)
    // Bytes are sent as they are.
    return new Page(Buffer.from(JSON.stringify((await this.#answer(question, details)) ?? null)), 'application/json')
  }
}

/** Asks a replica. Rejects when it does not answer within the bounds, or is none. */
export async function askReplica(
  { host, port, key }: { readonly host: string; readonly port: number; readonly key: Buffer },
  question: string,
  details: readonly unknown[],
  { ms, bytes } = replicaBounds,
): Promise<unknown> {
  // Who has not the key ends the handshake: there is no certificate whose names could be checked.
  const tls = { ...suite, pskCallback: () => ({ psk: key, identity: 'replica' }), checkServerIdentity: () => undefined }
  const body = JSON.stringify({ question, details })
  const { status, body: answer } = await ask(
    { ...tls, host, port, path, method: 'POST', body, request: request as never, timeout: ms },
    { ms, bytes },
  ).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EPROTO'
      ? new Error(`it has not the key of the replicas (Secret mesh-version-secrets), or is none: ${tlsReason(error)}`)
      : error
  })
  // Replicas answer nothing else to what they do not know.
  if (status === 500 && answer.trimEnd() === noSuchQuestion) throw new Error(unknownQuestion)
  if (status !== 200) throw new Error(`it answers with status ${status}: ${answer.trimEnd().slice(0, 200)}`)
  const excess = excessOf(answer)
  if (excess !== undefined) throw new Error(`its answer is not read: ${excess}`)
  try {
    return JSON.parse(answer)
  } catch {
    throw new Error('its answer cannot be read')
  }
}

/** What OpenSSL says of a handshake that failed, without the places in its code. */
const tlsReason = ({ message }: Error): string => message.split(':')[5] ?? message
