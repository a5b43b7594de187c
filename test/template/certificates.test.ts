/** Keys, certificates and passwords of templates: what is determined is Go's byte for byte, and Go reads all others as it reads its own. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto'
import { compareSync } from 'bcryptjs'
import { expect } from 'chai'
import { templateLibrary } from '../../actors/discovery/webhooks/template-library.ts'
import { askGo, difference, renderOurs, type SecretCase, type TemplateCase } from './ask-go.ts'

const pem = (key: KeyObject, type: 'pkcs1' | 'pkcs8' | 'sec1') => key.export({ type, format: 'pem' }).toString()
const curve = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).privateKey
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const ed25519 = generateKeyPairSync('ed25519').privateKey
const keys: Readonly<Record<string, string>> = {
  'RSA in PKCS #1': pem(rsa, 'pkcs1'),
  'RSA in PKCS #8': pem(rsa, 'pkcs8'),
  'ECDSA on P-224': pem(curve('P-224'), 'sec1'),
  'ECDSA on P-256 in PKCS #8': pem(curve('P-256'), 'pkcs8'),
  'ECDSA on P-384': pem(curve('P-384'), 'sec1'),
  'ECDSA on P-521': pem(curve('P-521'), 'sec1'),
  Ed25519: pem(ed25519, 'pkcs8'),
}

const goOutput = (each: TemplateCase): string => {
  const [answer] = askGo([each])
  if (answer?.error !== undefined) throw new Error(answer.error)
  return answer?.output as string
}
const ourOutput = (each: TemplateCase): string => {
  const { output, error } = renderOurs(each)
  if (error !== undefined) throw new Error(error)
  return output
}

/** What Go reads of a certificate or a key. */
const goReads = (each: SecretCase): Readonly<Record<string, unknown>> => {
  const [answer] = askGo([each])
  if (answer?.read === undefined) throw new Error(answer?.error)
  return answer.read
}

/** The certificates and keys of an output, one after the other. */
const blocks = (output: string) => [...output.matchAll(/-----BEGIN .*-----\n[^-]*-----END .*-----\n/g)].map(([block]) => block)

/** The identifier of a key, whose value differs where the keys do. */
const identifier = /^(2\.5\.29\.(?:14|35) false ....)(..)*$/

/** What Go reads of a certificate, without what differs from one rendering to the next. */
function formOf(certificate: string, authority: string, isSameKey: boolean): { readonly seconds: number; readonly form: object } {
  const { serialBits, notBefore, extensions, publicKey, seconds, ...rest } = goReads({ certificate, authority })
  expect(serialBits).to.be.within(90, 128)
  expect(notBefore).to.be.within(Date.now() / 1000 - 600, Date.now() / 1000)
  const written = extensions as string[]
  const form = isSameKey
    ? { ...rest, extensions, publicKey }
    : { ...rest, extensions: written.map((each) => each.replace(identifier, '$1')), publicKey: (publicKey as string).length }
  return { seconds: seconds as number, form }
}

/** Renders with Go and with ours. Each output is the certificates and keys of an authority and of those that it signed. */
function compare(each: TemplateCase, isSameKey: boolean): void {
  const [go, ours] = [blocks(goOutput(each)), blocks(ourOutput(each))]
  expect(ours.length).to.equal(go.length).and.above(1)
  for (const [at, block] of ours.entries()) {
    const theirs = go[at] as string
    if (!block.includes('CERTIFICATE')) {
      if (isSameKey) expect(block).to.equal(theirs)
      else expect(goReads({ privateKey: block })).to.deep.equal(goReads({ privateKey: theirs }))
      continue
    }
    const [made, expected] = [formOf(block, ours[0] as string, isSameKey), formOf(theirs, go[0] as string, isSameKey)]
    expect(made.form).to.deep.equal(expected.form)
    // Beginning and end are whole seconds of two times, between which a second may begin; too many days overflow to a part of one.
    expect(made.seconds).to.be.closeTo(expected.seconds, 1)
    // OpenSSL reads them too.
    const [read, authority] = [new X509Certificate(block), new X509Certificate(ours[0] as string)]
    expect(read.verify(authority.publicKey)).to.equal(true)
    expect(read.checkIssued(authority)).to.equal(new X509Certificate(theirs).checkIssued(new X509Certificate(go[0] as string)))
    expect(read.checkPrivateKey(createPrivateKey(ours[at + 1] as string))).to.equal(true)
  }
}

