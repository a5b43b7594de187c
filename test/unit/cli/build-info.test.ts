/** What `version` says of a clone. */
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { buildInfo } from '../../../src/cli/build-info.ts'

describe('the build information of a clone', () => {
  it('has the commit that it is at', function () {
    const root = fileURLToPath(new URL('../../..', import.meta.url))
    const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' })
    const isClone = status === 0 && statSync(join(root, '.git'), { throwIfNoEntry: false })?.isDirectory()
    if (!isClone || process.env.MESH_BUILD_REVISION) return this.skip()
    expect(buildInfo().revision).to.equal(stdout.trim())
  })
})
