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

/** Opens a SotW stream. */
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

/** Opens a delta stream. */
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

describe('a SotW stream of SDS', () => {
  it('sends a subscribed secret once it exists, and again after it changed and the last response was acknowledged', () => {
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

  it('sends only secrets that changed or are newly subscribed', () => {
    const stream = sotw()
    stream.take({ node: sidecar, resourceNames: ['default'] })
    const { nonce } = stream.next(secrets()) as { nonce: string }
    stream.take({ resourceNames: ['default', 'ROOTCA'], responseNonce: nonce })
    const second = stream.next(secrets())
    expect(second?.has).to.deep.equal([{ name: 'ROOTCA', roots: 'roots' }])
    stream.take({ resourceNames: ['default', 'ROOTCA'], responseNonce: second?.nonce as string })
    expect(stream.next(secrets('changed'))?.has.map(({ name }) => name)).to.deep.equal(['default'])
  })

  it('stops sending a name that is no longer subscribed, and sends it when it is subscribed again', () => {
    const stream = sotw()
    stream.take({ node: sidecar, resourceNames: ['default'] })
    const first = stream.next(secrets()) as { nonce: string }
    stream.take({ resourceNames: [], responseNonce: first.nonce })
    expect(stream.next(secrets('changed'))).to.equal(undefined)
    stream.take({ resourceNames: ['default'], responseNonce: first.nonce })
    expect(stream.next(secrets('changed'))?.has).to.have.length(1)
  })

  it('reports a NACK, and does not send the same secret again until it changes', () => {
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

  it('ignores requests with a stale nonce, except the nonce of an earlier stream in the first request', () => {
    const stream = sotw()
    stream.take({ node: sidecar, resourceNames: ['default'], responseNonce: '17', versionInfo: 'old' })
    const { nonce } = stream.next(secrets()) as { nonce: string }
    stream.take({ resourceNames: ['default', 'ROOTCA'], responseNonce: 'stale' })
    expect(stream.next(secrets('changed')), 'still waits').to.equal(undefined)
    stream.take({ resourceNames: ['default'], responseNonce: nonce })
    expect(stream.next(secrets('changed'))?.has).to.have.length(1)
  })

  it('applies a change of the subscribed names before the first response', () => {
    const stream = sotw()
    stream.take({ node: sidecar, resourceNames: ['default'] })
    stream.take({ resourceNames: ['ROOTCA'] })
    expect(stream.next(secrets())?.has).to.deep.equal([{ name: 'ROOTCA', roots: 'roots' }])
  })

  it('reports a subscribed name that does not exist once', () => {
    const stream = sotw()
    expect(stream.take({ node: sidecar, resourceNames: ['default', 'other'] }).unknown).to.deep.equal(['other'])
    const { nonce, has } = stream.next(secrets()) as { nonce: string; has: unknown[] }
    expect(has).to.have.length(1)
    expect(stream.take({ resourceNames: ['default', 'other'], responseNonce: nonce }).unknown).to.deep.equal([])
  })

  it('rejects a first request without a valid proxy node, another type, bytes that are no message, or too many names', () => {
    const refused: [string, MessageInitShape<typeof DiscoveryRequestSchema>][] = [
      ['missing node ID', { resourceNames: ['default'] }],
      ['must have four parts', { node: { id: 'somebody' } }],
      ['neither sidecar nor router', { node: { id: 'ztunnel~10.0.0.1~a~b' } }],
      ['are not served here', { node: sidecar, typeUrl: clusterType }],
      ['at most 1000', { node: sidecar, resourceNames: Array.from({ length: 1001 }, (_, index) => `name-${index}`) }],
    ]
    for (const [reason, request] of refused) expect(() => sotw().take(request), reason).to.throw(BadRequest, reason)
    for (const isDelta of [false, true])
      expect(() => new SecretStream(isDelta).take(Buffer.from([0x0a, 0xff]))).to.throw(
        BadRequest,
        /^the discovery request cannot be decoded: message is cut short$/,
      )
  })
})

describe('a delta stream of SDS', () => {
  it('sends subscribed secrets with versions, sends them again when they change, and stops after unsubscribe', () => {
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

  it('does not send a secret whose version the client reported initially, but sends it on a repeated subscription', () => {
    const version = (secrets().get('default') as SecretResource).version
    const stream = delta()
    stream.take({ node: sidecar, resourceNamesSubscribe: ['default'], initialResourceVersions: { default: version } })
    expect(stream.next(secrets())).to.equal(undefined)
    stream.take({ resourceNamesSubscribe: ['default'] })
    expect(stream.next(secrets())?.has).to.have.length(1)
  })

  it('reports a name that does not exist as removed, once', () => {
    const stream = delta()
    stream.take({ node: sidecar, resourceNamesSubscribe: ['other'] })
    const first = stream.next(secrets())
    expect([first?.removed, first?.has]).to.deep.equal([['other'], []])
    stream.take({ responseNonce: first?.nonce as string })
    expect(stream.next(secrets())).to.equal(undefined)
  })

  it('reports a NACK, and sends the secret again only after it changed', () => {
    const stream = delta()
    stream.take({ node: sidecar, resourceNamesSubscribe: ['default'] })
    const { nonce } = stream.next(secrets()) as { nonce: string }
    expect(stream.take({ responseNonce: nonce, errorDetail: { message: 'bad key' } }).refused).to.equal('bad key')
    expect(stream.next(secrets())).to.equal(undefined)
    expect(stream.next(secrets('better'))?.has).to.have.length(1)
  })
})
