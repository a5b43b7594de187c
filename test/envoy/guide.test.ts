/** The tasks of docs/guide.md, block by block, from a clone. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { discoveryScript } from '../harness/commands.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { takeTour } from '../harness/tour.ts'

const { version, path: envoy } = envoyBinaries().at(-1) ?? { version: 'none', path: '' }

describe(`docs/guide.md, Envoy ${version}`, function () {
  // Two dozen commands in turn, seconds each on a busy machine.
  this.timeout(900_000)
  const folder = mkdtempSync(join(tmpdir(), 'mesh-guide-'))
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('prints what it says', () =>
    takeTour(readFileSync(new URL('../../docs/guide.md', import.meta.url), 'utf8'), { folder, script: discoveryScript, envoy }))
})
