/** Reads files of the kernel, which bounds their size and answers at once; all other files are read by `bounded-file.ts`. */
// biome-ignore lint/style/noRestrictedImports: the one place that reads them
import { readFileSync } from 'node:fs'

/** Reads a file below `/proc` or `/sys`. Throws the system's error. */
export function readKernelFile(path: string): string {
  return readFileSync(path, 'utf8')
}
