/** Finds executable programs. */
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * Returns the path of a program: `name` itself when it contains a slash, otherwise the first match in the folders of `PATH`. Throws an
 * Error that names the program when it is missing or not executable.
 */
export function findProgram(name: string, path = process.env.PATH ?? ''): string {
  const candidates = name.includes('/') ? [name] : path.split(delimiter).map((folder) => join(folder, name))
  const reasons = candidates.map((candidate) => ({ candidate, reason: faultOf(candidate) }))
  const found = reasons.find(({ reason }) => reason === undefined)
  if (found) return found.candidate
  const only = reasons.length === 1 ? reasons[0]?.reason : undefined
  throw new Error(`the program ${JSON.stringify(name)} cannot be run: ${only ?? 'it is in no folder of PATH'}`)
}

function faultOf(path: string): string | undefined {
  try {
    if (!statSync(path).isFile()) return 'it is no file'
    accessSync(path, constants.X_OK)
    return undefined
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such file'
    return code === 'EACCES' ? 'this user may not run it' : message
  }
}
