import { expect } from 'chai'
import fc from 'fast-check'
import { KeyStoreFault } from '../../../src/keystore/fault.ts'
import { readPkcs7, writePkcs7 } from '../../../src/keystore/pkcs7.ts'
import { madeAuthority } from '../../harness/made-authority.ts'
import { runs } from '../../harness/seed.ts'

describe('PKCS #7', () => {
  const certificates = (['rsa', 'ec'] as const).flatMap((type) => {
    const { root, between } = madeAuthority(type)
    return [root, between]
  })

  it('gives back certificates byte for byte', () => {
    expect(readPkcs7(writePkcs7(certificates))).to.deep.equal(certificates)
  })

  it('refuses what is something else, with a reason', () => {
    expect(() => readPkcs7(writePkcs7([]))).to.throw(KeyStoreFault, 'it holds no certificate')
    expect(() => readPkcs7(certificates[0] as Buffer)).to.throw(KeyStoreFault, 'its type is not there, or is something else')
    expect(() => readPkcs7(Buffer.from('3080'.repeat(100), 'hex'))).to.throw(KeyStoreFault, 'nested too deep')
  })

  it('ends with a reason for garbled bytes, and never in another way', () => {
    const file = writePkcs7(certificates.slice(2))
    fc.assert(
      fc.property(fc.nat(file.length - 1), fc.nat(255), (at, byte) => {
        const bytes = Buffer.from(file)
        bytes[at] = byte
        try {
          readPkcs7(bytes)
        } catch (error) {
          expect(error).to.be.instanceOf(KeyStoreFault)
        }
      }),
      { numRuns: runs(500) },
    )
  })
})
