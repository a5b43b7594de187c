/** A request where nobody reads it: the connection that it comes by. */
import type { SentRequest } from '../../../protocols/messages/described-request.ts'

/** Returns what is left of a request for a listener, and for policies, that do not read it. */
export const connectionOf = (request: SentRequest): SentRequest => ({ ...request, protocol: 'tcp', method: 'GET', host: '', path: '/', headers: {} })
