// Preloaded into a process: a thread of the name in BLOCK_THREAD stands still when the file in BLOCK_FILE appears, for as many
// milliseconds as it says, or dies when it says 0.
const { readFileSync, rmSync } = require('node:fs')
const { workerData } = require('node:worker_threads')

const { BLOCK_THREAD: name, BLOCK_FILE: file } = process.env
if (name && file && workerData?.name === name) {
  const look = () => {
    let ms = -1
    try {
      ms = Number(readFileSync(file, 'utf8'))
      rmSync(file)
    } catch {
      // Not yet.
    }
    // Of a worker thread this ends the thread alone, at once.
    if (ms === 0) process.exit(1)
    // As work on what came does: after it the loop runs its timers first, before it reads again.
    if (ms > 0) setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms))
  }
  setInterval(look, 50).unref()
}
