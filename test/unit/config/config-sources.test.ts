import { expect } from 'chai'
import { actorOfSource, hostAndPort, separateSources } from '../../../src/config/config-sources.ts'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'

/** Returns the addresses that are used, and the warnings. */
function read(...entries: unknown[]): { addresses: string[]; warnings: string[] } {
  const result = readMeshConfig(JSON.stringify({ rootNamespace: 'kept', configSources: entries }))
  if ('error' in result) throw new Error(result.error)
  expect(result.value.rootNamespace).to.equal('kept')
  return { addresses: (result.value.configSources ?? []).map(({ address }) => address), warnings: result.warnings }
}

describe('configSources', () => {
  it('are absolute directories, of which another spelling is the same', () => {
    const { addresses, warnings } = read({ address: 'fs:///etc/mesh/extra' }, { address: 'fs:////srv//teams/a b%20/' })
    expect(addresses).to.deep.equal(['fs:///etc/mesh/extra', 'fs:///srv/teams/a b%20'])
    expect(warnings).to.deep.equal([])
    expect(addresses.map((address) => actorOfSource({ address }))).to.deep.equal(['source/fs/etc/mesh/extra', 'source/fs/srv/teams/a b%20'])
  })

  it('that cannot be used are faults with field and reason, and cost only themselves', () => {
    const wrong: [entry: unknown, reason: string][] = [
      [{ address: 'fs://etc/mesh' }, 'names a host or a relative path: three slashes begin an absolute path'],
      [{ address: 'fs:///etc/../root' }, 'has a part . or ..'],
      [{ address: 'fs:///./etc' }, 'has a part . or ..'],
      [{ address: 'fs:////' }, 'is the root directory'],
      [{ address: '/etc/mesh' }, 'is neither fs:///<directory> nor xds://<host>:<port> nor orch://'],
      [{ address: 'k8s://other' }, 'is not orch://, which is the cluster of this process'],
      [{ address: 'orch://a' }, 'is not orch://, which is the cluster of this process'],
      [{ address: 'xds://other' }, 'is not xds://<host>:<port>'],
      [{ address: 'xds://other:70000' }, 'is not xds://<host>:<port>'],
      [{ address: 'xds://a b:15012' }, 'is not xds://<host>:<port>'],
      [{ address: 7 }, 'expected text, got number 7; a number is a text only in quotes'],
      [{ address: `fs:///${'a'.repeat(5000)}` }, 'longer than 4096 characters'],
      [{ address: 'fs:///a\u0000b' }, 'has a NUL character'],
    ]
    for (const [entry, reason] of wrong) {
      const { addresses, warnings } = read({ address: 'fs:///a' }, entry, { address: 'fs:///b' })
      expect(addresses, reason).to.deep.equal(['fs:///a', 'fs:///b'])
      expect(warnings, reason).to.have.length(1)
      expect(warnings[0]).to.match(/^field configSources\[1\]\.address: /)
      expect(warnings[0])
        .to.include(reason)
        .and.to.match(/; this source is left out$/)
    }
    expect(read('fs:///a', {}, null).warnings).to.have.length(3)
    const many = read(...Array.from({ length: 17 }, (_, index) => ({ address: `fs:///${index}` })))
    expect(many.addresses).to.have.length(16)
    expect(many.warnings).to.deep.equal(['field configSources[16]: more than 16 sources; this source is left out'])
    expect(readMeshConfig('configSources: 7')).to.deep.equal({ error: 'field configSources: expected a list' })
  })

  it('are the cluster, once, under either name', () => {
    const { addresses } = read({ address: 'k8s://' }, { address: 'fs:///a' }, { address: 'orch://' })
    expect(addresses).to.deep.equal(['orch://', 'fs:///a', 'orch://'])
    const { usable, faults } = separateSources(
      addresses.map((address) => ({ address })),
      '',
    )
    expect(usable.map(actorOfSource)).to.deep.equal(['source/orch', 'source/fs/a'])
    expect(faults).to.deep.equal(['field configSources: orch:// is named twice; this source is left out'])
  })

  it('of other control planes need a client certificate', () => {
    const tlsSettings = { mode: 'MUTUAL', clientCertificate: '/c.pem', privateKey: '/k.pem', caCertificates: '/ca.pem' }
    const addresses = ['xds://other.example.com:15012', 'xds://[::1]:15012', 'xds://10.0.0.1:1']
    const given = read(...addresses.map((address) => ({ address, tlsSettings })))
    expect(given).to.deep.equal({ addresses, warnings: [] })
    expect(actorOfSource({ address: 'xds://[::1]:15012' })).to.equal('source/xds/[::1]:15012')
    expect(hostAndPort('xds://[::1]:15012')).to.deep.equal({ host: '::1', port: 15_012 })
    for (const [settings, reason] of [
      [undefined, 'configSources[0].tlsSettings: required, but missing'],
      [{ ...tlsSettings, mode: 'SIMPLE' }, 'configSources[0].tlsSettings.mode: string "SIMPLE" is not one of MUTUAL'],
      [{ ...tlsSettings, privateKey: 'k.pem' }, '"k.pem" is not an absolute path'],
      [{ mode: 'MUTUAL' }, 'configSources[0].tlsSettings.clientCertificate: required'],
    ] as const) {
      const { addresses: used, warnings } = read({ address: 'xds://other:15012', ...(settings ? { tlsSettings: settings } : {}) })
      expect(used, reason).to.deep.equal([])
      expect(warnings.join('\n')).to.include(reason)
    }
    const twice = [{ address: 'xds://a:1' }, { address: 'fs:///a' }, { address: 'xds://a:1' }]
    expect(separateSources(twice, '')).to.deep.equal({
      usable: twice.slice(0, 2),
      faults: ['field configSources: xds://a:1 is named twice; this source is left out'],
    })
  })

  it('whose directories are read already are left out', () => {
    const given = ['fs:///a', 'fs:///a/b', 'fs:///ab', 'fs:///a', 'fs:///config/x', 'fs:///config', 'fs:///srv/x', 'fs:///srv']
    const { usable, faults } = separateSources(
      given.map((address) => ({ address })),
      '/config',
    )
    expect(usable.map(({ address }) => address)).to.deep.equal(['fs:///a', 'fs:///ab', 'fs:///srv/x'])
    const left = (what: string) => `field configSources: ${what}, which is read already; this source is left out`
    expect(faults).to.deep.equal([
      left('fs:///a/b lies within fs:///a'),
      left('fs:///a is the directory of fs:///a'),
      left('fs:///config/x lies within --configDir'),
      left('fs:///config is the directory of --configDir'),
      left('fs:///srv contains fs:///srv/x'),
    ])
    expect(separateSources([{ address: 'fs:///a' }], '').usable).to.have.length(1)
    expect(separateSources([{ address: 'fs:///a' }], '/').faults).to.deep.equal([left('fs:///a lies within --configDir')])
  })
})
