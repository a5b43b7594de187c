/** Sends requests of commands to the server on this machine over its admin socket. */
import { adminSocket, explained } from '../../src/cli/admin-socket.ts'
import type { LocalAnswer } from './local-call.ts'
import { ask, mostBytes } from './single-request.ts'

/** A request to a page of the server. */
export interface AdminRequest {
  readonly method: string
  readonly path: string
  /** The parameters as a form, `name=value&...`. Undefined: no body. */
  readonly form?: string | undefined
}

/** The longest standstill of a response, in milliseconds. */
const timeout = 60_000

/**
 * Sends a request to the admin socket that the environment names (`MESHD_ADMIN_SOCKET`). Rejects with an Error that names the socket:
 * `NoServerError` when no server listens on it, another one when the connection is not permitted or the response stands still.
 */
export async function askServer({ method, path, form }: AdminRequest, environment = process.env): Promise<LocalAnswer> {
  const socketPath = adminSocket(environment)
  const headers = form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }
  const request = { socketPath, method, path, headers, body: form, timeout }
  const { status, body } = await ask(request, { ms: Number.POSITIVE_INFINITY, bytes: mostBytes }).catch((error: Error) => {
    throw explained(socketPath, error)
  })
  return { status, body }
}
