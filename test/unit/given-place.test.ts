/** Where the control plane keeps its state (docs/certificates.md, K1 and K8). */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { givenPlace } from '../../actors/discovery/given/place.ts'
import { readFeatures } from '../../src/config/features.ts'

describe('the place of the state', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mesh-place-'))
  const features = { MESHD_CA_STATE_DIR: join(directory, 'ca'), POD_NAMESPACE: 'control' }
  after(() => rmSync(directory, { recursive: true }))
  const placeOf = (hasCluster: boolean, isNamed: boolean, namespace = '') => givenPlace({ hasCluster, isNamed }, { namespace }, features).place

  it('is Secrets with a cluster, and a directory without one, or where one is named or has a state already', () => {
    expect(placeOf(false, false)).to.deep.equal({ kind: 'directory' })
    expect(placeOf(true, true)).to.deep.equal({ kind: 'directory' })
    expect(placeOf(true, false)).to.deep.equal({ kind: 'secrets', namespace: 'control' })
    expect(placeOf(true, false, 'flag')).to.deep.equal({ kind: 'secrets', namespace: 'flag' })
    mkdirSync(features.MESHD_CA_STATE_DIR)
    expect(placeOf(true, false).kind, 'a directory without a state').to.equal('secrets')
    writeFileSync(join(features.MESHD_CA_STATE_DIR, 'state.json'), '')
    expect(placeOf(true, false)).to.deep.equal({ kind: 'directory' })
    expect(givenPlace({ hasCluster: true, isNamed: false }, { namespace: '' }, features).notices[0]?.message).to.include('stays there')
  })

  it('is named by a variable that is not empty', () => {
    expect(readFeatures({ MESHD_CA_STATE_DIR: '/x', PILOT_HTTP10: '' }).named).to.deep.equal(new Set(['MESHD_CA_STATE_DIR']))
  })
})
