/** Checks the files and the directory that flags name: explicitly given paths must exist at start, default paths may be absent. */
import { accessSync, constants, statSync } from 'node:fs'
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import { isGone } from '../../runtime/bounded-file.ts'

/** Throws an Error that names the flag and path of an explicitly given file or directory that cannot be read. */
export function checkGivenFiles(options: Pick<DiscoveryOptions, 'given' | 'configDir' | 'meshConfig' | 'networksConfig'>): void {
  for (const name of ['configDir', 'meshConfig', 'networksConfig'] as const) {
    const path = options[name]
    if (path === '' || !options.given.some((flag) => flag.startsWith(`--${name}=`))) continue
    const reason = unreadable(path, name === 'configDir' ? 'directory' : 'file')
    if (reason) throw new Error(`--${name}: ${path}: ${reason}`)
  }
}

function unreadable(path: string, kind: 'directory' | 'file'): string | undefined {
  try {
    const status = statSync(path)
    const found = status.isDirectory() ? 'directory' : status.isFile() ? 'file' : 'pipe, a socket or a device'
    if (found !== kind) return `is a ${found}, not a ${kind}`
    accessSync(path, kind === 'directory' ? constants.R_OK | constants.X_OK : constants.R_OK)
    return undefined
  } catch (error) {
    return isGone(error) ? `there is no such ${kind}` : (error as Error).message
  }
}
