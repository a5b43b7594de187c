/** Requests of the commands to a running server, over its admin socket. */
import { statSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { dirname, resolve } from 'node:path'
import { readFeatures } from '../config/features.ts'

/** A request to a page of the server. */
export interface AdminRequest {
  readonly method: string
  readonly path: string
  /** The parameters as a form: `name=value&...`. */
  readonly form?: string | undefined
}

/** What the server answered. */
export interface AdminAnswer {
  readonly status: number
  readonly body: string
}

/** No server listens on the admin socket. */
export class NoServerError extends Error {}

/** Longest time without a byte of the answer, in milliseconds. */
const timeoutMs = 60_000

/**
 * Asks the server whose admin socket the environment names (`MESHD_ADMIN_SOCKET`). Rejects with an Error that names the socket: a {@link NoServerError} when no
 * server listens there, another when it may not be connected to, or there is no answer in time.
 */
export async function askServer({ method, path, form }: AdminRequest, environment = process.env): Promise<AdminAnswer> {
  const socketPath = readFeatures(environment).features.MESHD_ADMIN_SOCKET
  checkOwner(socketPath)
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

/** Throws when somebody else made the directory of the socket: whoever listens there is not the server that is meant. */
function checkOwner(socketPath: string): void {
  const own = process.getuid?.()
  const owner = statSync(dirname(socketPath), { throwIfNoEntry: false })?.uid
  if (own === undefined || own === 0 || owner === undefined || owner === own || owner === 0) return
  throw new Error(`${resolve(socketPath)}: its directory belongs to user ${owner}; only that user or root asks this server`)
}

function explained(socketPath: string, error: NodeJS.ErrnoException): Error {
  const where = resolve(socketPath)
  if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED' || error.code === 'ENOTDIR')
    return new NoServerError(
      `no server listens on the admin socket ${where}: run this where the server was started, or name its socket in MESHD_ADMIN_SOCKET`,
    )
  if (error.code === 'EACCES' || error.code === 'EPERM')
    return new Error(`${where}: only the user of the server, or root, may ask it (${error.code})`)
  return new Error(`${where}: ${error.message}`)
}
