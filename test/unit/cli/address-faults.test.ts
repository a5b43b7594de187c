/** What is said of an --address that gives no answer. The errors are those of the libraries; real servers are asked in test/system/addresses.test.ts. */
import { expect } from 'chai'
import { connectionFault } from '../../../src/cli/address-faults.ts'

describe('connectionFault', () => {
  const fault = (address: string, code: string, hasRoots = false) => connectionFault(address, hasRoots, Object.assign(new Error('why'), { code }))

  it('says whose roots a certificate does not come from', () => {
    const [, without] = /^https:\/\/h:1: (.*)$/.exec(fault('https://h:1', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE')) ?? []
    expect(without).to.equal('its certificate does not come from the roots of the system: name a file with the root of the mesh in --ca-file (why)')
    expect(fault('https://h:1', 'SELF_SIGNED_CERT_IN_CHAIN', true)).to.equal(
      'https://h:1: its certificate does not come from the roots of --ca-file (why)',
    )
  })

  it('says what it does not know as it is, with the address', () => {
    expect(fault('https://h:1', 'ERR_TLS_CERT_ALTNAME_INVALID')).to.equal('https://h:1: why')
    expect(fault('https://h:1', 'ECONNRESET')).to.equal('https://h:1: why')
    expect(fault('http://h:1', 'ENOTFOUND')).to.equal('http://h:1: the name of the host is not known (why)')
  })
})
