/** `pilot-agent request`: one request to the admin port of the proxy. */
import type { ProxyRequest } from '../../../protocols/messages/agent-options.ts'
import { callLocal, type LocalAnswer } from '../../http/local-call.ts'

/** Longest time for an answer, in milliseconds. */
const timeoutMs = 60_000
const adminPort = 15_000

/** Asks the proxy. Rejects with an Error that names the port when there is no answer. */
export function askProxy(request: ProxyRequest): Promise<LocalAnswer> {
  return callLocal({ ...request, port: adminPort }, timeoutMs)
}
