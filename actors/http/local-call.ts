/** Single HTTP requests to servers on this machine. */
import { loopbackLookup } from './loopback.ts'
import { ask, mostBytes, reasonOf } from './single-request.ts'

/** A request to a port on a loopback address. */
export interface LocalRequest {
  readonly port: number
  readonly method: string
  readonly path: string
  readonly body?: string | undefined
}

/** The response. */
export interface LocalAnswer {
  readonly status: number
  readonly body: string
}

/**
 * Sends a request to a server that listens on 127.0.0.1 or ::1. Rejects with an Error that names the port when there is no answer within
 * `timeoutMs`, or the body is too long.
 */
export async function callLocal(request: LocalRequest, timeoutMs: number, maxBytes = mostBytes): Promise<LocalAnswer> {
  try {
    const { status, body } = await ask({ ...request, host: 'localhost', lookup: loopbackLookup(false) }, { ms: timeoutMs, bytes: maxBytes })
    return { status, body }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Error(`localhost:${request.port}: ${code === 'ECONNREFUSED' ? 'no process listens there' : reasonOf(error)}`)
  }
}
