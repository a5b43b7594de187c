import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { SecretSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { pairSecret, rootsSecret, type SecretResource } from '../../../src/agent/secret-resources.ts'
import { BadRequest, SecretStream } from '../../../src/agent/secret-stream.ts'
import { clusterType, secretType } from '../../../src/xds/type-urls.ts'
import { contentOf, sidecar } from '../../harness/secret-client.ts'

const secrets = (chain = 'chain', roots = 'roots') =>
  new Map<string, SecretResource>([pairSecret({ chain, key: 'key' }), rootsSecret(roots)].map(({ secret }) => [secret.name, secret]))

/** A stream of the state of the world. */
function sotw() {
  const stream = new SecretStream(false)
  return {
    take: (request: MessageInitShape<typeof DiscoveryRequestSchema>) =>
      stream.take(Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl: secretType, ...request })))),
    next(of: ReadonlyMap<string, SecretResource>) {
      const bytes = stream.next((name) => of.get(name))
      if (!bytes) return undefined
      const { versionInfo, nonce, typeUrl, resources } = fromBinary(DiscoveryResponseSchema, bytes)
      expect([typeUrl, ...resources.map((any) => any.typeUrl)]).to.deep.equal([secretType, ...resources.map(() => secretType)])
      return { nonce, version: versionInfo, has: resources.map(({ value }) => contentOf(fromBinary(SecretSchema, value))) }
    },
  }
}

/** A delta stream. */
function delta() {
  const stream = new SecretStream(true)
  return {
    take: (request: MessageInitShape<typeof DeltaDiscoveryRequestSchema>) =>
      stream.take(Buffer.from(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl: secretType, ...request })))),
    next(of: ReadonlyMap<string, SecretResource>) {
      const bytes = stream.next((name) => of.get(name))
      if (!bytes) return undefined
      const { nonce, typeUrl, resources, removedResources } = fromBinary(DeltaDiscoveryResponseSchema, bytes)
      expect(typeUrl).to.equal(secretType)
      const has = resources.map(({ version, resource }) => ({
        version,
        ...contentOf(fromBinary(SecretSchema, resource?.value as Uint8Array)),
      }))
      return { nonce, removed: removedResources, has }
    },
  }
}

describe('a stream of secrets, state of the world', () => {
  it('is sent what it wants, once it is there, and again when it changes', () => {
    const stream = sotw()
    expect(stream.take({ node: sidecar, resourceNames: ['default'] })).to.deep.equal({ unknown: [] })
    expect(stream.next(new Map())).to.equal(undefined)
    const first = stream.next(secrets())
    expect(first?.has).to.deep.equal([{ name: 'default', chain: 'chain', key: 'key' }])
    expect(stream.next(secrets('changed')), 'before the answer').to.equal(undefined)
    stream.take({ resourceNames: ['default'], responseNonce: first?.nonce as string, versionInfo: first?.version as string })
    expect(stream.next(secrets()), 'the same').to.equal(undefined)
    expect(stream.next(secrets('chain', 'other roots')), 'what it does not want').to.equal(undefined)
    const second = stream.next(secrets('changed'))
    expect(second?.has).to.deep.equal([{ name: 'default', chain: 'changed', key: 'key' }])
    expect(second?.version).not.to.equal(first?.version)
    expect(second?.nonce).not.to.equal(first?.nonce)
  })

  it('is sent only what changed or was not wanted before', () => {
    const stream = sotw()
    stream.take({ node: sidecar, resourceNames: ['default'] })
    const { nonce } = stream.next(secrets()) as { nonce: string }
    stream.take({ resourceNames: ['default', 'ROOTCA'], responseNonce: nonce })
    const second = stream.next(secrets())
    expect(second?.has).to.deep.equal([{ name: 'ROOTCA', roots: 'roots' }])
    stream.take({ resourceNames: ['default', 'ROOTCA'], responseNonce: second?.nonce as string })
    expect(stream.next(secrets('changed'))?.has.map(({ name }) => name)).to.deep.equal(['default'])
  })

  it('forgets names that are left out, and sends them when they are wanted again', () => {
    const stream = sotw()
    stream.take({ node: sidecar, resourceNames: ['default'] })
    const first = stream.next(secrets()) as { nonce: string }
    stream.take({ resourceNames: [], responseNonce: first.nonce })
    expect(stream.next(secrets('changed'))).to.equal(undefined)
    stream.take({ resourceNames: ['default'], responseNonce: first.nonce })
    expect(stream.next(secrets('changed'))?.has).to.have.length(1)
  })

  it('tells of a refusal, and does not send the same again', () => {
    const stream = sotw()
    stream.take({ node: sidecar, resourceNames: ['default'] })
    const { nonce } = stream.next(secrets()) as { nonce: string }
    expect(stream.take({ resourceNames: ['default'], responseNonce: nonce, errorDetail: { message: 'bad key' } })).to.deep.equal({
      refused: 'bad key',
      unknown: [],
    })
    expect(stream.next(secrets())).to.equal(undefined)
    expect(stream.next(secrets('better'))?.has).to.have.length(1)
  })

  it('passes over nonces that are stale, but for those of an earlier stream in the first request', () => {
    const stream = sotw()
    stream.take({ node: sidecar, resourceNames: ['default'], responseNonce: '17', versionInfo: 'old' })
    const { nonce } = stream.next(secrets()) as { nonce: string }
    stream.take({ resourceNames: ['default', 'ROOTCA'], responseNonce: 'stale' })
    expect(stream.next(secrets('changed')), 'still waits').to.equal(undefined)
    stream.take({ resourceNames: ['default'], responseNonce: nonce })
    expect(stream.next(secrets('changed'))?.has).to.have.length(1)
  })

  it('takes a change of names before the first response', () => {
    const stream = sotw()
    stream.take({ node: sidecar, resourceNames: ['default'] })
    stream.take({ resourceNames: ['ROOTCA'] })
    expect(stream.next(secrets())?.has).to.deep.equal([{ name: 'ROOTCA', roots: 'roots' }])
  })

  it('names what nobody has, once', () => {
    const stream = sotw()
    expect(stream.take({ node: sidecar, resourceNames: ['default', 'other'] }).unknown).to.deep.equal(['other'])
    const { nonce, has } = stream.next(secrets()) as { nonce: string; has: unknown[] }
    expect(has).to.have.length(1)
    expect(stream.take({ resourceNames: ['default', 'other'], responseNonce: nonce }).unknown).to.deep.equal([])
  })

  it('takes no first request without the node of a proxy, no other type, no garbage, and not too many names', () => {
    const refused: [string, MessageInitShape<typeof DiscoveryRequestSchema>][] = [
      ['missing node ID', { resourceNames: ['default'] }],
      ['must have four parts', { node: { id: 'somebody' } }],
      ['neither sidecar nor router', { node: { id: 'ztunnel~10.0.0.1~a~b' } }],
      ['are not served here', { node: sidecar, typeUrl: clusterType }],
      ['at most 1000', { node: sidecar, resourceNames: Array.from({ length: 1001 }, (_, index) => `name-${index}`) }],
    ]
    for (const [reason, request] of refused) expect(() => sotw().take(request), reason).to.throw(BadRequest, reason)
    expect(() => new SecretStream(false).take(Buffer.from([0x0a, 0xff]))).to.throw(BadRequest)
    expect(() => new SecretStream(true).take(Buffer.from([0x0a, 0xff]))).to.throw(BadRequest)
  })
})

