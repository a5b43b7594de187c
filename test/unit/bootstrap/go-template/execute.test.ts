import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { renderTemplate } from '../../../../src/bootstrap/go-template/execute.ts'
import { fromJson } from '../../../../src/bootstrap/go-template/values.ts'

const read = (name: string) => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'))
const cases: { template: string; data: unknown }[] = read('cases.json')
const results: { output: string; error?: string }[] = read('results.json')

describe('a template', () => {
  for (const [index, { template, data }] of cases.entries()) {
    const { output, error } = results[index] as (typeof results)[0]
    it(`${error ? 'is refused as by Go' : 'becomes what Go makes of it'}: ${JSON.stringify(template)}`, () => {
      if (error) expect(() => renderTemplate(template, fromJson(data)), error).to.throw(/line \d+: /)
      else expect(renderTemplate(template, fromJson(data))).to.equal(output)
    })
  }
})
