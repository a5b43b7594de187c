import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const root = fileURLToPath(new URL('../..', import.meta.url))
const rows = [...readFileSync(join(root, 'docs/decisions.md'), 'utf8').matchAll(/^\| ([^|]+) \| (`[^|]+`) \| ([\d,]+) \| ([^|]+) \| ([^|]+) \|$/gm)]

function linesOf(path: string): number {
  const whole = join(root, path)
  if (statSync(whole).isDirectory())
    return readdirSync(whole)
      .filter((name) => name.endsWith('.ts'))
      .reduce((sum, name) => sum + linesOf(join(path, name)), 0)
  return readFileSync(whole, 'utf8').split('\n').length - 1
}

describe('what stands in for a library (docs/decisions.md)', () => {
  it('is listed with a measurement', () => {
    expect(rows.map(([, what]) => what)).to.have.length(9)
    for (const [, what, , , , reason] of rows) if (reason !== 'below') expect(reason, what).to.contain('_Measured:_')
  })

  for (const [, what, places = '', lines = ''] of rows)
    it(`has about as many lines as the list says: ${what}`, () => {
      const counted = [...places.matchAll(/`([^`]+)`/g)].reduce((sum, [, path]) => sum + linesOf(path as string), 0)
      const said = Number(lines.replaceAll(',', ''))
      expect(said, `${counted} lines at present`).to.be.within(counted * 0.85, counted * 1.15)
    })
})
