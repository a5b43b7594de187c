import { expect } from 'chai'
import { certificatesOf } from '../../../../src/xds/security/mutual-tls.ts'

describe('certificate files of a proxy', () => {
  const files = { TLS_SERVER_CERT_CHAIN: '/chain.pem', TLS_SERVER_KEY: '/key.pem', TLS_SERVER_ROOT_CERT: '/root.pem' }

  it('are used if chain, key and root are all named', () => {
    expect(certificatesOf(files).server).to.deep.equal({ chain: '/chain.pem', key: '/key.pem', root: '/root.pem' })
    for (const missing of Object.keys(files))
      for (const value of [undefined, '', 5, {}]) expect(certificatesOf({ ...files, [missing]: value }).server, missing).to.equal(undefined)
  })
})
