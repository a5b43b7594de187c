/**
 * Access control of the services beside ADS: client status, reflection, and debug pages on the secured port (docs/operation.md, "Debug
 * pages").
 */

import type { Caller } from '../../../protocols/messages/identity.ts'
import { changeHeader, type PageQuestion, type PageReply } from '../../../protocols/messages/pages.ts'
import { type MeshIdentityNames, mayRead } from '../../../src/identity/access.ts'
import type { ConnectionEnds } from '../../../src/identity/socket-table.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { PageCall, PageRefusal } from '../../grpc/pages.ts'
import type { PeerPrograms } from '../../http/peer-programs.ts'
import type { CallStatus } from '../../rpc/call.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { type Asker, type Authentication, isRefused } from './authentication.ts'

/** Whether information about a namespace may be disclosed at this moment. The result changes when the caller's credential expires. */
export type MayRead = (namespace: string) => boolean

/** A client that needs no credential and may read everything. */
export const unconditional = 'unconditional'

/** A stream or call, and its origin. */
export interface StatusAsker extends Asker {
  /** Whether both ends of its connection have loopback addresses. */
  readonly isLocal: boolean
  readonly ends: ConnectionEnds
}

/** Dependencies and settings of {@link StatusAccess}. */
export interface StatusAccessParts {
  readonly authentication: Authentication
  /** Whether local clients may ask in plain text (`ENABLE_DEBUG_ON_LOOPBACK`). */
  readonly onLoopback: boolean
  /** Looks up the program of a local client. */
  readonly peers: Pick<PeerPrograms, 'of'>
  /** The names of the mesh; undefined until they are known. */
  readonly names: () => MeshIdentityNames | undefined
  /** Logs a refusal. The number of lines of one kind is limited. */
  warn(kind: string, line: string): void
}

/** Decides which callers may use these services, and for which namespaces. */
export class StatusAccess {
  readonly #parts: StatusAccessParts

  constructor(parts: StatusAccessParts) {
    this.#parts = parts
  }

  /**
   * On the secured port, a caller with a certificate or token may read what belongs to its namespace; callers of the root namespace may
   * read everything. In plain text there are no callers: local clients may read everything if that is allowed and they are no proxies, as
   * far as the system shows that; other clients nothing.
   */
  async of(asker: StatusAsker): Promise<MayRead | CallStatus> {
    const caller = await this.callerOf(asker)
    if (caller === unconditional) return () => true
    if ('code' in caller) return caller
    return (namespace) => {
      const names = this.#parts.names()
      return names !== undefined && wallClockMs() < caller.expiresAt && mayRead(caller, namespace, names)
    }
  }

  /** Returns the caller, {@link unconditional} for a local client in plain text, or the status with which the asker is refused. */
  async callerOf(asker: StatusAsker): Promise<Caller | typeof unconditional | CallStatus> {
    if (!asker.isSecure) return this.#ofLocal(asker)
    const caller = await this.#parts.authentication.authenticate(asker, 'pages')
    return isRefused(caller) ? this.#refuse(asker, caller.reason, caller) : caller
  }

  async #ofLocal(asker: StatusAsker): Promise<typeof unconditional | CallStatus> {
    if (!this.#parts.onLoopback || !asker.isLocal)
      return this.#refuse(asker, 'plain-text connection: only clients on this machine are admitted, and only if ENABLE_DEBUG_ON_LOOPBACK allows it')
    switch (await this.#parts.peers.of(asker.ends)) {
      case 'suspect':
        return this.#refuse(asker, 'plain-text connection: the program at the other end listens on a port of proxies')
      case 'elsewhere':
        return this.#refuse(asker, 'plain-text connection: no socket of this machine is at the other end')
      case 'busy':
        return this.#refuse(asker, 'plain-text connection: the program at the other end was not found within the bounds', {
          code: status.unavailable,
          message: 'which program asks was not found out in time',
        })
      default:
        return unconditional
    }
  }

  /**
   * Returns the function that makes a page of the secured port for a caller, or the status with which the request is refused. `ask`
   * requests the page from the main thread.
   */
  async page(call: PageCall, ask: (question: PageQuestion) => Promise<PageReply>): Promise<PageRefusal | (() => Promise<PageReply>)> {
    const caller = await this.#parts.authentication.authenticate(call, 'pages')
    if (!isRefused(caller)) return () => ask({ method: call.method, path: call.path, caller, isMarked: call.headers[changeHeader] !== undefined })
    const { code } = this.#refuse(call, caller.reason, caller)
    return code === status.unauthenticated ? { status: 401, headers: { 'www-authenticate': 'Bearer' } } : { status: 503, headers: {} }
  }

  #refuse(
    { peer }: Pick<StatusAsker, 'peer'>,
    reason: string,
    as: CallStatus = { code: status.unauthenticated, message: 'authentication failure' },
  ): CallStatus {
    this.#parts.warn(`status|${peer}`, `client status, reflection or a page refused to ${peer}: ${reason}`)
    return { code: as.code, message: as.message }
  }
}
