/** Where the writers take the connections of gRPC that the main thread accepts at `--httpAddr`. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PassedListening } from '../../http/passed-connection.ts'

/** The places of all writers, in a directory that only this user may enter. */
export interface PassedPlaces {
  readonly places: readonly PassedListening[]
  /** Removes the directory. */
  remove(): Promise<void>
}

/** Makes the directory, below that for temporary files. Rejects with an Error that names the flag where it cannot be made. */
export async function passedPlaces(writers: number): Promise<PassedPlaces> {
  const directory = await mkdtemp(join(tmpdir(), 'meshd-')).catch((error: Error) => {
    throw new Error(`--grpcAddr is empty, and no directory for the sockets of gRPC at --httpAddr can be made (TMPDIR): ${error.message}`, {
      cause: error,
    })
  })
  const key = randomBytes(32).toString('hex')
  return {
    places: Array.from({ length: writers }, (_, writer) => ({ passedAt: join(directory, `${writer}.sock`), key })),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}
