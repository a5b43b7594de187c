/** Files that flags name: those that were given must be there at start, those of the defaults may be absent. */
import { accessSync, constants, statSync } from 'node:fs'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import { isGone } from './file-content.ts'

/** Throws an Error that names flag and path when a file that was given cannot be read. */
export function checkGivenFiles(options: Pick<DiscoveryOptions, 'given' | 'meshConfig' | 'networksConfig'>): void {
  for (const name of ['meshConfig', 'networksConfig'] as const) {
    const path = options[name]
    if (path === '' || !options.given.some((flag) => flag.startsWith(`--${name}=`))) continue
    const reason = unreadable(path)
    if (reason) throw new Error(`--${name}: ${path}: ${reason}`)
  }
}

function unreadable(path: string): string | undefined {
  try {
    if (statSync(path).isDirectory()) return 'is a directory, not a file'
    accessSync(path, constants.R_OK)
    return undefined
  } catch (error) {
    return isGone(error) ? 'there is no such file' : (error as Error).message
  }
}
