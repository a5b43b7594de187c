import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { templateFunctions } from '../../../src/bootstrap/template-parameters.ts'
import { parseTemplate } from '../../../src/template/template.ts'
import { fromJson, type Value } from '../../../src/template/values.ts'
import { cpuMs } from '../../harness/own-time.ts'

const renderTemplate = (template: string, data: Value) => parseTemplate('t', template, templateFunctions).render(data)
const read = (name: string) => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'))
const groups: { data: unknown; templates: string[] }[] = read('cases.json')
const cases = groups.flatMap(({ data, templates }) => templates.map((template) => ({ template, data })))
const results: { output: string; error?: string }[] = read('results.json')

describe('a Go template', () => {
  for (const [index, { template, data }] of cases.entries()) {
    const { output, error } = results[index] as (typeof results)[0]
    it(`${error ? 'is rejected as Go rejects it' : 'renders as Go renders it'}: ${JSON.stringify(template)}`, () => {
      if (error) expect(() => renderTemplate(template, fromJson(data)), error).to.throw(/line \d+: /)
      else expect(renderTemplate(template, fromJson(data))).to.equal(output)
    })
  }
})

describe('execution of a Go template', () => {
  const render = (template: string, data: unknown = {}) => renderTemplate(template, fromJson(data))

  it('is limited in steps, call depth, nesting and output size', () => {
    expect(() => render('{{range 1000000000}}{{end}}')).to.throw('more than 1000000 steps')
    expect(() => render('{{define "a"}}{{template "a"}}{{end}}{{template "a"}}')).to.throw('deeper than 100 levels')
    expect(() => render(`{{range 90000}}${'x'.repeat(100)}{{end}}`)).to.throw('output is larger than')
    expect(() => render('{{$x := "12345678"}}{{range 900000}}{{$x = printf "%s%s" $x $x}}{{end}}')).to.throw('texts are longer than')
    expect(render('{{printf "%9999999d" 1}}')).to.equal('%!(NOVERB)%!(EXTRA int=1)')
    expect(() => render('{{printf "%*d" 999999999 1}}')).to.not.throw()
    expect(() => render('('.repeat(100_000))).to.not.throw()
    expect(() => render(`{{${'('.repeat(100_000)}1${')'.repeat(100_000)}}}`)).to.throw('nested deeper than 200 levels')
    expect(() => render('{{if true}}'.repeat(1000) + '{{end}}'.repeat(1000))).to.throw('nested deeper than 200 levels')
  })

  const megabyte = 'x'.repeat(1_000_000)
  const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)])
  const costly: Readonly<Record<string, readonly [template: string, data: unknown, error: RegExp]>> = {
    'looks into a text again and again': [
      `{{$x := .x}}${'{{index $x 1}}'.repeat(990)}`,
      { x: megabyte },
      /^t: line 1: .*read and write more than 20000000/,
    ],
    'escapes a text again and again': [
      `{{range 990}}{{js $.x}}{{end}}`,
      { x: '\u00e9'.repeat(300_000) },
      /^t: line 1: .*(read and write|output is larger) /,
    ],
    'compares texts again and again': [`{{range 100000}}{{eq $.x $.x}}{{end}}`, { x: megabyte }, /^t: line 1: .*read and write more/],
    'sorts keys again and again': [
      '{{range 900000}}{{range $.m}}{{break}}{{end}}{{end}}',
      { m: Object.fromEntries(Array.from({ length: 10_000 }, (_, key) => [`k${key}`, 1])) },
      /^t: line 1: .*read and write more/,
    ],
    'has a hundred thousand variables': [`${'{{$a := 1}}'.repeat(90_000)}{{range 100000}}{{$}}{{end}}`, {}, /^t: line 1: .*read and write more/],
    'has many wide fields': [
      `\n{{printf "${'%1000000d'.repeat(1000)}"${' 1'.repeat(1000)}}}`,
      {},
      /^t: line 2: error calling printf: the text is longer/,
    ],
    'has a wide field for each element': [
      '{{printf "%1000000v" .l}}',
      { l: Array.from({ length: 5000 }, () => 1) },
      /^t: line 1: .*the text is longer/,
    ],
    'has wide precisions': [`{{printf "${'%.1000000f'.repeat(1000)}"${' 1.5'.repeat(1000)}}}`, {}, /^t: line 1: .*the text is longer/],
    'prints what is nested deep': ['{{printf "%d" .deep}}', { deep: nested(300) }, /^t: line 1: .*nested too deep/],
    'prints what is nested deep, as an action does': ['\n{{.deep}}', { deep: nested(300) }, /^t: line 2: .*nested too deep/],
    'nests templates with conditions': [
      `{{define "a"}}${'{{if 1}}'.repeat(90)}{{template "a"}}${'{{end}}'.repeat(90)}{{end}}{{template "a"}}`,
      {},
      /^t: line 1: .*deeper than 500 levels/,
    ],
  }
  for (const [what, [template, data, error]] of Object.entries(costly))
    it(`ends in an error that names the line when a template ${what}, after little time`, () => {
      const spent = cpuMs(() => expect(() => render(template, data)).to.throw(error))
      expect(spent).to.be.lessThan(5000)
    })

  it('takes time linear in the size of the template', () => {
    expect(render(`${' '.repeat(500_000)}x${' '.repeat(500_000)}{{- ""}}`)).to.have.length(500_001)
    expect(() => render('{{'.repeat(300_000))).to.throw('line 1')
    expect(render('{{1}}'.repeat(100_000))).to.have.length(100_000)
  })

  it('cannot reach properties that JavaScript objects inherit', () => {
    expect(render('{{.constructor}} {{.__proto__}} {{index . "toString"}}')).to.equal('<no value> <no value> <no value>')
    expect(() => render('{{constructor}}')).to.throw('function "constructor" not defined')
    expect(() => render('{{.a.length}}', { a: 'text' })).to.throw("can't evaluate field length in type string")
  })
})
