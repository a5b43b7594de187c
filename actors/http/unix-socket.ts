/** Unix sockets whose file permission is the credential: in a directory of their owner alone, and never in the place of a living server's. */
import { chmod, link, lstat, mkdir, rename, stat, unlink } from 'node:fs/promises'
import { connect, type Server } from 'node:net'
import { dirname } from 'node:path'
import { isGone } from '../runtime/directory-watch.ts'

/** Bytes that the system takes of the path of a socket, less the NUL at its end (`sun_path` of `unix(7)`). */
const longestPath = process.platform === 'linux' ? 107 : 103

/** Mode of the file of a socket that only its owner may connect to. */
const ownerOnly = 0o600

/**
 * Whose the directory of a socket is: `own`, which its owner alone may enter, or `mounted`, which an orchestrator may have made: it belongs to this
 * user or to root, and others may enter it.
 */
export type SocketDirectory = 'own' | 'mounted'

/**
 * Has a server listen on a unix socket that the process's own user alone may connect to; makes its directory (0700), and removes the
 * socket of a server that is gone. The socket's file goes when the server is closed. Rejects with an Error that names the path when it is
 * too long, when its directory belongs to somebody else or (`own`) others may enter it, when it is no socket, and when a living server
 * listens on it. In a `mounted` directory the process's umask is changed for a moment, which Node allows in its main thread alone.
 */
export async function listenLocally(
  server: Pick<Server, 'listen' | 'once' | 'off'>,
  path: string,
  directory: SocketDirectory = 'own',
): Promise<void> {
  await clearSocketPath(path, directory)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    // The file is made within the call. Where others may enter, it must not be there for a moment with a mode that admits them.
    const before = directory === 'mounted' ? process.umask(~ownerOnly & 0o777) : undefined
    try {
      server.listen({ path }, () => {
        server.off('error', reject)
        resolve()
      })
    } finally {
      if (before !== undefined) process.umask(before)
    }
  })
  await chmod(path, ownerOnly)
}

/** Makes a path ready to be listened on. */
async function clearSocketPath(path: string, directory: SocketDirectory): Promise<void> {
  const bytes = Buffer.byteLength(path)
  if (bytes > longestPath) throw new Error(`${path}: has ${bytes} bytes, and the path of a unix socket at most ${longestPath}`)
  await makeDirectory(dirname(path), directory)
  const found = await lstat(path).catch(nothing)
  if (!found) return
  if (!found.isSocket()) throw new Error(`${path}: is there already and is not a socket; it is left alone`)
  if (await isServed(path)) throw new Error(`${path}: a living server listens on it`)
  await removeStale(path)
}

/** Makes a directory that its owner alone may enter, or checks one that is there. */
async function makeDirectory(path: string, kind: SocketDirectory): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  const found = await stat(path)
  if (!found.isDirectory()) throw new Error(`${path}: is not a directory`)
  const isTrusted = found.uid === process.getuid?.() || (kind === 'mounted' && found.uid === 0)
  if (!isTrusted)
    throw new Error(`${path}: belongs to user ${found.uid}, and a socket needs a directory of its own user${kind === 'mounted' ? ' or of root' : ''}`)
  if (kind === 'own' && (found.mode & 0o077) !== 0)
    throw new Error(`${path}: has mode ${(found.mode & 0o777).toString(8)}, and a socket needs a directory that its owner alone may enter: 700`)
}

/** Whether somebody accepts connections on a socket. */
function isServed(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(false)
      // The queue of connections of a living server is full.
      else if (error.code === 'EAGAIN') resolve(true)
      else reject(error)
    })
  })
}

/** Removes a socket that nobody serves. Another server may have taken the place since that was found: what was removed is looked at again, and put back. */
async function removeStale(path: string): Promise<void> {
  const aside = `${path}.${process.pid}`
  await rename(path, aside)
  const isAlive = await isServed(aside)
  if (isAlive) await link(aside, path)
  await unlink(aside)
  if (isAlive) throw new Error(`${path}: a living server listens on it`)
}

function nothing(error: unknown): undefined {
  if (!isGone(error)) throw error
}
