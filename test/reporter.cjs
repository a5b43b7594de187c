// Mocha's spec reporter, with a closing line that machines read.
const { reporters, Runner } = require('mocha')

module.exports = class Closing extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats
      console.log(`${passes} passed, ${failures} failed${pending > 0 ? `, ${pending} skipped` : ''}`)
    })
  }
}
