/** Reads configuration for commands that need no server: files, directories, and standard input. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileText } from '../../../src/config/file-text.ts'
import { fileLimits, tooLarge } from '../../../src/config/parse.ts'
import { reasonOf } from '../../../src/model/faults.ts'
import { FileTimeouts } from '../../runtime/file-timeouts.ts'
import { inputBytes, withObjects } from '../commands/standard-input.ts'
import { isConfigFile } from '../sources/files/directory-listing.ts'
import { readFile } from '../sources/files/file-content.ts'

/** A file: its text, or why it was not read. `isIgnored`: its name is not one of configuration. */
export type GivenFile = { readonly file: string } & ({ readonly text: string } | { readonly fault: string } | { readonly isIgnored: true })

/** The name of standard input in findings. */
export const standardInput = '(standard input)'

/**
 * Yields the files that arguments name, in order: a file, all of a directory and those below it, standard input for `-`. Rejects with an Error
 * for an argument that is not there, and for standard input without a document: a command before it in a pipeline has failed.
 */
export async function* givenFiles(paths: readonly string[], input: Readable): AsyncGenerator<GivenFile> {
  const timeouts = new FileTimeouts()
  for (const path of paths) {
    if (path === '-') yield await ofInput(input)
    else if (await isDirectory(path)) yield* ofDirectory(path, timeouts)
    else yield await ofFile(path, timeouts)
  }
}

/** Reads the file that a flag names. Rejects with an Error that names both when it cannot be read. */
export async function settingsText(flag: string, file: string): Promise<string> {
  const { content = { fault: 'there is no such file' } } = await readFile(file, new FileTimeouts())
  if ('fault' in content) throw new Error(`--${flag}: ${file}: ${content.fault}`)
  return content.text
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory()
  } catch (error) {
    throw new Error(`${path}: ${reasonOf(error)}`)
  }
}

/** The files of a directory as a server with it as `--configDir` would read them. */
async function* ofDirectory(path: string, timeouts: FileTimeouts): AsyncGenerator<GivenFile> {
  const entries = await readdir(path, { withFileTypes: true })
  for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const at = join(path, entry.name)
    if (entry.name.startsWith('.')) continue
    if (entry.isDirectory()) yield* ofDirectory(at, timeouts)
    else if (isConfigFile(entry.name)) yield await ofFile(at, timeouts)
    else yield { file: at, isIgnored: true }
  }
}

async function ofFile(file: string, timeouts: FileTimeouts): Promise<GivenFile> {
  const { content } = await readFile(file, timeouts)
  return content === undefined ? { file, fault: 'is gone' } : 'text' in content ? { file, text: content.text } : { file, fault: content.fault }
}

async function ofInput(input: Readable): Promise<GivenFile> {
  const bytes = await inputBytes(input, fileLimits.bytes)
  return bytes ? { file: standardInput, text: withObjects(fileText(bytes)) } : { file: standardInput, fault: tooLarge }
}
