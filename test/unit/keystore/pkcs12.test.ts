import { createHmac, createPrivateKey, type KeyObject, randomBytes } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import forge from 'node-forge'
import { encode, integer, nothing, octets, oid, sequence, tagged, type Value } from '../../../src/keystore/asn1.ts'
import { KeyStoreFault } from '../../../src/keystore/fault.ts'
import { identifiers } from '../../../src/keystore/identifiers.ts'
import { readPkcs12, writeKeyStore, writeTrustStore } from '../../../src/keystore/pkcs12.ts'
import { madeAuthority } from '../../harness/made-authority.ts'
import { OwnTime } from '../../harness/own-time.ts'
import { runs } from '../../harness/seed.ts'

const made = { rsa: madeAuthority('rsa'), ec: madeAuthority('ec') }
const bytesOf = (key: KeyObject): Buffer => key.export({ type: 'pkcs8', format: 'der' })
const faultOf = (work: Promise<unknown>) =>
  work.then(
    () => '',
    (error: Error) => (error instanceof KeyStoreFault ? error.message : String(error.stack)),
  )
const wrong = 'its password is another one, or the file is damaged'

/** A file with these parts as its content, without protection against changes, or with the one given. */
const fileWith = (parts: readonly Value[], protection: readonly Value[] = []): Buffer =>
  encode(sequence(integer(3), sequence(oid(identifiers.data), tagged(0, octets(encode(sequence(...parts))))), ...protection))
const partWith = (...bags: Value[]): Value => sequence(oid(identifiers.data), tagged(0, octets(encode(sequence(...bags)))))
const plainKey = (key: KeyObject): Value => sequence(oid(identifiers.keyBag), tagged(0, forge.asn1.fromDer(bytesOf(key).toString('latin1'))))

