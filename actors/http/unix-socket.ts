/** Unix sockets protected by file permissions: in a directory with the right owner, and never replacing a socket that is in use. */
import { link, lstat, rename, stat, unlink } from 'node:fs/promises'
import { connect, Server } from 'node:net'
import { dirname, relative, resolve } from 'node:path'
import { isGone } from '../runtime/bounded-file.ts'
import { every, type Timer } from '../runtime/timers.ts'
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

/** The interval at which a socket is looked for at its path, in milliseconds. */
const checkMs = 2000

/** Where a unix socket is, and who hears of it. */
export interface SocketPlace {
  readonly path: string
  readonly directory: SocketDirectory
  /**
   * The directories that a source reads at present. One of them that is not there is not made for a socket in it: an empty one would mean
   * that everything in it was removed.
   */
  read?(): readonly string[]
  /** Called with a line for the log: once when the server listens again, and once for each reason why it cannot. */
  warn(line: string): void
}

/**
 * A unix socket to which only the process's own user may connect, and which stays while its server runs: when the file at the path is
 * removed or replaced, with or without its directory, the server listens again within two seconds; a directory of configuration that is gone
 * is waited for ({@link SocketPlace.read}). Open connections are not affected.
 */
export class LocalSocket {
  readonly #server: Server
  readonly #place: SocketPlace
  /** The file that the server listens on. Undefined when there is none. */
  #file: SocketFile | undefined
  /** The last reason why the server could not listen again. */
  #fault: string | undefined
  #timer: Timer | undefined
  #isChecking = false
  #isClosed = false

  constructor(server: Server, place: SocketPlace) {
    this.#server = server
    this.#place = place
  }

  /**
   * Makes the server listen. Creates the directory (0700), and removes the stale socket of a server that is gone. The socket is removed when
   * the server is closed. Rejects with an Error that names the path when the path is too long, another user could replace it or (`isOwn`)
   * enter its directory, it exists and is not a socket, or another server listens on it. The umask of the process is changed briefly, which
   * Node allows only in the main thread.
   */
  async open(): Promise<void> {
    await this.#clear()
    await this.#listen()
    this.#server.on('error', (error) => this.#place.warn(`${this.#place.path}: ${error.message}`))
    if (!this.#isClosed) this.#timer = every(checkMs, () => void this.#check()).unref()
  }

  /** Ends the checks of the path; to be called before the server is closed. */
  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  async #listen(): Promise<void> {
    const { path } = this.#place
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      // `listen` creates the socket file at once, so it has this mode from the start: changing it later would follow a link.
      const before = process.umask(~ownerOnly & 0o777)
      try {
        this.#server.listen({ path }, () => {
          this.#server.off('error', reject)
          resolve()
        })
      } finally {
        process.umask(before)
      }
    })
    this.#file = await fileAt(path)
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return
    this.#isChecking = true
    await this.#restore().catch((error: Error) => this.#failed(error.message))
    this.#isChecking = false
  }

  /** Listens again if the file at the path is not the one that the server listens on. */
  async #restore(): Promise<void> {
    const { path, warn } = this.#place
    const found = await fileAt(path)
    if (found && this.#file && found.dev === this.#file.dev && found.ino === this.#file.ino) return
    await this.#clear()
    if (this.#isClosed) return
    // Closing as a server of HTTP would close the open connections, too.
    Server.prototype.close.call(this.#server)
    this.#file = undefined
    await this.#listen()
    this.#fault = undefined
    warn(`${path}: the socket was removed or replaced; the server listens on it again`)
  }

  /** Prepares the path for listening. */
  async #clear(): Promise<void> {
    const { path, directory, read } = this.#place
    for (const of of read?.() ?? [])
      if (isWithin(of, path) && !(await fileAt(of)))
        throw new Error(`${path}: ${of} is gone, and is not made for the socket, since its configuration would count as removed`)
    await clearSocketPath(path, directory)
  }

  #failed(reason: string): void {
    if (this.#isClosed || this.#fault === reason) return
    this.#fault = reason
    this.#place.warn(`the socket was removed or replaced, and the server cannot listen on it again, which is retried: ${reason}`)
  }
}

/** Whether a path is below a directory. */
function isWithin(directory: string, path: string): boolean {
  const [first] = relative(resolve(directory), resolve(path)).split('/')
  return first !== '' && first !== '..'
}

/** What distinguishes a file from others at the same path. */
interface SocketFile {
  readonly dev: bigint
  readonly ino: bigint
}

/** The file at a path. Undefined when there is none. */
const fileAt = (path: string): Promise<SocketFile | undefined> => lstat(path, { bigint: true }).catch(nothing)

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
