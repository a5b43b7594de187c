/** Templates of users and odd ones, and random ones: our output is, byte for byte, that of Go's text/template with sprig. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import fc from 'fast-check'
import { runs, seed } from '../harness/seed.ts'
import { askGo, difference, renderOurs, type TemplateCase } from './ask-go.ts'
import { formatCase, templateCase } from './expressions.ts'

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')

interface Group {
  readonly data: unknown
  readonly floats?: boolean
  readonly templates: readonly string[]
}

const differences = (cases: readonly TemplateCase[]): string[] => {
  const answers = askGo(cases)
  return cases.map((each, at) => difference(each, answers[at] as (typeof answers)[0])).filter((text) => text !== undefined)
}

describe('a template makes what Go makes of it', () => {
  for (const name of readdirSync(new URL('cases', import.meta.url)))
    it(`in ${name}`, () => {
      const groups = JSON.parse(read(`cases/${name}`)) as Group[]
      const cases = groups.flatMap(({ data, floats, templates }) => templates.map((template) => ({ template, data, floats })))
      // Numbers of the data are integers in one half of the world, and floats in the other.
      expect(differences([...cases, ...cases.map((each) => ({ ...each, floats: true }))])).to.deep.equal([])
    })

  for (const name of readdirSync(new URL('templates', import.meta.url)).filter((each) => each.endsWith('.tmpl')))
    it(`in ${name}, with each data`, () => {
      const all = JSON.parse(read(`templates/${name.replace('.tmpl', '.json')}`)) as unknown[]
      const cases = all.map((data) => ({ template: read(`templates/${name}`), data }))
      for (const each of cases) expect(renderOurs(each).error).to.equal(undefined)
      expect(differences(cases)).to.deep.equal([])
    })

  it('when it calls functions at random', () => {
    expect(differences(fc.sample(templateCase, { numRuns: runs(10_000), seed }))).to.deep.equal([])
  })

  it('when it formats values at random', () => {
    expect(differences(fc.sample(formatCase, { numRuns: runs(5000), seed }))).to.deep.equal([])
  })
})

describe('functions of time and chance', () => {
  const forms: Readonly<Record<string, RegExp>> = {
    '{{uuidv4}}': /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
    '{{randAlphaNum 20}}': /^[A-Za-z\d]{20}$/,
    '{{randAlpha 5}}|{{randNumeric 5}}': /^[A-Za-z]{5}\|\d{5}$/,
    '{{randAscii 8 | len}}': /^8$/,
    '{{randBytes 6}}': /^[A-Za-z\d+/]{8}$/,
    '{{randInt 5 8}}': /^[567]$/,
    '{{shuffle "aab" | len}}': /^3$/,
    '{{now | date "2006-01-02"}} {{htmlDate now}} {{date "2006" "x"}}': /^20\d\d-\d\d-\d\d 20\d\d-\d\d-\d\d 20\d\d$/,
    '{{ago now}}|{{now.Unix}}|{{now | unixEpoch}}': /^0s\|\d{10}\|\d{10}$/,
    '{{encryptAES "k" "text"}}': /^[A-Za-z\d+/]{43}=$/,
    '{{keys .m | sortAlpha}} {{values .m | len}}': /^\[a b\] 2$/,
  }
  for (const [template, form] of Object.entries(forms))
    it(`have the form that they have in Go: ${template}`, () => {
      const data = { m: { a: 1, b: 2 } }
      const [go] = askGo([{ template, data }])
      expect(go?.output).to.match(form)
      expect(renderOurs({ template, data }).output).to.match(form)
    })
})
