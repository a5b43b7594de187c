/** The certificate authority of the server on this machine, asked over the admin socket (`mesh.admin.v1.AdminService`). */
import { type DescMessage, type MessageShape, toJson } from '@bufbuild/protobuf'
import { type Client, Code, ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import {
  AcceptTimeResponseSchema,
  AdminService,
  AuthoritySchema,
  DistrustRootResponseSchema,
  ListHoldersResponseSchema,
  RotateRootResponseSchema,
  TrustRootResponseSchema,
} from '../../protocols/gen/mesh/admin/v1/admin_pb.js'
import type {
  AcceptedTimeAnswer,
  AuthorityStatus,
  DistrustAnswer,
  LedgerPage,
  RotateAnswer,
  TrustAnswer,
} from '../../protocols/messages/authority-status.ts'
import { adminSocket, explained } from './admin-socket.ts'

/** How long a call may take, in milliseconds. */
const timeoutMs = 60_000

/** The maximum size of an answer in bytes: some times that of a page of the ledger. */
const largestAnswer = 16 * 1_048_576

/**
 * The authority of a running server. Its operations reject with an Error that has the reason of the server, and with `NoServerError` when no
 * server listens on the socket.
 */
export class AuthorityClient {
  readonly #socket: string
  readonly #client: Client<typeof AdminService>

  /** Uses the admin socket that the environment names. Throws when its directory belongs to another user. A call takes at most `limitMs`. */
  constructor(environment: NodeJS.ProcessEnv = process.env, limitMs = timeoutMs) {
    this.#socket = adminSocket(environment)
    const nodeOptions = { socketPath: this.#socket, agent: false } as const
    const transport = createConnectTransport({
      httpVersion: '1.1',
      baseUrl: 'http://localhost',
      nodeOptions,
      acceptCompression: [],
      defaultTimeoutMs: limitMs,
      readMaxBytes: largestAnswer,
    })
    this.#client = createClient(AdminService, transport)
  }

  async status(): Promise<AuthorityStatus> {
    const { authority } = await this.#asked(this.#client.getAuthority({}))
    if (authority) return plain(AuthoritySchema, authority)
    throw new Error('the answer of the server has no authority')
  }

  async ledger(start: number, length: number): Promise<LedgerPage> {
    return plain(ListHoldersResponseSchema, await this.#asked(this.#client.listHolders({ start, length })))
  }

  async rotate(force: boolean): Promise<RotateAnswer> {
    const answer = await this.#asked(this.#client.rotateRoot({ force }))
    const { refused, status } = answer
    if (refused === undefined) return plain(RotateRootResponseSchema, answer)
    return { refused, status: status && plain(AuthoritySchema, status) }
  }

  async distrust(id: string, isDry: boolean): Promise<DistrustAnswer> {
    return plain(DistrustRootResponseSchema, await this.#asked(this.#client.distrustRoot({ id, dryRun: isDry })))
  }

  async trust(id: string): Promise<TrustAnswer> {
    return plain(TrustRootResponseSchema, await this.#asked(this.#client.trustRoot({ id })))
  }

  async acceptTime(): Promise<AcceptedTimeAnswer> {
    return plain(AcceptTimeResponseSchema, await this.#asked(this.#client.acceptTime({})))
  }

  async #asked<Answer>(answer: Promise<Answer>): Promise<Answer> {
    try {
      return await answer
    } catch (error) {
      const { cause } = error as Error
      if (cause instanceof Error && 'syscall' in cause) throw explained(this.#socket, cause as NodeJS.ErrnoException)
      if (!(error instanceof ConnectError)) throw error
      const what = error.code === Code.DeadlineExceeded ? 'the server has not answered in time' : `the server answered: ${error.rawMessage}`
      throw new Error(what, { cause: error })
    }
  }
}

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/

/** Returns a message as the data of the same field names, with times as the stored authority has them. */
function plain<Schema extends DescMessage, Shown>(schema: Schema, message: MessageShape<Schema>): Shown {
  const json = JSON.stringify(toJson(schema, message, { alwaysEmitImplicit: true }))
  return JSON.parse(json, (_, value) => (typeof value === 'string' && time.test(value) ? new Date(value).toISOString() : value))
}
