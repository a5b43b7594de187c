/** The admin socket of the server on this machine. */
import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { readFeatures } from '../config/features.ts'

/** Thrown when no server listens on the admin socket. */
export class NoServerError extends Error {}

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
  const owner = ownerOf(socketPath)
  if (own === undefined || own === 0 || owner === undefined || owner === own || owner === 0) return
  throw new Error(`${resolve(socketPath)}: its directory belongs to user ${owner}; only that user or root asks this server`)
}

/** Returns the user that the directory of the socket belongs to; undefined: there is none. Throws an Error where this user may not look. */
function ownerOf(socketPath: string): number | undefined {
  try {
    return statSync(dirname(socketPath), { throwIfNoEntry: false })?.uid
  } catch (error) {
    throw explained(socketPath, error as NodeJS.ErrnoException)
  }
}

/** Returns the error to report for one of the connection to the socket: {@link NoServerError} when no server listens on it. */
export function explained(socketPath: string, error: NodeJS.ErrnoException): Error {
  const where = resolve(socketPath)
  if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED' || error.code === 'ENOTDIR')
    return new NoServerError(
      `no server listens on the admin socket ${where}: run this where the server was started, or name its socket in MESHD_ADMIN_SOCKET`,
    )
  if (error.code === 'EACCES' || error.code === 'EPERM')
    return new Error(
      `admin socket ${where}: only the user of the server, or root, may ask it (${error.code}): run this as that user, or ask at an --address with a token`,
    )
  if (error.code === 'ECONNRESET') return new Error(`admin socket ${where}: the connection was lost: the server has ended`)
  return new Error(`${where}: ${error.message}`)
}
