import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { DirectoryWatch } from '../../actors/runtime/directory-watch.ts'
import { FileTimeouts } from '../../actors/runtime/file-timeouts.ts'
import { until } from '../harness/until.ts'

describe('the watch of a directory', () => {
  it('continues in a directory that replaces it, at any time', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-watch-'))
    const root = join(dir, 'root')
    const reported = new Set<string>()
    mkdirSync(root)
    const watch = new DirectoryWatch(root, true, {
      changed: (path) => reported.add(path),
      everything: () => reported.add('everything'),
      unwatchable: (_, error) => {
        throw error
      },
    })
    try {
      await watch.refresh()
      for (let round = 0; round < 150; round++) {
        reported.clear()
        renameSync(root, join(dir, `old-${round}`))
        // Between no time and longer than it takes to detect that the directory is gone.
        for (let turns = round % 15; turns > 0; turns--) await turn()
        mkdirSync(root)
        await until('the change to be reported', () => reported.has('everything'))
        const file = join(root, 'a.yaml')
        // Written until it is reported: the new directory is watched soon, if not yet.
        await until(`a file of round ${round} to be reported`, () => writeFileSync(file, '') === undefined && reported.has(file))
      }
    } finally {
      watch.close()
      rmSync(dir, { recursive: true, force: true })
    }
  })

  it('does not block if the file system does not answer, and starts when it does', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-watch-'))
    const reported = new Set<string>()
    let hangs = true
    class Server extends FileTimeouts {
      override run<T>(ask: () => Promise<T>): Promise<T> {
        return super.run(() => (hangs ? new Promise<T>(() => undefined) : ask()))
      }
    }
    const watch = new DirectoryWatch(
      dir,
      true,
      {
        changed: (path) => reported.add(path),
        everything: () => reported.add('everything'),
        unwatchable: (directory, error) => reported.add(`${directory}: ${error.message}`),
      },
      new Server(20),
    )
    try {
      expect(await watch.refresh()).to.equal(false)
      expect([...reported]).to.deep.equal([`${dir}: no answer within 20 ms`])
      // The abandoned call does not prevent further ones.
      hangs = false
      await watch.audit()
      expect(reported).to.include('everything')
      writeFileSync(join(dir, 'a.yaml'), '')
      await until('the file to be reported', () => reported.has(join(dir, 'a.yaml')))
    } finally {
      watch.close()
      rmSync(dir, { recursive: true })
    }
  })
})
