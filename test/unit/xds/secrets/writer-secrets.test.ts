/** Which connections of a writer may read secrets, and what the writer requests from its sources (docs/resources.md, K7). */
import { expect } from 'chai'
import type { Connection } from '../../../../actors/discovery/xds-writer/connection.ts'
import { GatewaySecrets } from '../../../../actors/discovery/xds-writer/gateway-secrets.ts'
import type { SecretCommand } from '../../../../protocols/messages/secrets.ts'
import { readFeatures } from '../../../../src/config/features.ts'
import { KeyedSums } from '../../../../src/xds/slab/sums.ts'
import { Catalog } from '../../../../src/xds/stream/catalog.ts'
import type { ReadableSecrets } from '../../../../src/xds/stream/readable-secrets.ts'
import { nothing, Subscriptions } from '../../../../src/xds/stream/subscription.ts'
import { RecordingPeer } from '../../../harness/actor.ts'
import { until } from '../../../harness/until.ts'

describe('gateway secrets of a writer', () => {
  const names = (trustDomain: string, ...trustDomainAliases: string[]) =>
    ({ type: 'MeshNamesChanged', trustDomain, trustDomainAliases, rootNamespace: 'mesh-system', discoveryAddress: '' }) as const
  const writer = (env: Record<string, string> = {}) => {
    const missing: string[] = []
    const secrets = new GatewaySecrets(readFeatures(env).features, new Catalog(new KeyedSums('k')), new Subscriptions(), (_, name) =>
      missing.push(name),
    )
    const source = new RecordingPeer<SecretCommand>('source/files')
    secrets.linked(source)
    return { secrets, source, missing, wanted: () => source.received.at(-1)?.wanted.map(({ reader, names }) => ({ ...reader, names: [...names] })) }
  }
  /** A connection that subscribes to one secret whenever it may read. */
  const connection = (verifiedIdentity: string | undefined, type = 'router', cluster?: string) => {
    const held = { secrets: undefined as ReadableSecrets | undefined }
    const caller = cluster === undefined ? undefined : { cluster: { id: cluster, isOwn: false } }
    const session = {
      readSecrets(secrets: ReadableSecrets | undefined) {
        held.secrets?.use(session, nothing)
        held.secrets = secrets
        secrets?.use(session, { id: 7, wildcard: false, names: new Set(['kubernetes://site']) })
      },
      secretsKnown: () => undefined,
    }
    return { held, one: { node: { type, namespace: 'edge', clusterId: '' }, verifiedIdentity, session, caller } as unknown as Connection }
  }

  it('are requested once for all connections of a reader, until the last connection is gone', async () => {
    const { secrets, source, wanted } = writer()
    const [a, b] = [connection('spiffe://td/ns/edge/sa/gateway'), connection('spiffe://td/ns/edge/sa/gateway')]
    secrets.named(names('td'), [a.one, b.one])
    await until('the question', () => wanted()?.length === 1)
    expect(wanted()).to.deep.equal([{ namespace: 'edge', account: 'gateway', names: ['site'] }])
    expect(source.received).to.have.length(1)
    expect(a.held.secrets).to.equal(b.held.secrets)
    for (const { one, held } of [a, b]) {
      held.secrets?.use(one.session, nothing)
      secrets.gone(one)
    }
    await until('that nothing is wanted', () => wanted()?.length === 0)
  })

  it('are those of the cluster that vouches for the reader, of which no other source is asked or heard', async () => {
    const { secrets, source, wanted } = writer()
    const [west, east] = ['west', 'east'].map((id) => new RecordingPeer<SecretCommand>(`source/orchestrator/${id}`)) as [typeof source, typeof source]
    for (const each of [west, east]) secrets.linked(each)
    const gateway = 'spiffe://td/ns/edge/sa/gateway'
    const [own, other] = [connection(gateway), connection(gateway, 'router', 'west')]
    secrets.named(names('td'), [own.one, other.one])
    const asked = ({ received }: typeof source) => received.at(-1)?.wanted.map(({ reader }) => reader)
    await until('the questions', () => asked(west)?.length === 1 && wanted()?.length === 1)
    expect([asked(source), asked(west), asked(east)]).to.deep.equal([
      [{ namespace: 'edge', account: 'gateway' }],
      [{ namespace: 'edge', account: 'gateway', cluster: 'west' }],
      [],
    ])
    const [reader] = asked(west) ?? []
    const said = { type: 'SecretChanged', reader: reader as NonNullable<typeof reader>, name: 'site', material: undefined, at: 0 } as const
    expect([...secrets.receive(said, source)], 'of the own cluster').to.deep.equal([])
    expect([...secrets.receive(said, east)], 'of a third one').to.deep.equal([])
    expect([...secrets.receive(said, west)]).to.deep.equal([other.one])
  })

  it('are gone with the cluster of the reader, and there again with it', async () => {
    const { secrets } = writer()
    const west = new RecordingPeer<SecretCommand>('source/orchestrator/west')
    secrets.linked(west)
    const gateways = ['west', 'east'].map((id) => connection('spiffe://td/ns/edge/sa/gateway', 'router', id))
    secrets.named(
      names('td'),
      gateways.map(({ one }) => one),
    )
    const [{ one, held }] = gateways as [(typeof gateways)[number]]
    const reader = { namespace: 'edge', account: 'gateway', cluster: 'west' }
    const said = () => {
      const material = { pair: { chain: Buffer.from('chain'), key: Buffer.from('key') }, authorities: undefined }
      return { type: 'SecretChanged', reader, name: 'site', material, at: 0 } as const
    }
    const has = () => held.secrets?.state.find('kubernetes://site') !== undefined
    secrets.receive(said(), west)
    expect(has()).to.equal(true)
    secrets.unlinked(west)
    expect(has(), 'while its actor starts again').to.equal(true)
    expect([...secrets.forgotten(west)]).to.include(one)
    expect(has()).to.equal(false)
    secrets.linked(west)
    secrets.receive(said(), west)
    expect(has()).to.equal(true)
  })

  it('follow changes of the trust domain and its aliases', () => {
    const { secrets } = writer()
    const { one, held } = connection('spiffe://old/ns/edge/sa/gateway')
    secrets.admit(one)
    expect(held.secrets, 'before the names of the mesh are known').to.equal(undefined)
    secrets.named(names('td'), [one])
    expect(held.secrets).to.equal(undefined)
    secrets.named(names('td', 'old'), [one])
    expect(held.secrets).not.to.equal(undefined)
    secrets.named(names('td'), [one])
    expect(held.secrets).to.equal(undefined)
  })

  it('are given to no connection without a verified identity, or if the SDS server is off', () => {
    for (const env of [{ PILOT_ENABLE_XDS_IDENTITY_CHECK: 'false' }, { MESHD_ENABLE_SDS_SERVER: 'false' }] as Record<string, string>[]) {
      const { secrets } = writer(env)
      const { one, held } = connection('spiffe://td/ns/edge/sa/gateway')
      secrets.named(names('td'), [one])
      expect(held.secrets).to.equal(undefined)
    }
    const { secrets } = writer()
    for (const { one, held } of [
      connection(undefined),
      connection('spiffe://td/ns/edge/sa/gateway', 'sidecar'),
      connection('spiffe://td/ns/other/sa/gateway'),
    ]) {
      secrets.named(names('td'), [one])
      expect(held.secrets).to.equal(undefined)
    }
  })

  it('are asked of all sources in the order of the mesh configuration, and of a removed one no longer', async () => {
    const { secrets, missing } = writer()
    const { one } = connection('spiffe://td/ns/edge/sa/gateway')
    const [a, b] = [new RecordingPeer<SecretCommand>('source/fs/a'), new RecordingPeer<SecretCommand>('source/fs/b')]
    secrets.named({ ...names('td'), sources: ['source/fs/b', 'source/fs/a'] }, [one])
    for (const source of [a, b]) secrets.linked(source)
    await until('the questions', () => [a, b].every(({ received }) => received.at(-1)?.wanted.length === 1))
    const none = { type: 'SecretChanged', reader: { namespace: 'edge', account: 'gateway' }, name: 'site', material: undefined, at: 0 } as const
    for (const name of ['source/files', 'source/fs/a']) secrets.receive(none, new RecordingPeer(name))
    expect(missing, 'one has not answered').to.deep.equal([])
    expect([...secrets.forgotten(b)]).to.deep.equal([one])
    expect(missing).to.deep.equal(['kubernetes://site'])
  })

  it('are logged if they do not exist, and nothing is kept of readers that are gone', () => {
    const { secrets, source, missing } = writer()
    const { one } = connection('spiffe://td/ns/edge/sa/gateway')
    secrets.named(names('td'), [one])
    const event = (account: string) =>
      ({ type: 'SecretChanged', reader: { namespace: 'edge', account }, name: 'site', material: undefined, at: 0 }) as const
    expect([...secrets.receive(event('gateway'), source)]).to.deep.equal([one])
    expect(missing).to.deep.equal(['kubernetes://site'])
    expect([...secrets.receive(event('stranger'), source)]).to.deep.equal([])
  })
})
