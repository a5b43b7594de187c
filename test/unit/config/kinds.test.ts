import { readdirSync } from 'node:fs'
import { expect } from 'chai'
import type { Kind } from '../../../src/config/kinds/kind.ts'
import { kinds } from '../../../src/config/kinds.ts'

const folder = new URL('../../../src/config/kinds/', import.meta.url)

describe('kinds of configuration objects', () => {
  it('are declared in one file each, and all are in the table', async () => {
    const files = readdirSync(folder).filter((file) => file !== 'kind.ts')
    const declared = await Promise.all(
      files.map(async (file) => {
        const exported = Object.values((await import(new URL(file, folder).href)) as Record<string, Kind>)
        expect(exported, file).to.have.length(1)
        const name = exported[0]?.name ?? ''
        expect(file).to.equal(`${name.replace(/(?<!^)([A-Z])/g, '-$1').toLowerCase()}.ts`)
        return name
      }),
    )
    expect(declared.sort()).to.deep.equal([...kinds.keys()].sort())
  })
})
