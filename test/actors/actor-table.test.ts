import { expect } from 'chai'
import { actorTable } from '../../actors/discovery/actor-table.ts'
import { authenticatorConfig } from '../../actors/discovery/identity/settings.ts'
import type { CertificateFiles } from '../../protocols/messages/certificates.ts'
import type { PushQueueConfig, XdsWriterConfig } from '../../protocols/messages/config.ts'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import { readFeatures } from '../../src/config/features.ts'

const wiring = (options: Partial<DiscoveryOptions>, certificates?: CertificateFiles, hasRegistry = false) =>
  actorTable({
    options: { registries: [], configDir: '', appNamespace: [], ...options } as unknown as DiscoveryOptions,
    features: readFeatures({}).features,
    ...{ hasRegistry, hasCluster: hasRegistry, configSources: [] },
    missingSources: [],
    syncedBefore: () => undefined,
    statusOnLoopback: true,
    writers: 2,
    listen: { plain: () => ({ host: '127.0.0.1', port: 0 }), secure: undefined },
    certificates,
    identity: authenticatorConfig(readFeatures({}).features),
    secrets: { versionKey: 'secret', lockedKeys: '' },
    place: { kind: 'directory' },
    ...{ webhooks: undefined, keptWebhook: undefined },
    ...{ replica: undefined, mode: 'threads' },
    module: (name) => new URL(`file:///${name}`),
  })

describe('the table of actors', () => {
  it("gives writers the push queue's version key", () => {
    const { actors } = wiring({})
    const of = (prefix: string) =>
      actors.filter(({ name }) => name.startsWith(prefix)).map(({ config }) => (typeof config === 'function' ? config() : config))
    const [queue] = of('push-queue') as PushQueueConfig[]
    const keys = [queue?.secrets.versionKey, ...(of('xds-writer') as XdsWriterConfig[]).map(({ versionKey }) => versionKey)]
    expect(keys).to.deep.equal(['secret', 'secret', 'secret'])
  })

  it('links exactly the pairs of which one emits what the other consumes', () => {
    const file = { flag: 'f', path: '/f' }
    const { actors, links, sources, configured, webhooks } = wiring({ registries: ['Mock'] }, { cert: file, key: file, ca: undefined })
    expect(links.map((pair) => [...pair].sort().join(' - ')).sort()).to.deep.equal([
      'authenticator - push-queue',
      'authenticator - xds-writer/0',
      'authenticator - xds-writer/1',
      'certificate-watcher - xds-writer/0',
      'certificate-watcher - xds-writer/1',
      'distribution - push-queue',
      'distribution - xds-writer/0',
      'distribution - xds-writer/1',
      'jwks-resolver - push-queue',
      'push-queue - source/files',
      'push-queue - source/mock',
      'push-queue - xds-writer/0',
      'push-queue - xds-writer/1',
      'source/files - xds-writer/0',
      'source/files - xds-writer/1',
    ])
    expect(sources).to.deep.equal(['source/files', 'source/mock'])
    const { spec, peers } = configured(() => ({ address: 'fs:///srv/mesh' }))
    expect([spec.name, spec.mode, [...peers].sort()]).to.deep.equal(['source/fs/srv/mesh', 'threads', ['push-queue', 'xds-writer/0', 'xds-writer/1']])
    const other = configured(() => ({ address: 'xds://other:15012' }))
    expect([other.spec.name, other.spec.mode, other.peers]).to.deep.equal(['source/xds/other:15012', 'threads', ['push-queue']])
    expect([webhooks.spec.mode, [...webhooks.peers].sort()]).to.deep.equal(['threads', ['authenticator', 'certificate-watcher', 'push-queue']])
    const runs = Object.fromEntries(actors.map(({ name, mode }) => [name, mode]))
    expect(runs).to.deep.equal({
      'push-queue': 'threads',
      'source/files': 'in-thread',
      'source/mock': 'in-thread',
      'jwks-resolver': 'in-thread',
      'certificate-watcher': 'in-thread',
      authenticator: 'in-thread',
      distribution: 'in-thread',
      'xds-writer/0': 'threads',
      'xds-writer/1': 'threads',
    })
  })
})
