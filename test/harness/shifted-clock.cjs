// Preloaded into a process and its threads: the wall clock is ahead by the milliseconds in the file SHIFT_FILE, if there is one. The
// monotonic clock and the boot clock are not changed.
const { readFileSync } = require('node:fs')

const { SHIFT_FILE: file } = process.env
if (file) {
  const RealDate = Date
  let shift = 0
  let readAt = Number.NEGATIVE_INFINITY
  const shifted = () => {
    const now = performance.now()
    if (now - readAt > 20) {
      readAt = now
      try {
        shift = Number(readFileSync(file, 'utf8'))
      } catch {
        shift = 0
      }
    }
    return RealDate.now() + shift
  }
  globalThis.Date = class extends RealDate {
    constructor(...given) {
      super(...(given.length === 0 ? [shifted()] : given))
    }
    static now() {
      return shifted()
    }
  }
}
