/** The tour of README, block by block, from a clone. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { discoveryScript } from '../harness/commands.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { readmeTour, takeTour } from '../harness/tour.ts'

const { version, path: binary } = envoyBinaries().at(-1) ?? { version: 'none', path: '' }

describe(`the tour of README, Envoy ${version}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-tour-'))
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('prints what README says, from a clone', () => takeTour(readmeTour(), { folder, script: discoveryScript, envoy: binary }))
})
