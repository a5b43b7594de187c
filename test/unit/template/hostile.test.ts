import { expect } from 'chai'
import fc from 'fast-check'
import { newKey } from '../../../actors/discovery/webhooks/template-library.ts'
import { injectionFunctions } from '../../../src/inject/functions.ts'
import { templateFunction } from '../../../src/template/function.ts'
import { sprigFunctions } from '../../../src/template/sprig/sprig.ts'
import { parseTemplate } from '../../../src/template/template.ts'
import { fromJson, TemplateError } from '../../../src/template/values.ts'
import { yamlFunctions } from '../../../src/template/yaml.ts'
import { cpuMs } from '../../harness/own-time.ts'
import { runs } from '../../harness/seed.ts'

const functions = new Map([...sprigFunctions({ clock: () => 0n, random: (count) => Buffer.alloc(count, 1), newKey }), ...yamlFunctions])
const podFunctions = new Map([...functions, ...injectionFunctions])
const bounds = { slow: 1000 }
const render = (text: string, data: unknown = {}) => parseTemplate('t', text, functions).render(fromJson(data), { bounds })

const key = newKey('rsa2048').export({ type: 'pkcs1', format: 'pem' })
const long = 'x'.repeat(500_000)
const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) })
const hostile: Readonly<Record<string, readonly [template: string, data?: unknown]>> = {
  'repeats a text': ['{{repeat 1000000000 "x"}}'],
  'repeats what it repeated': ['{{$x := "xxxxxxxx"}}{{range until 60}}{{$x = repeat 8 $x}}{{end}}'],
  'counts far': ['{{until 1000000000}}'],
  'counts again and again': ['{{range until 2000}}{{$x := until 1000}}{{end}}'],
  'counts down': ['{{untilStep 0 -1000000000 -1}}'],
  'counts in a text': ['{{seq 1 1000000000}}'],
  indents: ['{{nindent 1000000 .x}}', { x: '\n'.repeat(1000) }],
  'grows a list': ['{{$l := list 1}}{{range until 40}}{{$l = concat $l $l}}{{end}}'],
  'appends again and again': ['{{$l := until 20000}}{{range until 20000}}{{$l = append $l 1}}{{end}}'],
  'nests a map in itself': ['{{$d := dict}}{{$_ := set $d "a" $d}}{{$d}}'],
  'encodes a map in itself': ['{{$d := dict}}{{$_ := set $d "a" $d}}{{toJson $d}}'],
  'writes a map in itself as YAML': ['{{$d := dict}}{{$_ := set $d "a" $d}}{{toYaml $d}}'],
  'copies a map in itself': ['{{$d := dict}}{{$_ := set $d "a" $d}}{{deepCopy $d}}'],
  'compares a map in itself': ['{{$d := dict}}{{$_ := set $d "a" $d}}{{$e := dict}}{{$_ := set $e "a" $e}}{{deepEqual $d $e}}'],
  'merges a map in itself': ['{{$d := dict}}{{$_ := set $d "a" $d}}{{$e := dict}}{{$_ := set $e "a" $e}}{{merge $d $e}}'],
  'doubles a list in a list': ['{{$l := list 1}}{{range until 60}}{{$l = list $l $l}}{{end}}{{$l}}'],
  'doubles a list in a list for JSON': ['{{$l := list 1}}{{range until 60}}{{$l = list $l $l}}{{end}}{{toJson $l}}'],
  'doubles a list in a list for JSON with indentation': ['{{$l := list 1}}{{range until 60}}{{$l = list $l $l}}{{end}}{{toPrettyJson $l}}'],
  'doubles a map for YAML': ['{{$l := list 1}}{{range until 60}}{{$l = list $l $l}}{{end}}{{toYaml $l}}'],
  'joins what is long': ['{{range until 100}}{{join $.x (list 1 2 3 4 5)}}{{end}}', { x: long }],
  'replaces nothing by much': ['{{replace "" .x .x}}', { x: 'x'.repeat(10_000) }],
  'replaces matches by much': ['{{regexReplaceAll "" .x .x}}', { x: 'x'.repeat(10_000) }],
  'matches a costly expression': ['{{range until 1000}}{{regexMatch "(a*)*(b|a)*$" $.x}}{{end}}', { x: `${'a'.repeat(50_000)}c` }],
  'has a large expression': ['{{mustRegexMatch "((a{100}){100}){10}" "x"}}'],
  'has an expression that is long': ['{{regexMatch .x "x"}}', { x: 'a'.repeat(5000) }],
  'splits what is long': ['{{range until 100}}{{$x := splitList "" $.x}}{{end}}', { x: long }],
  'wraps with long line ends': ['{{wrapWith 1 .x .x}}', { x: 'x'.repeat(10_000) }],
  'decodes deep JSON': ['{{fromJson .x}}', { x: '['.repeat(100_000) }],
  'has a number that ends in a letter': [`{{${'1'.repeat(1_000_000)}a}}`],
  'decodes a text of JSON that does not end': ['{{mustFromJson .x}}', { x: `"${'\\"'.repeat(500_000)}` }],
  'searches what is left behind each match': ['{{regexFindAll ".*b|a" .x -1}}', { x: 'a'.repeat(200_000) }],
  'cuts a list again and again': ['{{range until 100000}}{{$x := slice $.x 1}}{{end}}', { x: Array.from({ length: 30_000 }, (_, at) => at) }],
  'formats numbers with a thousand digits': ['{{range until 900000}}{{$x := printf "%.0f" 5e-324}}{{end}}'],
  'counts bytes that are not UTF-8': ['{{$x := b64dec .x}}{{range until 800000}}{{$y := len $x}}{{end}}', { x: '////'.repeat(25_000) }],
  'makes random text': ['{{randAlphaNum 100000000}}'],
  'multiplies large numbers': [`{{mulf ${'1.7976931348623157e308 '.repeat(2000)}}}`],
  'adds what is far apart': ['{{addf 1e308 1e-308 | printf "%.1000000f" | repeat 100}}'],
  'reads deep data': ['{{.a}}', nested(300)],
  'writes deep data as YAML': ['{{toYaml .a}}', nested(150)],
  'asks for zones again and again': ['{{range until 900000}}{{dateInZone "15:04" 0 "Europe/Paris"}}{{end}}'],
  'calls what has no end': ['{{define "a"}}{{template "b" .}}{{end}}{{define "b"}}{{template "a" .}}{{end}}{{template "a" .}}'],
  'makes a large key': ['{{genPrivateKey "rsa"}}'],
  'makes keys again and again': ['{{range until 900000}}{{$x := genPrivateKey "ed25519"}}{{end}}'],
  'signs again and again': [
    '{{$c := genCAWithKey "x" 1 .x}}{{range until 900000}}{{$x := genSignedCertWithKey "x" nil nil 1 $c $.x}}{{end}}',
    { x: key },
  ],
  'reads certificates again and again': [
    '{{$c := genCAWithKey "x" 1 .x}}{{range until 900000}}{{$x := buildCustomCert (b64enc $c.Cert) (b64enc $c.Key)}}{{end}}',
    { x: key },
  ],
  'reads blocks that do not end': ['{{genCAWithKey "x" 1 .x}}', { x: '-----BEGIN X-----\n'.repeat(50_000) }],
  'reads a line that is no block': ['{{genCAWithKey "x" 1 .x}}', { x: '-----BEGIN '.repeat(80_000) }],
  'hashes again and again': ['{{range until 900000}}{{$x := bcrypt "x"}}{{end}}'],
  'derives passwords again and again': ['{{range until 900000}}{{$x := derivePassword 1 "long" "x" "x" "x"}}{{end}}'],
  'reads the environment': ['{{env "HOME"}}'],
}