describe('PKCS #12', () => {
  for (const [type, { root, between, key }] of Object.entries(made)) {
    it(`gives back the key, its name and its chain (${type})`, async () => {
      for (const password of ['changeit', 'größer als 8 ✓', '']) {
        const file = await writeKeyStore({ name: 'wörk', key: bytesOf(key), chain: [between, root] }, password, randomBytes)
        const { keys, certificates } = await readPkcs12(file, password)
        expect(keys).to.have.length(1)
        expect(keys[0]?.name).to.equal('wörk')
        expect(keys[0]?.key.equals(bytesOf(key))).to.equal(true)
        expect(certificates).to.deep.equal([between, root])
        expect(await faultOf(readPkcs12(file, `${password}x`))).to.equal(wrong)
      }
    })
  }

  it('gives back trusted certificates', async () => {
    const roots = [made.rsa.root, made.ec.root]
    const { keys, certificates } = await readPkcs12(await writeTrustStore(roots, 'changeit', randomBytes), 'changeit')
    expect([keys, certificates]).to.deep.equal([[], roots])
  })

  it('reads keys that are not encrypted, in a file without protection', async () => {
    const nested = sequence(oid(identifiers.nestedBags), tagged(0, sequence(plainKey(made.ec.key))))
    const { keys } = await readPkcs12(fileWith([partWith(plainKey(made.rsa.key)), partWith(nested)]), 'any')
    expect(keys.map(({ key }) => createPrivateKey({ key, format: 'der', type: 'pkcs8' }).asymmetricKeyType)).to.deep.equal(['rsa', 'ec'])
  })

  it('reads BER, where lengths are not given in advance and bytes are in pieces', async () => {
    const content = encode(sequence(partWith(plainKey(made.ec.key))))
    const open = (first: string, ...parts: Buffer[]) => Buffer.concat([Buffer.from(`${first}80`, 'hex'), ...parts, Buffer.alloc(2)])
    const pieces = [content.subarray(0, 50), content.subarray(50)].map((piece) => encode(octets(piece)))
    const file = open('30', encode(integer(3)), open('30', encode(oid(identifiers.data)), open('a0', open('24', ...pieces))))
    expect((await readPkcs12(file, '')).keys).to.have.length(1)
  })

  it('refuses files that take too many iterations, before it computes them', async () => {
    const file = (count: number) => {
      const info = sequence(sequence(oid(identifiers.sha256), nothing()), octets(Buffer.alloc(32)))
      return fileWith([], [sequence(info, octets(Buffer.alloc(8)), integer(count))])
    }
    const derivation = (count: number) =>
      sequence(
        oid(identifiers.pbes2),
        sequence(
          sequence(oid(identifiers.pbkdf2), sequence(octets(Buffer.alloc(8)), integer(count))),
          sequence(oid(identifiers.aes256Cbc), octets(Buffer.alloc(16))),
        ),
      )
    const bag = (count: number) => sequence(oid(identifiers.shroudedKeyBag), tagged(0, sequence(derivation(count), octets(Buffer.alloc(16)))))
    const old = (count: number) =>
      sequence(
        oid(identifiers.shroudedKeyBag),
        tagged(0, sequence(sequence(oid('1.2.840.113549.1.12.1.3'), sequence(octets(Buffer.alloc(8)), integer(count))), octets(Buffer.alloc(16)))),
      )
    const hostile: readonly (readonly [string, Buffer])[] = [
      ['500,000', file(2 ** 31 - 1)],
      ['5,000,000', fileWith([partWith(bag(2 ** 31 - 1))])],
      ['5,000,000', fileWith([partWith(bag(5_000_001))])],
      ['500,000', fileWith([partWith(old(2 ** 31 - 1))])],
      ['500,000', fileWith([partWith(old(170_000))])],
    ]
    const time = new OwnTime()
    for (const [most, bytes] of hostile)
      expect(await faultOf(readPkcs12(bytes, 'any'))).to.equal(`deriving its keys takes more than ${most} iterations, which is refused`)
    expect(time.ms()).to.be.lessThan(500)
    expect(await faultOf(readPkcs12(file(0), 'any'))).to.equal('a key is derived from the password with no iterations')
    const twice = await faultOf(readPkcs12(file(260_000), ''))
    expect(twice, 'both encodings of no password count').to.include('more than 500,000 iterations')
  })

  it('checks the protection against changes', async () => {
    const file = await writeKeyStore({ name: 'a', key: bytesOf(made.ec.key), chain: [made.ec.between] }, 'changeit', randomBytes)
    for (let at = 100; at < file.length; at += 97) {
      const changed = Buffer.from(file)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(await faultOf(readPkcs12(changed, 'changeit'))).not.to.equal('')
    }
  })

  it('reads its sums like OpenSSL: the key of the sum is derived by the rules of PKCS #12', async () => {
    const safe = encode(sequence(partWith(plainKey(made.ec.key))))
    const salt = randomBytes(8)
    const derived = forge.pkcs12.generateKey('pw', forge.util.createBuffer(salt.toString('latin1')), 3, 1, 20, forge.md.sha1.create())
    const sum = createHmac('sha1', Buffer.from(derived.getBytes(), 'latin1')).update(safe).digest()
    // Without a number of iterations there is one.
    const protection = sequence(sequence(sequence(oid('1.3.14.3.2.26'), nothing()), octets(sum)), octets(salt))
    const bytes = encode(sequence(integer(3), sequence(oid(identifiers.data), tagged(0, octets(safe))), protection))
    expect((await readPkcs12(bytes, 'pw')).keys).to.have.length(1)
    expect(await faultOf(readPkcs12(bytes, ''))).to.equal(wrong)
  })

  it('refuses what is no such file, or nested too deep, with a reason', async () => {
    const deep = Buffer.concat([Buffer.from('3080'.repeat(2000), 'hex')])
    const cannot = 'the PKCS #12 file cannot be read: it is cut short, nested too deep, or no ASN.1'
    expect(await faultOf(readPkcs12(deep, ''))).to.equal(cannot)
    expect(await faultOf(readPkcs12(Buffer.alloc(0), ''))).to.equal(cannot)
    expect(await faultOf(readPkcs12(Buffer.from('-----BEGIN CERTIFICATE-----'), ''))).to.equal(cannot)
    expect(await faultOf(readPkcs12(made.ec.root, ''))).to.equal('the version is not there, or is something else')
  })

  it('ends with a reason for garbled bytes, and never in another way', async () => {
    const file = await writeKeyStore({ name: 'a', key: bytesOf(made.ec.key), chain: [made.ec.between, made.ec.root] }, 'pw', randomBytes)
    const plain = fileWith([partWith(plainKey(made.ec.key))])
    const changes = fc.array(fc.record({ at: fc.nat(3000), byte: fc.nat(255) }), { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(file, plain), changes, async (from, list) => {
        const bytes = Buffer.from(from)
        for (const { at, byte } of list) bytes[at % bytes.length] = byte
        const fault = await faultOf(readPkcs12(bytes, 'pw'))
        expect(fault).not.to.match(/\n/)
      }),
      { numRuns: runs(200) },
    )
  })
})