const both = '{{ $c.Cert }}{{ $c.Key }}'
const names = '(list "10.0.0.1" "::1" "::ffff:1.2.3.4") (list "web" "*.web.shop")'

describe('certificates of templates are those of Go', () => {
  for (const [what, key] of Object.entries(keys)) {
    it(`of an authority and those that it signs, with ${what}`, () => {
      const template = `{{ $ca := genCAWithKey "the authority" 365 .key }}{{ $ca.Cert }}{{ $ca.Key -}}
        {{ $c := genSignedCertWithKey "web.shop" ${names} 30 $ca .key }}${both}
        {{- $c := genSignedCertWithKey "" nil (list "x") 20000 $ca .other }}${both}
        {{- $c := genSignedCertWithKey "Grüße*" nil nil -1 $ca .other }}${both}`
      compare({ template, data: { key, other: keys.Ed25519 } }, true)
    })

    it(`that sign themselves, with ${what}`, () => {
      for (const call of [
        `genSelfSignedCertWithKey "a&b" ${names} 30 .key`,
        'genSelfSignedCertWithKey "" nil nil 200000 .key',
        'genCAWithKey "" 0 .key',
      ])
        compare({ template: `{{ $c := ${call} }}${both}`, data: { key } }, true)
    })
  }

  it('of keys that are made', () => {
    const template = `{{ $ca := genCA "the authority" 365 }}{{ $ca.Cert }}{{ $ca.Key -}}{{ $c := genSignedCert "web" ${names} 30 $ca }}${both}`
    compare({ template, data: {} }, false)
    compare({ template: `{{ $c := genSelfSignedCert "web" nil (list "web") 30 }}${both}`, data: {} }, false)
  })
})

describe('private keys of templates', () => {
  for (const type of ['', 'rsa', 'dsa', 'ecdsa', 'ed25519'])
    it(`have the form of Go's: ${JSON.stringify(type)}`, () => {
      const template = `{{ genPrivateKey ${JSON.stringify(type)} }}`
      const privateKey = ourOutput({ template, data: {} })
      expect(goReads({ privateKey })).to.deep.equal(goReads({ privateKey: goOutput({ template, data: {} }) }))
      expect(createPrivateKey(privateKey).type).to.equal('private')
    })
})

describe('passwords of templates', () => {
  it('are hashed so that Go accepts them, and the other way round', () => {
    for (const password of ['secret', '', 'Grüße\0世界', 'x'.repeat(72)]) {
      const each = { template: '{{ htpasswd "me" .p }} {{ bcrypt .p }}', data: { p: password } }
      for (const [at, hash] of ourOutput(each).split(' ').entries()) {
        expect(hash).to.match(at === 0 ? /^me:\$2a\$10\$.{53}$/ : /^\$2a\$10\$.{53}$/)
        expect(goReads({ password, hash: hash.replace('me:', '') })).to.deep.equal({ cost: 10 })
      }
      for (const hash of goOutput(each).split(' ')) expect(compareSync(password, hash.replace('me:', ''))).to.equal(true)
    }
  }).timeout(60_000)

  it('are derived, encrypted and decrypted as in Go', () => {
    const derived = ['maximum', 'long', 'medium', 'short', 'basic', 'pin', 'other', '__proto__'].map((type, at) => ({
      template: `{{ derivePassword ${at * 4_000_000_001} "${type}" .p "Grüße" "example.com" }}`,
      data: { p: `secret ${at}` },
    }))
    const texts = ['x', 'exactly sixteen.', 'Grüße 世界', '{{ }}'.repeat(100)]
    const decrypted = texts.flatMap((text) =>
      [goOutput, ourOutput].map((output) => ({
        template: '{{ decryptAES "key" .t }}|{{ decryptAES "key" (print .t "\\n") }}',
        data: { t: output({ template: '{{ encryptAES "key" .t }}', data: { t: text } }) },
      })),
    )
    expect(askGo(decrypted).map(({ output }) => output)).to.deep.equal(texts.flatMap((text) => [text, text].map((each) => `${each}|${each}`)))
    differ([...derived, ...decrypted])
  })
})