describe('a hostile template', () => {
  for (const [what, [template, data]] of Object.entries(hostile))
    it(`ends in an error that names template and line, after little time, when it ${what}`, () => {
      const given = what.includes('deep data') ? data : undefined
      const spent = cpuMs(() => expect(() => render(template, given ?? data)).to.throw(/^t: line 1: /))
      expect(spent).to.be.lessThan(5000)
    })

  for (const name of ['toJson', 'toJSON', 'structToJSON', 'protoToJSON', 'toYaml', 'toPrettyJson'])
    for (const doubled of ['list $x $x', 'dict "a" $x "b" $x'])
      it(`of a pod ends in an error before it has copied much, when it doubles ${doubled} for ${name}`, () => {
        const template = parseTemplate('t', `{{$x := list 1}}{{range until 60}}{{$x = ${doubled}}}{{end}}{{${name} $x}}`, podFunctions)
        expect(cpuMs(() => expect(() => template.render(null)).to.throw(/^t: line 1: .*more than \d+ /))).to.be.lessThan(2500)
      })

  it('costs no more than its bounds, whatever it is', () => {
    const piece = fc.constantFrom(
      ...[
        '{{',
        '}}',
        '{{-',
        '-}}',
        'if ',
        'range ',
        'with ',
        'end',
        'else',
        'define "a"',
        'template "a" .',
        'block "b" .',
        'break',
        'continue',
        '(',
        ')',
        '|',
      ],
      ...[
        '$x',
        ' := ',
        ' = ',
        ',',
        '.',
        '.a',
        '.a.b',
        ' ',
        '\n',
        '"s"',
        '`r`',
        "'c'",
        '1',
        '-1.5',
        '0x1',
        'nil',
        'true',
        '/*',
        '*/',
        'until 3',
        'dict "a" 1',
        'list',
        'set',
        '__proto__',
      ],
      ...['printf "%v"', 'repeat 3', 'regexMatch "a"', 'merge', 'toYaml', 'fromJson', 'index', 'and', 'or', 'eq 1', '\\', '%', '\u{1f600}'],
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 25 }), (pieces) => {
        try {
          render(pieces.join(''), { a: { b: [1] } })
        } catch (error) {
          expect(error).to.be.instanceOf(TemplateError)
          expect((error as Error).message).to.match(/^t: line \d+: /)
        }
      }),
      { numRuns: runs(10_000) },
    )
  })

  it('reaches nothing of JavaScript, and changes no prototypes', () => {
    const data = JSON.parse('{"__proto__": {"polluted": 1}, "a": {"constructor": "c", "__proto__": "p"}}')
    expect(render('{{.a.constructor}} {{.a.__proto__}} {{.__proto__.polluted}} {{.a.toString}} {{get .a "valueOf"}}|', data)).to.equal(
      'c p 1 <no value> |',
    )
    render(
      '{{$d := dict "__proto__" (dict "polluted" 1)}}{{merge (dict) $d}}{{set $d "constructor" $d.__proto__ | toJson}}{{fromJson "{\\"__proto__\\": {\\"polluted\\": 1}}"}}',
      data,
    )
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined)
  })
})

