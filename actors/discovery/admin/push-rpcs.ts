/** The methods of `mesh.admin.v1.AdminService` about pushes. */
import type { HandlerContext } from '@connectrpc/connect'
import { adminStreamLife, streamIsOver } from '../../../protocols/messages/admin-call.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { Call } from '../../rpc/call.ts'
import { callOf, errorOf } from '../../rpc/connect-handlers.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { pause } from '../../runtime/timers.ts'
import { pushesMessage } from './admin-messages.ts'
import type { Sees } from './mesh-answers.ts'
import type { PageSources } from './page-sources.ts'
import { pushesOf } from './push-answers.ts'

/** How long a watcher waits for a change in one question, in milliseconds. */
const waitMs = 3000

/** Where the next message of a stream begins, of which a writer asks for one message after the other. */
export interface StreamPlace {
  cursor: string
  hasNews: boolean
}

/** Dependencies of the methods. */
export interface PushRpcParts {
  readonly sources: PageSources
  readonly domain: string
  /** The namespaces that a caller may see of those that a request names. Throws an error that refuses the request. */
  readonly seesOf: (context: HandlerContext, namespace: string) => Sees
  /** The place of a stream of which only one message is asked for; undefined: all of them. */
  readonly placeOf: (call: Call) => StreamPlace | undefined
}

interface AskedPushes {
  readonly namespace: string
  readonly after: string
  readonly thisReplica: boolean
}

/** Returns the implementation of the methods. */
export function pushRpcs({ sources: all, domain, seesOf, placeOf }: PushRpcParts) {
  const asked = async (sources: PageSources, sees: Sees, after: string, ms: number) => {
    const answer = await pushesOf(sources, sees, after, ms)
    return { answer, message: pushesMessage(answer, domain) }
  }
  const from = ({ thisReplica }: AskedPushes) => (thisReplica ? all.own : all)
  return {
    async listPushes(request: AskedPushes & { readonly waitMs: number }, context: HandlerContext) {
      return (await asked(from(request), seesOf(context, request.namespace), request.after, request.waitMs)).message
    },
    async *watchPushes(request: AskedPushes, context: HandlerContext) {
      const sees = seesOf(context, request.namespace)
      const sources = from(request)
      const call = callOf(context)
      const place = placeOf(call)
      if (place) {
        const { answer, message } = await asked(sources, sees, place.cursor || request.after, place.cursor === '' ? 0 : waitMs)
        place.cursor = answer.cursor
        place.hasNews = answer.pushes.length > 0 || answer.dropped > 0
        yield message
        return
      }
      const ends = monotonicMs() + adminStreamLife.ms
      let isFirst = true
      for (let after = request.after; !call.signal.aborted; isFirst = false) {
        if (monotonicMs() > ends) throw errorOf({ code: status.unavailable, message: streamIsOver })
        const { answer, message } = await asked(sources, sees, after, isFirst ? 0 : waitMs)
        if (answer.pushes.length > 0 || answer.dropped > 0 || isFirst) yield message
        after = answer.cursor
        await pause(adminStreamLife.pauseMs)
      }
    },
  }
}
