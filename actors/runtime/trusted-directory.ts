/** Directories in which no other user can put something into the place of this user's sockets and files (docs/certificates.md, S1). */
import { constants } from 'node:fs'
import { mkdir, open, realpath, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/** Mode bits: write permission of group and others, of others alone, and the sticky bit, with which only owners rename and remove entries. */
const [writableForOthers, writableForAll, sticky] = [0o022, 0o002, 0o1000]

/** Settings of {@link trustedDirectory}. */
export interface DirectoryTrust {
  /** Whether directories that root owns may be open to others, as the volumes of an orchestrator are, which only named containers have. */
  readonly allowVolumes: boolean
  /** The user of this process; undefined on systems without user ids. */
  readonly user?: number | undefined
}

/**
 * Creates a directory (0700) with its parents (0755), or makes sure that no other user can replace its entries or the directory itself. It
 * must belong to this user or root; write permission of others is taken from it where this user may do so. Neither a directory above it nor
 * one above a link on the way may be writable for others without the sticky bit, and those below the working directory must belong to
 * this user or root. Rejects with an Error that names the directory, the reason and the remedy.
 */
export async function trustedDirectory(path: string, { allowVolumes, user = process.geteuid?.() }: DirectoryTrust): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 })
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  const real = await realpath(path)
  if (user === undefined) {
    if (!(await stat(path)).isDirectory()) throw new Error(`${path}: is not a directory`)
    return
  }
  await closeToOthers(path, real, user, allowVolumes)
  const working = [...above(process.cwd()), process.cwd()]
  for (const directory of new Set([...above(resolve(path)), ...above(real)])) {
    const { uid, mode } = await stat(directory)
    if (allowVolumes && uid === 0) continue
    // Whoever owns the working directory, or one above it, owns the settings and programs of this process.
    if (uid !== user && uid !== 0 && !working.includes(directory))
      throw new Error(`${path}: ${directory} belongs to user ${uid}, who could replace it; it must belong to the user of this process or to root`)
    if ((mode & writableForAll) !== 0 && (mode & sticky) === 0)
      throw new Error(`${path}: ${directory} has mode ${octal(mode)}: other users could replace what is below it (chmod o-w, or chmod +t)`)
  }
}

/** Takes write permission of others from a directory, or throws where this user may not. */
async function closeToOthers(path: string, real: string, user: number, allowVolumes: boolean): Promise<void> {
  const directory = await open(real, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOTDIR' ? new Error(`${path}: is not a directory`) : error
  })
  try {
    const { uid, mode } = await directory.stat()
    if (uid !== user && uid !== 0)
      throw new Error(`${path}: belongs to user ${uid}; the directory must belong to the user of this process or to root`)
    if ((mode & writableForOthers) === 0 || (mode & sticky) !== 0) return
    if (uid === user) await directory.chmod(mode & 0o7777 & ~writableForOthers)
    else if (!allowVolumes)
      throw new Error(
        `${path}: has mode ${octal(mode)}: other users could replace the sockets and files of this process (chmod go-w, or give it to user ${user})`,
      )
  } finally {
    await directory.close()
  }
}

/** The directories above an absolute path, up to the root. */
function above(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [...above(parent), parent]
}

const octal = (mode: number): string => (mode & 0o7777).toString(8).padStart(4, '0')