describe('a rendering', () => {
  it('leaves its data as it is', () => {
    const data = fromJson({ a: { b: 1 } })
    const template = parseTemplate('t', '{{set .a "b" 2}}{{unset .a "b"}}{{merge .a (dict "c" 1)}}', functions)
    expect(template.render(data)).to.equal(template.render(data))
    expect(data).to.deep.equal(fromJson({ a: { b: 1 } }))
  })

  it('has functions of its own, which can render with its budget', () => {
    const known = new Map([['include', templateFunction(['string', '...any'], () => '')]])
    const template = parseTemplate('outer', 'a\n{{include "{{.x}}" .y}}', known)
    const own = (text: string) =>
      new Map([
        [
          'include',
          templateFunction(['string', 'any'], (budget, source, data) => parseTemplate('inner', `${source}${text}`, known).render(data, { budget })),
        ],
      ])
    expect(template.render(fromJson({ y: { x: 5 } }), { functions: own('!') })).to.equal('a\n5!')
    expect(() => template.render(fromJson({ y: { x: 5 } }), { functions: own('\n{{fail}}') })).to.throw(
      'outer: line 2: error calling include: inner: line 2: function "fail" not defined',
    )
    expect(() => template.render(fromJson({ y: { x: 5 } }), { functions: own('{{range 100}}{{end}}'), bounds: { steps: 50 } })).to.throw(
      'more than 50 steps',
    )
    expect(() => template.render(null)).to.not.throw()
  })
})
