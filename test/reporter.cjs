// Mocha's spec reporter, with the time of each file and a closing line, which machines read.
const { relative } = require('node:path')
const { reporters, Runner } = require('mocha')

module.exports = class Closing extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    const { EVENT_RUN_END, EVENT_SUITE_BEGIN, EVENT_SUITE_END } = Runner.constants
    const starts = new Map()
    const times = new Map()
    runner.on(EVENT_SUITE_BEGIN, (suite) => starts.set(suite, performance.now()))
    runner.on(EVENT_SUITE_END, (suite) => {
      // A suite of the top level: its file, hooks included.
      if (suite.parent?.root !== true || suite.file === undefined) return
      times.set(suite.file, (times.get(suite.file) ?? 0) + performance.now() - starts.get(suite))
    })
    runner.once(EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats
      for (const [file, ms] of times) console.log(`${(ms / 1000).toFixed(1)} s of ${relative(process.cwd(), file)}`)
      console.log(`${passes} passed, ${failures} failed${pending > 0 ? `, ${pending} skipped` : ''}`)
    })
  }
}
