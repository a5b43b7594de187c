/**
 * A process that changes the state of a certificate authority, and may be killed at any call to the file system. Arguments: the
 * directory, the action, and the number of the modifying call after which the process is killed.
 */
import { createPrivateKey } from 'node:crypto'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const [directory = '', act = '', end = '0', state = '', key = ''] = process.argv.slice(2)
let left = Number(end)

for (const name of ['openSync', 'writeSync', 'fsyncSync', 'fchmodSync', 'closeSync', 'renameSync', 'rmSync', 'mkdirSync'] as const) {
  const real = fs[name] as (...given: unknown[]) => unknown
  Object.assign(fs, {
    [name]: (...given: unknown[]) => {
      const value = real(...given)
      if (--left === 0) process.kill(process.pid, 'SIGKILL')
      return value
    },
  })
}
syncBuiltinESMExports()

const { openFileStorage } = await import('../../../actors/discovery/authority/file-storage.ts')
const { storeKey } = await import('../../../actors/discovery/authority/key-storage.ts')
const storage = await openFileStorage(directory)
if (act === 'hold') {
  process.send?.('held')
  process.on('message', () => storage.close().then(() => process.exit(0)))
} else {
  const { version } = await storage.read()
  const next = JSON.parse(state)
  storeKey(storage.keys, next.authorities[0].id, createPrivateKey(key))
  await storage.write(next, version)
  await storage.keepKeys([next.authorities[0].id])
  await storage.close()
  process.exit(0)
}
