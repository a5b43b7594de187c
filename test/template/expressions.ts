/** Templates at random: calls of all functions with arguments that fit, and some that do not. */
import fc from 'fast-check'
import { templateLibrary } from '../../actors/discovery/webhooks/template-library.ts'
import { builtins } from '../../src/template/builtins.ts'
import type { TemplateCase } from './ask-go.ts'

const sprig = templateLibrary()

/** Functions whose results are of chance or time, in no order, or that are not there. */
const left = new Set(
  [
    'now ago randAlphaNum randAlpha randAscii randNumeric randBytes randInt shuffle uuidv4 encryptAES decryptAES keys values env expandenv',
    'getHostByName genPrivateKey genCA genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey buildCustomCert',
    // Maps that hold themselves end Go's process.
    'set unset merge mergeOverwrite mustMerge mustMergeOverwrite',
    // What is no number is the present moment for these.
    'bcrypt htpasswd derivePassword call date dateInZone date_in_zone htmlDate htmlDateInZone',
  ].flatMap((names) => names.split(' ')),
)
const functions = [...new Map([...builtins, ...sprig])].filter(([name]) => !left.has(name))

const data = {
  name: 'web',
  n: 3,
  z: 0,
  f: 1.5,
  t: true,
  e: '',
  nil: null,
  text: 'The quick brown fox',
  uni: 'Grüße 世界',
  num: '12',
  csv: 'a,b,,c',
  list: [1, 'two', 3.25, null, [4]],
  ints: [3, 1, 2, 3],
  words: ['b', 'a', 'C'],
  empty: [],
  map: { b: 2, a: 'one', c: { d: [10, 20] } },
  labels: { app: 'web', __proto__: 'x', constructor: 'y' },
}

const byType: Readonly<Record<string, readonly string[]>> = {
  any: [
    '.name',
    '.n',
    '.z',
    '.f',
    '.t',
    '.e',
    '.nil',
    '.missing',
    '.list',
    '.ints',
    '.map',
    '.labels',
    '.empty',
    '.map.c.d',
    '1',
    '2.5',
    '"x"',
    'nil',
    '(list)',
    '(add 1 2)',
  ],
  string: ['.name', '.text', '.uni', '.num', '.csv', '.e', '"a b"', '"x"', '","', '"1.2.3"', '"a.*"', '"/a/../b"', '(index .words 0)', '"\\xff"'],
  int: ['.n', '.z', '1', '2', '0', '-1', '5', '(len .list)', '3.0'],
  bool: ['.t', 'true', 'false', '(eq 1 1)'],
  float64: ['.f', '0.5', '1'],
  map: ['.map', '.labels', '.map.c', '(dict "k" 1)', '(dict)'],
  list: ['.list', '(list 1)'],
  strings: ['(splitList "," .csv)'],
}

const operand = (type: string): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...(byType[type] ?? (byType.any as readonly string[]))) },
    { weight: 1, arbitrary: fc.constantFrom(...(byType.any as readonly string[])) },
  )

/** A call of a function with operands, some of which are calls. */
const call = (depth: number): fc.Arbitrary<string> =>
  fc.constantFrom(...functions).chain(([name, { parameters }]) => {
    const types = parameters.flatMap((parameter): string[] => (parameter.startsWith('...') ? [parameter.slice(3), parameter.slice(3)] : [parameter]))
    const args = types.map((type) =>
      depth > 0 && type === 'any'
        ? fc.oneof(
            operand(type),
            call(depth - 1).map((inner) => `(${inner})`),
          )
        : operand(type),
    )
    return fc.tuple(fc.tuple(...args), fc.nat(12)).map(([all, dice]) => {
      const given = dice === 0 ? all.slice(1) : all
      const last = given.at(-1)
      return dice % 3 === 1 && last !== undefined ? `${last} | ${[name, ...given.slice(0, -1)].join(' ')}` : [name, ...given].join(' ')
    })
  })

/** Loops over what can be long are left to tests of bounds. */
const forms: readonly ((one: string, other: string) => string)[] = [
  (one) => `{{ ${one} }}`,
  (one, other) => `{{- if ${one} }}y{{ ${other} }}{{ else }}n{{ end -}}`,
  (one) => `{{ with ${one} }}<{{ . }}>{{ else }}none{{ end }}`,
  (one) => `{{ range $i, $e := list (${one}) 2 }}{{ $i }}:{{ $e }};{{ end }}`,
  (one, other) => `{{ $x := ${one} }}{{ $y := ${other} }}{{ printf "%T %v %v" $x $x $y }}`,
  (one) => `{{ printf "%q %s %v %x %5v|%-5v|" (${one}) (${one}) (${one}) (${one}) (${one}) (${one}) }}`,
  (one) => `{{ ${one} | toJson }} {{ ${one} | typeOf }} {{ ${one} | toString | quote }}`,
  (one) => `{{ toYaml (${one}) }}`,
  (one) => `{{ define "x" }}[{{ . }}]{{ end }}{{ template "x" ${one} }}`,
]

/** A template with data. */
export const templateCase: fc.Arbitrary<TemplateCase> = fc
  .tuple(call(2), call(1), fc.constantFrom(...forms), fc.boolean())
  .map(([one, other, form, floats]) => ({ template: form(one.includes(' | ') ? one : one, other), data, floats }))

const verb = fc.tuple(
  fc.constantFrom('', '-', '+', '#', '0', ' ', '-0', '+#'),
  fc.constantFrom('', '3', '8', '*', '12'),
  fc.constantFrom('', '.', '.0', '.2', '.*', '.10'),
  fc.constantFrom('', '', '', '[1]', '[2]', '[9]', '[x]', '['),
  fc.constantFrom(...'vdsqxXfFgGeEtTbocUO%z'),
)

const printed = [
  '1',
  '-7',
  '255',
  '0',
  '1.5',
  '-0.001',
  '1e21',
  '123456789.0',
  '"text"',
  '"Grüße"',
  '"a\\x00b"',
  'true',
  'nil',
  '.list',
  '.map',
  '(add 5)',
  "'x'",
  '"%d"',
  '8364',
]

/** A template that formats values with verbs, flags, widths and precisions. */
export const formatCase: fc.Arbitrary<TemplateCase> = fc
  .tuple(fc.array(verb, { minLength: 1, maxLength: 3 }), fc.array(fc.constantFrom(...printed), { maxLength: 4 }))
  // The digits of a float in hexadecimal with `#` are of no use to anybody.
  .filter(([verbs]) => !verbs.some(([flags, , , , letter]) => flags.includes('#') && 'xX'.includes(letter)))
  .map(([verbs, args]) => ({
    template: `{{ printf ${JSON.stringify(verbs.map((parts) => `%${parts.join('')}|`).join(''))} ${args.join(' ')} }}`,
    data,
  }))