/** Expects that no case differs from Go. */
function differ(cases: readonly TemplateCase[]): void {
  const answers = askGo(cases)
  const found = cases.map((each, at) => difference(each, answers[at] as (typeof answers)[0])).filter((text) => text !== undefined)
  expect(found).to.deep.equal([])
}

describe('functions of keys, certificates and passwords', () => {
  const data = {
    key: keys.Ed25519,
    rsa: keys['RSA in PKCS #1'],
    small: pem(generateKeyPairSync('rsa', { modulusLength: 512 }).privateKey, 'pkcs1'),
    pss: pem(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).privateKey, 'pkcs8'),
    foreign: pem(curve('secp256k1'), 'sec1'),
    x25519: pem(generateKeyPairSync('x25519').privateKey, 'pkcs8'),
    wrong: pem(rsa, 'pkcs8').replaceAll('PRIVATE', 'RSA PRIVATE'),
    wrongToo: pem(rsa, 'pkcs1').replaceAll('RSA ', ''),
    damaged: pem(rsa, 'pkcs1').replace(/.{64}\n(?=-----END|.{1,64}\n-----END)/, (line) => `${'A'.repeat(64)}${line.slice(64)}`),
    dsa: pem(generateKeyPairSync('dsa', { modulusLength: 2048, divisorLength: 256 }).privateKey, 'pkcs8'),
    encrypted: rsa.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }),
    legacy: rsa.export({ type: 'pkcs1', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }),
    many: `text\n${keys.Ed25519}${keys['ECDSA on P-384']}`,
    late: `-----BEGIN PRIVATE KEY-----\n-----BEGIN X-----\n!\n-----END X-----\n${keys.Ed25519}`,
    inLine: `x ${keys.Ed25519}`,
    crlf: keys.Ed25519?.replaceAll('\n', '\r\n'),
  }
  const authority = 'genCAWithKey "ca" 1 .key'
  const certs: readonly string[] = [
    ...Object.keys(data).flatMap((name) => [
      `{{ (genCAWithKey "ca" 1 .${name}).Key }}`,
      `{{ (buildCustomCert (b64enc (${authority}).Cert) (b64enc .${name})).Key }}`,
    ]),
    ...[
      '1.2.3',
      '01.2.3.4',
      '1.2.3.4.5',
      '1.2.3.256',
      '',
      'fe80::1%eth0',
      '::ffff:1.2.3.4',
      '1::2::3',
      '::1.2.3.4',
      '0x1.2.3.4',
      ' 1.2.3.4',
      '1:2:3:4:5:6:7:8:9',
    ].map((address) => `{{ (genSelfSignedCertWithKey "x" (list "${address}") nil 1 .key).Key }}`),
    ...['(list 1)', '(list nil)', '(list "Grüße")', '(list "")', '(splitList "," "a,b")', '"x"', '(list "\\xff")'].map(
      (hosts) => `{{ (genSelfSignedCertWithKey "x" nil ${hosts} 1 .key).Key }}`,
    ),
    `{{ (genCAWithKey "\\xff" 1 .key).Key }}`,
    `{{ $ca := ${authority} }}{{ $other := genCAWithKey "ca" 1 .rsa }}{{ genSignedCertWithKey "x" nil nil 1 (buildCustomCert (b64enc $ca.Cert) (b64enc $other.Key)) .key }}`,
    `{{ genSignedCertWithKey "x" nil nil 1 nil .key }}`,
    `{{ genSignedCertWithKey "x" nil nil 1 (dict "Cert" "x" "Key" "y") .key }}`,
    `{{ genSignedCertWithKey "x" nil nil 1 .missing .key }}`,
    `{{ $ca := ${authority} }}{{ (genSignedCertWithKey "x" nil nil 1 (buildCustomCert (b64enc $ca.Cert) (b64enc $ca.Key)) .key).Key }}`,
    ...['x509', '', `-----BEGIN CERTIFICATE-----\\n-----END CERTIFICATE-----`].map(
      (cert) => `{{ buildCustomCert (b64enc "${cert}") (b64enc .key) }}`,
    ),
    `{{ buildCustomCert "!" (b64enc .key) }}`,
    `{{ $c := ${authority} }}{{ buildCustomCert (b64enc $c.Cert) "x" }}`,
    `{{ $c := ${authority} }}{{ buildCustomCert (b64enc $c.Key) (b64enc $c.Key) }}`,
    `{{ $c := ${authority} }}{{ (buildCustomCert (b64enc (print "text\\n" $c.Cert $c.Cert)) (b64enc $c.Key)).Key }}`,
    `{{ $c := ${authority} }}{{ kindOf $c }} {{ typeOf $c }} {{ typeIs "sprig.certificate" $c }} {{ kindIs "struct" $c }} {{ empty $c }} {{ if $c }}y{{ end }} {{ eq $c $c }} {{ deepEqual $c (buildCustomCert (b64enc $c.Cert) (b64enc $c.Key)) }} {{ eq $c (buildCustomCert (b64enc $c.Cert) (b64enc .rsa)) }} {{ printf "%T" $c }}`,
    `{{ $c := ${authority} }}{{ $c.cert }}`,
    `{{ $c := ${authority} }}{{ $c.Other }}`,
    `{{ $c := ${authority} }}{{ index $c "Cert" }}`,
    `{{ $c := ${authority} }}{{ len $c }}`,
    `{{ $c := ${authority} }}{{ range $c }}{{ end }}`,
    `{{ $c := ${authority} }}{{ get $c "Cert" }}`,
    `{{ $c := ${authority} }}{{ with $c }}{{ .Key }}{{ end }}`,
    `{{ $c := ${authority} }}{{ $d := dict "c" $c }}{{ $d.c.Key }}{{ (index $d "c").Key | indent 2 }}`,
    ...['', 'v', '+v', '#v', 's', 'd', 'q', 'x', '5v'].map(
      (verb) =>
        `{{ $c := ${authority} }}{{ printf "%${verb}" $c | replace $c.Cert "C" | replace (printf "%q" $c.Cert) "C" | replace (printf "%x" $c.Cert) "C" }}`,
    ),
    ...['print', 'toJson', 'toPrettyJson', 'toYaml', 'toString', 'quote', 'html'].map(
      (name) =>
        `{{ $c := ${authority} }}{{ ${name} $c | replace $c.Cert "C" | replace (toJson $c.Cert) "C" | replace (html $c.Cert) "C" | regexReplaceAll "-----BEGIN CERT[^E]*-----END CERT" | len | lt 0 }}`,
    ),
  ]
  const others: readonly string[] = [
    '{{ genPrivateKey "x" }}{{ genPrivateKey "__proto__" }}{{ genPrivateKey "RSA" }}',
    '{{ htpasswd "a:b" "c" }}',
    `{{ bcrypt "${'x'.repeat(73)}" }}|{{ htpasswd "u" "${'ü'.repeat(37)}" }}`,
    '{{ derivePassword 1 "none" "a" "b" "c" }}',
    ...['-1', '1.0', '1.5', '"1"', 'nil', '(int 1)', '4294967296', "'a'", '.n', '(add 1 2)', '1e9', '18446744073709551616', 'true'].map(
      (counter) => `{{ derivePassword ${counter} "pin" "a" "b" "c" }}`,
    ),
    '{{ derivePassword 1 "long" "" "" "" }}|{{ derivePassword 1 "long" "\\xff" "\\xfe\\x00" "x" }}',
    '{{ encryptAES "k" "" }}|{{ decryptAES "k" "" }}|{{ encryptAES "" "" }}',
    ...[
      'x',
      '====',
      'AAAAAAAAAAAAAAAAAAAAAA==',
      'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
      'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
      ' AAAA',
      'AAA_',
      'AA=A',
    ].map((text) => `{{ decryptAES "k" "${text}" | b64enc }}`),
    // Other passwords leave what looks like padding, or does not.
    ...Array.from({ length: 300 }, (_, at) => `{{ decryptAES "other ${at}" "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=" | b64enc }}`),
  ]

  it('differ in nothing from those of Go: keys and certificates', () => {
    differ(certs.map((template) => ({ template, data })))
  })

  it('differ in nothing from those of Go: passwords', () => {
    differ(others.map((template) => ({ template, data: { n: 1 } })))
  })

  it('are all there, as every other function of sprig', () => {
    const [go] = askGo([{ names: true }])
    const library = templateLibrary()
    expect([...library.keys()].sort()).to.deep.equal(go?.keys)
    const isAbsent = (name: string) => renderOurs({ template: `{{ ${name} "x" }}`, data: {} }).error?.includes('there is no such function')
    expect([...library.keys()].filter(isAbsent)).to.have.members(['env', 'expandenv', 'getHostByName'])
  })
})
