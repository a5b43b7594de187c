/** The certificate authority of the server on this machine, asked over the admin socket (`mesh.admin.v1.AdminService`). */
import { type DescMessage, type MessageShape, toJson } from '@bufbuild/protobuf'
import {
  AcceptTimeResponseSchema,
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
import { AdminClient, longerMs } from './admin-client.ts'
import { adminSocket } from './admin-socket.ts'

/**
 * The authority of a running server. Its operations reject with an Error that has the reason of the server, and with `NoServerError` when no
 * server listens on the socket.
 */
export class AuthorityClient {
  readonly #client: AdminClient

  /** Uses the admin socket that the environment names. Throws when its directory belongs to another user. A call takes at most `limitMs`. */
  constructor(environment: NodeJS.ProcessEnv = process.env, limitMs?: number) {
    this.#client = new AdminClient({ socket: adminSocket(environment) }, { limitMs: limitMs ?? longerMs })
  }

  async status(): Promise<AuthorityStatus> {
    const { authority } = await this.#client.asked(this.#client.rpcs.getAuthority({}))
    if (authority) return plain(AuthoritySchema, authority)
    throw new Error('the answer of the server has no authority')
  }

  async ledger(start: number, length: number): Promise<LedgerPage> {
    return plain(ListHoldersResponseSchema, await this.#client.asked(this.#client.rpcs.listHolders({ start, length })))
  }

  async rotate(force: boolean): Promise<RotateAnswer> {
    const answer = await this.#client.asked(this.#client.rpcs.rotateRoot({ force }))
    const { refused, status } = answer
    if (refused === undefined) return plain(RotateRootResponseSchema, answer)
    return { refused, status: status && plain(AuthoritySchema, status) }
  }

  async distrust(id: string, isDry: boolean): Promise<DistrustAnswer> {
    return plain(DistrustRootResponseSchema, await this.#client.asked(this.#client.rpcs.distrustRoot({ id, dryRun: isDry })))
  }

  async trust(id: string): Promise<TrustAnswer> {
    return plain(TrustRootResponseSchema, await this.#client.asked(this.#client.rpcs.trustRoot({ id })))
  }

  async acceptTime(): Promise<AcceptedTimeAnswer> {
    return plain(AcceptTimeResponseSchema, await this.#client.asked(this.#client.rpcs.acceptTime({})))
  }
}

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/

/** Returns a message as the data of the same field names, with times as the stored authority has them. */
function plain<Schema extends DescMessage, Shown>(schema: Schema, message: MessageShape<Schema>): Shown {
  const json = JSON.stringify(toJson(schema, message, { alwaysEmitImplicit: true }))
  return JSON.parse(json, (_, value) => (typeof value === 'string' && time.test(value) ? new Date(value).toISOString() : value))
}
