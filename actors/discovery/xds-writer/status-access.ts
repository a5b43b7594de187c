/** Who may ask the services beside ADS: client status, reflection, and debug pages on the secured port (docs/operation.md, "Debug pages"). */
import { changeHeader, type PageQuestion, type PageReply } from '../../../protocols/messages/pages.ts'
import { type MeshIdentityNames, mayRead } from '../../../src/identity/access.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { PageCall, PageRefusal } from '../../grpc/pages.ts'
import type { CallStatus } from '../../grpc/unary.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { type Admission, type Asker, isRefused } from './admission.ts'

/** Whether what belongs to a namespace may be told, at present: a credential expires. */
export type MayTell = (namespace: string) => boolean

/** A stream or call, and where it comes from. */
export interface StatusAsker extends Asker {
  /** Address of the client, for messages. */
  readonly peer: string
  /** Whether both ends of its connection have loopback addresses. */
  readonly isLocal: boolean
}

/** What the decision needs. */
export interface StatusAccessParts {
  readonly admission: Admission
  /** Whether whoever is on this machine may ask in plain text (`ENABLE_DEBUG_ON_LOOPBACK`). */
  readonly onLoopback: boolean
  /** The names of the mesh; undefined until they are known. */
  readonly names: () => MeshIdentityNames | undefined
  /** Logs a refusal; of a kind of them a few lines. */
  warn(kind: string, line: string): void
}

/** Decides who may ask. */
export class StatusAccess {
  readonly #parts: StatusAccessParts

  constructor(parts: StatusAccessParts) {
    this.#parts = parts
  }

  /**
   * On the secured port, callers with a certificate or token may be told what is of their namespace, those of the root namespace everything.
   * In plain text there are no callers: everything for this machine where that is allowed, nothing for others.
   */
  async of(asker: StatusAsker): Promise<MayTell | CallStatus> {
    if (!asker.isSecure)
      return this.#parts.onLoopback && asker.isLocal
        ? () => true
        : this.#refuse(asker, 'in plain text, where only this machine is told, if ENABLE_DEBUG_ON_LOOPBACK says so')
    const caller = await this.#parts.admission.admit(asker, 'pages')
    if (isRefused(caller)) return this.#refuse(asker, caller.reason, caller)
    return (namespace) => {
      const names = this.#parts.names()
      return names !== undefined && wallClockMs() < caller.expiresAt && mayRead(caller, namespace, names)
    }
  }

  /** How a page of the secured port is made for a caller, or with which status the request is refused. `ask` asks the main thread for the page. */
  async page(call: PageCall, ask: (question: PageQuestion) => Promise<PageReply>): Promise<PageRefusal | (() => Promise<PageReply>)> {
    const caller = await this.#parts.admission.admit(call, 'pages')
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
