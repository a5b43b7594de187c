/** The secrets of versions of a process whose API server does not answer (docs/certificates.md, K7). */
import { expect } from 'chai'
import { sharedSecrets } from '../../actors/discovery/own-keys/process-secrets.ts'

describe('the secrets of versions in a Secret', () => {
  it('are those of the process alone when the API server does not answer: a start does not wait for it', async () => {
    const { secrets, warning } = await sharedSecrets({ namespace: 'mesh-system', call: () => new Promise(() => undefined) })
    expect(secrets.versionKey).to.match(/^[0-9a-f]{64}$/)
    expect(warning).to.contain('the API server has not answered within 5 s')
  })
})
