import { expect } from 'chai'
import { newKey, templateLibrary } from '../../../actors/discovery/webhooks/template-library.ts'
import { SlowCall } from '../../../src/template/budget.ts'
import { parseTemplate } from '../../../src/template/template.ts'
import { fromJson } from '../../../src/template/values.ts'

const key = newKey('ed25519').export({ type: 'pkcs8', format: 'pem' }).toString()
const render = (template: string, slow?: number) =>
  parseTemplate('t', template, templateLibrary()).render(fromJson({ key }), slow === undefined ? {} : { bounds: { slow } })

/** Calls of all slow functions, with what each is counted as (docs/templates.md, T11). */
const calls: Readonly<Record<string, number>> = {
  'genPrivateKey ""': 2000,
  'genPrivateKey "rsa"': 2000,
  'genPrivateKey "dsa"': 500,
  'genPrivateKey "ecdsa"': 5,
  'genPrivateKey "ed25519"': 5,
  'genCA "x" 1': 350,
  'genCAWithKey "x" 1 .key': 50,
  'genSelfSignedCert "x" nil nil 1': 350,
  'genSelfSignedCertWithKey "x" nil nil 1 .key': 50,
  'genSignedCert "x" nil nil 1 (genCAWithKey "x" 1 .key)': 400,
  'genSignedCertWithKey "x" nil nil 1 (genCAWithKey "x" 1 .key) .key': 100,
  'derivePassword 1 "pin" "a" "b" "c"': 300,
  'bcrypt "x"': 100,
  'htpasswd "x" "y"': 100,
}

describe('slow functions of templates', () => {
  for (const [call, ms] of Object.entries(calls)) {
    it(`are called only where they may run: ${call}`, () => {
      for (const slow of [undefined, 0]) expect(() => render(`{{ ${call} }}`, slow)).to.throw(SlowCall)
      expect(render(`{{ if false }}{{ ${call} }}{{ end }}`)).to.equal('')
    })

    it(`are counted: ${call}`, () => {
      expect(() => render(`{{ ${call} }}`, ms - 1)).to.throw(/^t: line 1: .*slow functions .* take more than \d+ ms/)
      expect(render(`{{ $x := ${call} }}`, ms)).to.equal('')
    })
  }

  it('say what is wrong with their arguments at once', () => {
    expect(render('{{ genPrivateKey "x" }} {{ htpasswd "a:b" "c" }} {{ derivePassword 1 "x" "a" "b" "c" }}')).to.equal(
      'Unknown type x invalid username: a:b cannot find password template x',
    )
    expect(() => render('{{ genCAWithKey "x" 1 "no key" }}')).to.throw('t: line 1: error calling genCAWithKey: no PEM data in input')
  })

  it('keep keys out of errors', () => {
    for (const text of [
      'print "-----BEGIN RSA PRIVATE KEY-----\\n" (.key | trimPrefix "-----BEGIN PRIVATE KEY-----\\n" | replace "END PRIVATE" "END RSA PRIVATE")',
      '.key | replace "E" "e"',
    ])
      expect(() => render(`{{ genCAWithKey "x" 1 (${text}) }}`, 1000)).to.throw(
        /^t: line 1: error calling genCAWithKey: (the private key cannot be parsed|no PEM data in input)$/,
      )
  })
})

describe('times and versions of templates', () => {
  const values = { 'time.Time': 'toDate "2006" "2020"', '*semver.Version': 'semver "1.2.3-a"' }
  for (const [type, value] of Object.entries(values))
    it(`are printed as text alone: ${type}`, () => {
      const text = render(`{{ ${value} }}`)
      const quoted = JSON.stringify(text)
      const hex = Buffer.from(text).toString('hex')
      expect(render(`{{ $x := ${value} }}{{ printf "%v|%s|%+v|%q|%x|%T" $x $x $x $x $x $x }}`)).to.equal(
        [text, text, text, quoted, hex, type].join('|'),
      )
      for (const verb of ['%d', '%#v', '%t', '%f', '%U'])
        expect(() => render(`\n{{ printf "${verb}" (${value}) }}`)).to.throw(
          `t: line 2: error calling printf: ${verb} of a ${type}: it has no form but its text`,
        )
      expect(() => render(`{{ printf "%d" (list (${value})) }}`)).to.throw(`%d of a ${type}`)
    })
})
