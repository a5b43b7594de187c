/** Unix sockets protected by file permissions: in a directory with the right owner, and never replacing a socket that is in use. */
import { link, lstat, rename, stat, unlink } from 'node:fs/promises'
import { connect, type Server } from 'node:net'
import { dirname } from 'node:path'
import { isGone } from '../runtime/bounded-file.ts'
import { trustedDirectory } from '../runtime/trusted-directory.ts'

/** Maximum length of a socket path in bytes, without the terminating NUL (`sun_path` in `unix(7)`). */
const longestPath = process.platform === 'linux' ? 107 : 103

/** File mode of a socket to which only its owner may connect. */
const ownerOnly = 0o600

/** The directory of a socket. */
export interface SocketDirectory {
  /** Whether only its owner may enter it, and it belongs to the user of this process. */
  readonly isOwn: boolean
  /** Whether it may be in, or be, a volume of an orchestrator ({@link trustedDirectory}). */
  readonly allowVolumes: boolean
}

/**
 * Makes a server listen on a unix socket to which only the process's own user may connect. Creates the directory (0700), and removes the
 * stale socket of a server that is gone. The socket is removed when the server is closed. Rejects with an Error that names the path when
 * the path is too long, another user could replace it or (`isOwn`) enter its directory, it exists and is not a socket, or another server
 * listens on it. The umask of the process is changed briefly, which Node allows only in the main thread.
 */
export async function listenLocally(server: Pick<Server, 'listen' | 'once' | 'off'>, path: string, directory: SocketDirectory): Promise<void> {
  await clearSocketPath(path, directory)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    // `listen` creates the socket file at once, so it has this mode from the start: changing it later would follow a link.
    const before = process.umask(~ownerOnly & 0o777)
    try {
      server.listen({ path }, () => {
        server.off('error', reject)
        resolve()
      })
    } finally {
      process.umask(before)
    }
  })
}

/** Prepares a path for listening. */
async function clearSocketPath(path: string, directory: SocketDirectory): Promise<void> {
  const bytes = Buffer.byteLength(path)
  if (bytes > longestPath) throw new Error(`${path}: the path has ${bytes} bytes; the path of a unix socket has at most ${longestPath}`)
  await checkDirectory(dirname(path), directory)
  const found = await lstat(path).catch(nothing)
  if (!found) return
  if (!found.isSocket()) throw new Error(`${path}: exists and is not a socket; it was not changed`)
  if (await isServed(path)) throw new Error(`${path}: another server already listens on it`)
  await removeStale(path)
}

/** Creates the directory of a socket, or checks an existing one. */
async function checkDirectory(path: string, { isOwn, allowVolumes }: SocketDirectory): Promise<void> {
  await trustedDirectory(path, { allowVolumes })
  const { uid, mode } = await stat(path)
  if (!isOwn || process.geteuid === undefined) return
  if (uid !== process.geteuid())
    throw new Error(`${path}: belongs to user ${uid}; the directory of the socket must belong to the user of this process`)
  if ((mode & 0o077) !== 0)
    throw new Error(`${path}: has mode ${(mode & 0o777).toString(8)}; the directory of the socket must be accessible to its owner only (chmod 700)`)
}

/** Whether a server accepts connections on a socket. */
function isServed(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(false)
      // The server's queue of pending connections is full.
      else if (error.code === 'EAGAIN') resolve(true)
      else reject(error)
    })
  })
}

/**
 * Removes a stale socket. Another server may have replaced it since it was found stale, so the removed file is checked again and put back
 * if it is in use.
 */
async function removeStale(path: string): Promise<void> {
  const aside = `${path}.${process.pid}`
  await rename(path, aside)
  const isAlive = await isServed(aside)
  if (isAlive) await link(aside, path)
  await unlink(aside)
  if (isAlive) throw new Error(`${path}: another server already listens on it`)
}

function nothing(error: unknown): undefined {
  if (!isGone(error)) throw error
}