describe('a delta stream of secrets', () => {
  it('is sent what it subscribes to, with versions, and again when it changes', () => {
    const stream = delta()
    stream.take({ node: sidecar, resourceNamesSubscribe: ['default', 'ROOTCA'] })
    const first = stream.next(secrets())
    expect(first?.has.map(({ name }) => name)).to.deep.equal(['default', 'ROOTCA'])
    stream.take({ responseNonce: first?.nonce as string })
    expect(stream.next(secrets())).to.equal(undefined)
    const second = stream.next(secrets('chain', 'more roots'))
    expect(second?.has.map(({ name, roots }) => [name, roots])).to.deep.equal([['ROOTCA', 'more roots']])
    stream.take({ responseNonce: second?.nonce as string, resourceNamesUnsubscribe: ['ROOTCA'] })
    expect(stream.next(secrets('changed', 'most roots'))?.has.map(({ name }) => name)).to.deep.equal(['default'])
  })

  it('is not sent what it has from before, and is sent again what it subscribes to again', () => {
    const version = (secrets().get('default') as SecretResource).version
    const stream = delta()
    stream.take({ node: sidecar, resourceNamesSubscribe: ['default'], initialResourceVersions: { default: version } })
    expect(stream.next(secrets())).to.equal(undefined)
    stream.take({ resourceNamesSubscribe: ['default'] })
    expect(stream.next(secrets())?.has).to.have.length(1)
  })

  it('is told once what nobody has', () => {
    const stream = delta()
    stream.take({ node: sidecar, resourceNamesSubscribe: ['other'] })
    const first = stream.next(secrets())
    expect([first?.removed, first?.has]).to.deep.equal([['other'], []])
    stream.take({ responseNonce: first?.nonce as string })
    expect(stream.next(secrets())).to.equal(undefined)
  })

  it('tells of a refusal, and goes on', () => {
    const stream = delta()
    stream.take({ node: sidecar, resourceNamesSubscribe: ['default'] })
    const { nonce } = stream.next(secrets()) as { nonce: string }
    expect(stream.take({ responseNonce: nonce, errorDetail: { message: 'bad key' } }).refused).to.equal('bad key')
    expect(stream.next(secrets())).to.equal(undefined)
    expect(stream.next(secrets('better'))?.has).to.have.length(1)
  })
})
