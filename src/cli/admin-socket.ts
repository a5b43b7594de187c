/** Sends requests of commands to the server on this machine over its admin socket. */
import { statSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { dirname, resolve } from 'node:path'
import { readFeatures } from '../config/features.ts'

/** A request to a page of the server. */
export interface AdminRequest {
  readonly method: string
  readonly path: string
  /** The parameters as a form, `name=value&...`. Undefined: no body. */
  readonly form?: string | undefined
}

/** The server's response. */
export interface AdminAnswer {
  readonly status: number
  readonly body: string
}

/** Thrown when no server listens on the admin socket. */
export class NoServerError extends Error {}

/** The timeout between bytes of the response, in milliseconds. */
const timeoutMs = 60_000

/**
 * Sends a request to the admin socket that the environment names (`MESHD_ADMIN_SOCKET`). Rejects with an Error that names the socket:
 * {@link NoServerError} when no server listens on it, another one when the connection is not permitted or the response does not arrive in
 * time.
 */
export async function askServer({ method, path, form }: AdminRequest, environment = process.env): Promise<AdminAnswer> {
  const socketPath = adminSocket(environment)
  const { promise, resolve: answered, reject } = Promise.withResolvers<AdminAnswer>()
  const headers = form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded', 'content-length': Buffer.byteLength(form) }
  const request = httpRequest({ socketPath, method, path, headers, timeout: timeoutMs }, (response) => {
    const parts: Buffer[] = []
    response.on('data', (part: Buffer) => parts.push(part))
    response.on('end', () => answered({ status: response.statusCode ?? 0, body: Buffer.concat(parts).toString() }))
    response.on('error', reject)
  })
  request.on('timeout', () => request.destroy(new Error(`${resolve(socketPath)}: no answer within ${timeoutMs} ms`)))
  request.on('error', (error) => reject(explained(socketPath, error)))
  request.end(form)
  return promise
}

/** Returns the path of the admin socket that the environment names. Throws when its directory belongs to another user than root or this one. */
export function adminSocket(environment: NodeJS.ProcessEnv): string {
  const socketPath = readFeatures(environment).features.MESHD_ADMIN_SOCKET
  checkOwner(socketPath)
  return socketPath
}

/**
 * Throws when the directory of the socket belongs to another user than root or this one, because then another process may be listening on
 * the socket.
 */
function checkOwner(socketPath: string): void {
  const own = process.getuid?.()
  const owner = statSync(dirname(socketPath), { throwIfNoEntry: false })?.uid
  if (own === undefined || own === 0 || owner === undefined || owner === own || owner === 0) return
  throw new Error(`${resolve(socketPath)}: its directory belongs to user ${owner}; only that user or root asks this server`)
}

/** Returns the error to report for one of the connection to the socket: {@link NoServerError} when no server listens on it. */
export function explained(socketPath: string, error: NodeJS.ErrnoException): Error {
  const where = resolve(socketPath)
  if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED' || error.code === 'ENOTDIR')
    return new NoServerError(
      `no server listens on the admin socket ${where}: run this where the server was started, or name its socket in MESHD_ADMIN_SOCKET`,
    )
  if (error.code === 'EACCES' || error.code === 'EPERM')
    return new Error(`${where}: only the user of the server, or root, may ask it (${error.code})`)
  return new Error(`${where}: ${error.message}`)
}
